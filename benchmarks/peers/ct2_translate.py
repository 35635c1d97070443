"""CTranslate2 on a model that `seq2see export` wrote: by its documented call, or tuned by hand.

documented   translate_batch with the beam and nothing else: one batch, all threads inside it
tuned        the fastest workers, threads and batch size of a list; our length penalty and limit
same-search  the same with the patience and number of hypotheses of seq2see, to rank alike
"""

import itertools
import math
from collections.abc import Sequence
from typing import Any

import ctranslate2
import sentencepiece
import worker

SIZES = {"examples": (16, 32, 64, 128, 256), "tokens": (512, 1024, 2048, 4096, 8192)}
END = "</s>"
PATIENCE = 1.25  # as in seq2see's engine


def settings(variant: str, threads: int) -> list[worker.Setting]:
    if variant == "documented":
        return [{}]
    batches = [(kind, size) for kind, sizes in SIZES.items() for size in sizes]
    return [
        {"inter_threads": inter, "intra_threads": intra, "batch_type": kind, "max_batch_size": size}
        for (inter, intra), (kind, size) in itertools.product(
            {(threads, 1): 0, (1, threads): 0}, batches
        )
    ]


def main() -> None:
    job = worker.job()
    variant = job["variant"]
    beam = job["beam"]
    decode = job["decode"]
    search: dict[str, Any] = {}
    if variant != "documented":
        search["length_penalty"] = decode["length_penalty"]
    if variant == "same-search":
        search |= {
            "patience": PATIENCE,
            "num_hypotheses": int(PATIENCE * beam + 0.5),
            "return_scores": True,
        }
    pieces = sentencepiece.SentencePieceProcessor(model_file=f"{job['data']}/tokenizer.model")
    engines: dict[tuple[Any, ...], ctranslate2.Translator] = {}

    def engine(**threads: int) -> ctranslate2.Translator:
        key = tuple(threads.values())
        if key not in engines:
            engines[key] = ctranslate2.Translator(
                f"{job['data']}/ct2", device="cpu", compute_type="int8", **threads
            )
        return engines[key]

    def translate(texts: Sequence[str], setting: worker.Setting) -> list[str]:
        tokens = [[*row, END] for row in pieces.encode(list(texts), out_type=str)]
        threads = {key: value for key, value in setting.items() if key.endswith("threads")}
        batches = {key: value for key, value in setting.items() if key.endswith(("type", "size"))}
        if variant != "documented":  # CTranslate2 takes one limit per call
            longest = max(map(len, tokens)) - 1
            batches["max_decoding_length"] = math.ceil(decode["max_ratio"] * longest) + 10
        results = engine(**threads).translate_batch(tokens, beam_size=beam, **batches, **search)
        return pieces.decode([result.hypotheses[0] for result in results])

    possible = settings(variant, job["threads"])
    versions = worker.versions("ctranslate2", "sentencepiece")
    worker.translation(job, translate, possible, versions)


if __name__ == "__main__":
    main()
