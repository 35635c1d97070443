"""The public names: listed, documented, imported on demand."""

import pydoc
import subprocess
import sys

import seq2see
import seq2see.api


def test_every_public_name_is_listed_and_can_be_imported() -> None:
    assert dir(seq2see) == sorted([*seq2see.__all__, "__version__"])
    assert sorted(seq2see.__all__) == seq2see.__all__
    public = {name for name in vars(seq2see.api) if not name.startswith("_")} - {"seq2see"}
    assert public == set(seq2see.__all__)


def test_help_gives_the_tour_and_every_public_name() -> None:
    page = pydoc.render_doc(seq2see, renderer=pydoc.plaintext)
    assert "Sequence to sequence you can see." in page and 'seq2see.load("runs/' in page
    for name in seq2see.__all__:
        assert f"class {name}(" in page or f"    {name}(" in page, name


def test_listing_the_names_does_not_wait_for_torch() -> None:
    program = "import sys, seq2see; print(len(dir(seq2see)), 'torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout == f"{len(seq2see.__all__) + 1} False\n"
