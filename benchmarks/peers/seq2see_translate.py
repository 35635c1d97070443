"""seq2see as `seq2see translate` runs it: with torch, or with CTranslate2 on an export."""

from collections.abc import Sequence

import worker

import seq2see


def main() -> None:
    job = worker.job()
    exported = job["variant"].startswith("ct2")
    if exported:  # needs no torch
        from seq2see.ct2 import engine as ct2

        engine = ct2.load(f"{job['data']}/{job['variant']}")
    else:
        import torch

        from seq2see.tasks.table import load

        torch.set_num_threads(job["threads"])
        engine = load(job["model_directory"], "cpu")

    def translate(texts: Sequence[str], setting: worker.Setting) -> list[str]:
        return list(engine.translate(texts, beam=job["beam"]))

    library = "ctranslate2" if exported else "torch"
    versions = worker.versions(library, "sentencepiece") | {"seq2see": seq2see.__version__}
    worker.translation(job, translate, [{}], versions)


if __name__ == "__main__":
    main()
