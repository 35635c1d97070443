"""A worker that encodes shards: jobs as lines of JSON on stdin, their entries on stdout."""

import json
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from seq2see.text.encoding import Encoder
from seq2see.text.lines import Pair
from seq2see.text.shards import id_type, write_shard, write_texts


def encode_shard(
    folder: Path, number: int, pairs: Sequence[Pair], encoder: Encoder, kept: bool
) -> dict[str, Any]:
    """Encode the texts of a shard and write it; return its entry of the index."""
    name = f"{number:05d}.ids"
    type = id_type(encoder.largest)
    files = {name: write_shard(folder / name, encoder.encode(pairs), type)}
    if kept:
        name = f"{number:05d}.text"
        files[name] = write_texts(folder / name, pairs)
    return {"shard": number, "pairs": len(pairs), "files": files}


def main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the main process ends us
    setup = json.loads(sys.stdin.readline())
    encoder = Encoder.load(Path(setup["tokenizers"]), setup["encoder"])
    folder = Path(setup["folder"])
    for line in sys.stdin:
        job = json.loads(line)
        try:
            entry = encode_shard(folder, job["shard"], job["pairs"], encoder, setup["kept"])
        except OSError as error:
            entry = {"error": f"{folder}: cannot write the store: {error.strerror}"}
        print(json.dumps(entry), flush=True)


if __name__ == "__main__":
    main()
