"""The wheel, installed into a new environment, runs the demo outside the checkout."""

import json
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

CHECKOUT = Path(__file__).parents[1]


def test_the_wheel_runs_the_demo_outside_the_checkout(tmp_path: Path) -> None:
    build = [
        sys.executable,
        "-m",
        "build",
        "--wheel",
        "--no-isolation",
        "--outdir",
        tmp_path,
        CHECKOUT,
    ]
    subprocess.run(build, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("seq2see-*.whl")
    files = set(zipfile.ZipFile(wheel).namelist())
    recipes = {f"seq2see/recipes/{path.name}" for path in (CHECKOUT / "recipes").glob("*.toml")}
    page = CHECKOUT / "src" / "seq2see" / "serve" / "page"
    pages = {f"seq2see/serve/page/{path.name}" for path in page.iterdir()}
    assert "seq2see/serve/page/index.html" in pages
    assert recipes | pages | {"seq2see/py.typed", "seq2see/__main__.py"} <= files
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "venv"], check=True)
    python = tmp_path / "venv" / "bin" / "python"
    subprocess.run(
        [python, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", wheel], check=True
    )
    # The libraries are borrowed from this environment; a .pth file does not bring its editable
    # seq2see along.
    (site,) = (tmp_path / "venv" / "lib").glob("python*/site-packages")
    (site / "borrowed.pth").write_text(sysconfig.get_path("purelib"))
    where = [python, "-c", "import seq2see; print(seq2see.__file__)"]
    assert (
        str(site)
        in subprocess.run(where, check=True, capture_output=True, text=True, cwd=tmp_path).stdout
    )

    demo = [tmp_path / "venv" / "bin" / "seq2see", "demo", "--minutes", "0.25"]
    done = subprocess.run(demo, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "alignment error rate" in done.stderr
    run = tmp_path / "runs" / "demo"
    tests = json.loads((run / "scorecard.json").read_text(encoding="utf-8"))["tests"]
    assert tests.keys() == {"test", "test_structures"}
    for name in ("attention.png", "alignment.png"):
        assert (run / name).read_bytes().startswith(b"\x89PNG")
