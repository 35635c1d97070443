"""Steps of a translation that leaves the translating to its caller.

A generator yields texts to translate, is sent their translations, in order, and returns its result.
The same code thus serves a command, a test, and a server that batches many documents.
"""

from collections.abc import Callable, Generator, Iterable, Sequence
from typing import TypeVar

Result = TypeVar("Result")
Steps = Generator[list[str], Sequence[str], Result]


def run(steps: Steps[Result], translate: Callable[[list[str]], Sequence[str]]) -> Result:
    """Run a translation, asking `translate` for each round's texts, each text once."""
    try:
        texts = next(steps)
        while True:
            asked = list(dict.fromkeys(texts))
            translation_of = dict(zip(asked, _as_many(translate(asked), asked), strict=True))
            texts = steps.send([translation_of[text] for text in texts])
    except StopIteration as stop:
        result: Result = stop.value
        return result


def together(many: Iterable[Steps[Result]]) -> Steps[list[Result]]:
    """Run translations in step: a round asks for the texts of all of them, in order."""
    generators = list(many)
    if len(generators) == 1:  # most texts are one sentence
        return [(yield from generators[0])]
    results: dict[int, Result] = {}
    asked: dict[int, list[str]] = {}
    answers: dict[int, Sequence[str] | None] = dict.fromkeys(range(len(generators)))
    while answers:
        asked.clear()
        for number, answer in answers.items():
            try:
                generator = generators[number]
                asked[number] = next(generator) if answer is None else generator.send(answer)
            except StopIteration as stop:
                results[number] = stop.value
        answers.clear()
        if asked:
            texts = [text for own in asked.values() for text in own]
            translations = iter(_as_many((yield texts), texts))
            for number, own in asked.items():
                answers[number] = [next(translations) for _ in own]
    return [results[number] for number in range(len(generators))]


def _as_many(translations: Sequence[str], texts: Sequence[str]) -> Sequence[str]:
    if len(translations) != len(texts):
        raise ValueError(f"{len(translations)} translations of {len(texts)} texts")
    return translations
