"""A model that `seq2see export` wrote, as a package of Argos Translate, for LibreTranslate.

    python argos_package.py EXPORT HOME SOURCE TARGET

Runs in the environment of LibreTranslate. SOURCE and TARGET are language codes. HOME is what
XDG_DATA_HOME and XDG_CACHE_HOME of the server are set to, under `data` and `cache`. Argos splits
sentences by models that it downloads; offline, the package brings spaCy's rule-based splitter,
which Argos takes with ARGOS_CHUNK_TYPE=SPACY.
"""

import json
import shutil
import sys
from pathlib import Path

import spacy

NAMES = {"de": "German", "en": "English", "fr": "French", "zh": "Chinese"}


def main() -> None:
    export, home = map(Path, sys.argv[1:3])
    source, target = sys.argv[3:]
    argos = home / "data" / "argos-translate"
    shutil.rmtree(home, ignore_errors=True)
    package = argos / "packages" / f"translate-{source}_{target}"
    model = package / "model"
    model.mkdir(parents=True)
    for path in (export / "model.bin", *export.glob("*vocabulary.json")):
        shutil.copy(path, model)
    # Argos gives CTranslate2 the pieces alone; our model needs </s> at the end of the source.
    config = json.loads((export / "config.json").read_text(encoding="utf-8"))
    config["add_source_eos"] = True
    (model / "config.json").write_text(json.dumps(config), encoding="utf-8")
    shutil.copy(export / "tokenizer.model", package / "sentencepiece.model")
    metadata = {
        "package_version": "1.0",
        "argos_version": "1.0",
        "from_code": source,
        "from_name": NAMES.get(source, source),
        "to_code": target,
        "to_name": NAMES.get(target, target),
    }
    (package / "metadata.json").write_text(json.dumps(metadata), encoding="utf-8")
    spacy.blank(source).to_disk(package / "spacy")
    # Argos looks for a cached model before it reads the package's, and would download one.
    cached = home / "cache" / "argos-translate" / "spacy" / "senter" / "model"
    cached.parent.mkdir(parents=True)
    cached.touch()
    # An empty index, and --load-only: else it would try to download all packages.
    (argos / "index.json").write_text("[]", encoding="utf-8")


if __name__ == "__main__":
    main()
