"""Lines whose numbers, names, addresses and capitals come through; by a second search if needed."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from seq2see.decoding.long_text import Translation
from seq2see.text.documents import Lexicon, Steps, run, together, translate_line

Search = Callable[[Sequence[str]], list[list[Translation]]]


def kept(
    lines: Sequence[str],
    first: Search,
    again: Search,
    languages: tuple[str, str],
    lexicon: Lexicon | None,
) -> list[list[Translation]]:
    """Translate lines; keep in each hypothesis what it may not change.

    The first search is of all lines, the second of those that lost something, each text once.
    Scores are those of the hypotheses of the first.
    """
    steps = [translate_line(line, *languages, lexicon) for line in lines]
    results = first([next(own)[0] for own in steps])
    hypotheses = [
        _finished(_begun(line, languages, lexicon), translation.text)
        for line, row in zip(lines, results, strict=True)
        for translation in row
    ]
    texts = run(together(hypotheses), lambda asked: [best.text for best, *_ in again(asked)])
    written = iter(texts)
    return [[replace(translation, text=next(written)) for translation in row] for row in results]


def _begun(line: str, languages: tuple[str, str], lexicon: Lexicon | None) -> Steps[str]:
    """The steps of a line after it has asked for the translation of its first text."""
    steps = translate_line(line, *languages, lexicon)
    next(steps)
    return steps


def _finished(steps: Steps[str], translation: str) -> Steps[str]:
    """Go on with the translation of the first text."""
    try:
        answers: Sequence[str] = [translation]
        while True:
            answers = yield steps.send(answers)
    except StopIteration as stop:
        result: str = stop.value
        return result
