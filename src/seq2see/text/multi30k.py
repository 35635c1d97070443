"""Multi30k: captions of 30,000 pictures in German, English and French, local or downloaded."""

import hashlib
import os
import urllib.request
from http.client import HTTPException
from pathlib import Path

from seq2see.errors import InputError
from seq2see.files import sha256, write_atomically
from seq2see.recipe.schema import DataConfig

HOME = "https://raw.githubusercontent.com/multi30k/dataset/master/data/task1/raw"
SUMS = {
    "train.de.gz": "726e39b2fa9eb9ffb6dc763fb35a179f80fae06ffc5d28b6ace5faa883de28a6",
    "train.en.gz": "d79cfa999dd4c51d2cb42499b6796d5a882c3a8a961923c25a898c90f8bbd56f",
    "train.fr.gz": "622e75069e9f4c577425c4f277116ce66e63a2401c0a2312d90073cb12379a3c",
    "val.de.gz": "f0cba2f995189cf5770f29a8a9a537a3ad3f51657ad873405082ff6863a5e75a",
    "val.en.gz": "14f7d25ddd868909a9213e361768460edcacdd6ab9d1e77b92560dc10c10dc28",
    "val.fr.gz": "ca3106f1a72390591d25f6c45cb4cd39dec4cd3f123e099748a3ce5256c160e9",
    "test_2016_flickr.de.gz": "9204244e408ccb38d2a55cfcd344df15005fc42a07a6e55ca6c52b6ababb8cc8",
    "test_2016_flickr.en.gz": "611d361c6334bc7246101d48097c13cf5c4413c5befc793cc629934359d532d9",
    "test_2016_flickr.fr.gz": "6d326e188d259fb1d04ac19eae3af956559b3a0b93d7635e56c90987c40c8b90",
    "test_2017_flickr.de.gz": "a2c89666db00c495cd8513b9d708d5a3acc205d7de312ef2bf5fb7ebc1540aee",
    "test_2017_flickr.en.gz": "76a444ee25172e72695cddb13ae4a3bda59430617be88e0bb46b60504f054074",
    "test_2017_flickr.fr.gz": "3ba671ceb2299f3304ffafefea7a833d08632fbaf0ba18546f8a2ec2391af496",
}


def folder(config: DataConfig, data: Path | None) -> Path:
    """Return the directory of Multi30k: `data`, under SEQ2SEE_DATA, or the download cache."""
    if data is not None:
        if not data.is_dir():
            raise InputError(f"{data}: not a directory; --data must be the directory of multi30k")
        return data.absolute()
    if corpora := os.environ.get("SEQ2SEE_DATA"):
        local = Path(corpora) / "multi30k"
        if local.is_dir():
            return local.absolute()
    caches = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    cache = caches / "seq2see" / "multi30k"
    for split in ("train", "val", "test_2016_flickr", "test_2017_flickr"):
        for language in (config.source, config.target):
            name = f"{split}.{language}.gz"
            if name not in SUMS:
                raise InputError(f"data.corpus 'multi30k' is de, en and fr, not {language!r}")
            _download(name, cache)
    return cache.absolute()


def _download(name: str, directory: Path) -> None:
    """Download a file unless it is cached; keep it only if its checksum is the pinned one."""
    path = directory / name
    url = f"{HOME}/{name}"
    try:
        if path.exists() and sha256(path) == SUMS[name]:
            return
        with urllib.request.urlopen(url, timeout=30) as response:
            content: bytes = response.read()
        checksum = hashlib.sha256(content).hexdigest()
        if checksum != SUMS[name]:
            raise InputError(f"{url}: SHA-256 {checksum} instead of {SUMS[name]}; nothing was kept")
        directory.mkdir(parents=True, exist_ok=True)
        write_atomically(path, lambda temporary: temporary.write_bytes(content))
    except (OSError, HTTPException) as error:
        raise InputError(
            f"{url}: cannot download Multi30k into {directory} ({error}); "
            "give its folder with --data DIR, or set SEQ2SEE_DATA to the folder that holds multi30k"
        ) from None
