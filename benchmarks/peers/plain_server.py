"""A plain loop: FastAPI over CTranslate2, one text at a time, as examples of both show it.

    python plain_server.py --model EXPORT --port PORT [--workers W --threads T]

FastAPI runs the function of a request in a thread, of which there are 40 by default. The search is
CTranslate2's own, without our patience: faster, and a little worse.
Answers as seq2see does: {"translations": [{"text": …}]}.
"""

import argparse
import math
from pathlib import Path

import ctranslate2
import sentencepiece
import uvicorn
from fastapi import FastAPI
from pydantic import BaseModel

END = "</s>"


class Request(BaseModel):
    """A text or a list of texts."""

    text: str | list[str]


def application(options: argparse.Namespace) -> FastAPI:
    """Serve one model."""
    threads = {}
    if options.workers:
        threads = {"inter_threads": options.workers, "intra_threads": options.threads}
    pieces = sentencepiece.SentencePieceProcessor(model_file=str(options.model / "tokenizer.model"))
    translator = ctranslate2.Translator(str(options.model), device="cpu", **threads)
    app = FastAPI()

    def translated(text: str) -> str:
        tokens = pieces.encode(text, out_type=str)
        result = translator.translate_batch(
            [[*tokens, END]],
            beam_size=options.beam,
            length_penalty=options.length_penalty,
            max_decoding_length=math.ceil(options.max_ratio * len(tokens)) + 10,
        )[0]
        return pieces.decode(result.hypotheses[0])

    @app.get("/ready")
    def ready() -> dict[str, str]:
        return {"status": "ready"}

    @app.post("/v1/translate")
    def translate(request: Request) -> dict[str, list[dict[str, str]]]:
        texts = [request.text] if isinstance(request.text, str) else request.text
        return {"translations": [{"text": translated(text)} for text in texts]}

    return app


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--model", type=Path, required=True, help="written by `seq2see export`")
    add("--port", type=int, required=True)
    add("--beam", type=int, default=4)
    add("--length-penalty", type=float, default=0.6)
    add("--max-ratio", type=float, default=2.0)
    add("--workers", type=int, help="translations in parallel; by default as CTranslate2 likes")
    add("--threads", type=int, default=1, help="of each worker")
    options = parser.parse_args()
    app = application(options)
    uvicorn.run(app, host="127.0.0.1", port=options.port, log_level="warning", access_log=False)


if __name__ == "__main__":
    main()
