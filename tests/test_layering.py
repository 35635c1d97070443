"""The flow of data: a folder imports only from those before it, and forbidden things do not exist."""

import ast
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import seq2see

ROOT = Path(seq2see.__file__).parent
FILES = sorted(ROOT.rglob("*.py"))
ids = {"ids": lambda path: str(path.relative_to(ROOT))}

# The folders and files of the package, in the order of the flow.
FLOW = ["errors", "files", "recipe", "text", "pictures", "batches", "layers", "models", "training"]
FLOW += ["decoding", "scoring", "tasks", "ct2", "see", "serve", "bench", "api", "cli", "__main__"]
PLACE = {name: place for place, name in enumerate([*FLOW, "seq2see"])}
CORE = ["layers/masks", "layers/attention", "layers/positions", "layers/blocks"]
CORE += ["models/transformer"]
LONGEST_FILE, LONGEST_FUNCTION, WIDEST_LINE = 300, 50, 100


def module_of(path: Path) -> str:
    parts = path.relative_to(ROOT.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_of(path): path for path in FILES}


def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def imports(path: Path) -> Iterator[tuple[int, str]]:
    """Yield line and full name of every import; `from a import b` is a.b where that is a module."""
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: write imports in full"
            for alias in node.names:
                name = f"{node.module}.{alias.name}"
                yield node.lineno, name if name in MODULES else str(node.module)


def stage(module: str) -> str:
    """`seq2see.layers.masks` belongs to `layers`."""
    return module.split(".")[1] if "." in module else module


def inside(path: Path) -> Iterator[tuple[int, str]]:
    yield from ((line, name) for line, name in imports(path) if name.split(".")[0] == "seq2see")


def files_in(*folders: str) -> list[Path]:
    return [path for folder in folders for path in sorted((ROOT / folder).rglob("*.py"))]


def test_the_flow_is_the_folder_listing() -> None:
    entries = {path.stem for path in ROOT.iterdir() if path.suffix == ".py" or path.is_dir()}
    assert entries - {"__init__", "__pycache__"} == set(FLOW)
    assert len(FLOW) <= 19


@pytest.mark.parametrize("path", FILES, **ids)
def test_a_file_imports_only_from_folders_before_its_own(path: Path) -> None:
    own = stage(module_of(path))
    for line, name in inside(path):
        assert name in MODULES, f"{path}:{line}: there is no {name}"
        if name == "seq2see":
            continue  # see below
        other = stage(name)
        before = PLACE[other] < PLACE[own] or (other == own and (ROOT / own).is_dir())
        assert before, f"{path}:{line}: {own} imports {name}"


def test_no_two_files_import_each_other() -> None:
    graph = {
        module: {name for _, name in inside(path) if name not in ("seq2see", module)}
        for module, path in MODULES.items()
        if module != "seq2see"
    }
    assert set(TopologicalSorter(graph).static_order()) >= set(graph)  # CycleError names the cycle


IMPORT_PACKAGE = [path for path in FILES if any(name == "seq2see" for _, name in inside(path))]


@pytest.mark.parametrize("path", IMPORT_PACKAGE, **ids)
def test_the_package_itself_is_imported_for_its_version_alone(path: Path) -> None:
    for node in ast.walk(tree(path)):
        attribute = isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)
        if attribute and node.value.id == "seq2see" and path != ROOT / "__init__.py":
            assert node.attr == "__version__", f"{path}:{node.lineno}"
        if isinstance(node, ast.ImportFrom) and node.module == "seq2see":
            for alias in node.names:
                known = alias.name == "__version__" or f"seq2see.{alias.name}" in MODULES
                assert known, f"{path}:{node.lineno}"


TORCHLESS = ["errors.py", "files.py", "recipe/*.py", "text/**/*.py"]
TORCHLESS += ["ct2/engine.py", "ct2/library.py"]
TORCHLESS += ["decoding/hypotheses.py", "decoding/long_text.py"]


@pytest.mark.parametrize(
    "path", [path for glob in TORCHLESS for path in sorted(ROOT.glob(glob))], **ids
)
def test_text_recipes_and_the_exported_engine_need_no_torch(path: Path) -> None:
    assert "torch" not in {name.split(".")[0] for _, name in imports(path)}


@pytest.mark.parametrize("path", FILES, **ids)
def test_nothing_a_user_loads_can_run_code(path: Path) -> None:
    assert not {"pickle", "cPickle", "dill", "joblib", "shelve", "marshal"} & {
        name.split(".")[0] for _, name in imports(path)
    }
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            called = f"{node.value.id}.{node.attr}"
            forbidden = ("torch.load", "torch.save", "importlib.import_module")
            assert called not in forbidden, f"{path}:{node.lineno}"


def test_decoding_never_asks_which_model_it_has() -> None:
    for path in files_in("decoding"):
        names = {node.id for node in ast.walk(tree(path)) if isinstance(node, ast.Name)}
        assert not {"isinstance", "issubclass", "hasattr", "type"} & names, path


MODEL_FILES = {"transformer", "recurrent", "convolutional", "language", "vit", "reduced", "build"}
MODEL_FILES |= {"diffusion", "unet", "dit", "merged", "merged_diffusers"}


@pytest.mark.parametrize("path", files_in("training", "decoding"), **ids)
def test_training_and_decoding_import_no_model(path: Path) -> None:
    for line, name in inside(path):
        model = name.startswith("seq2see.models.") and name.split(".")[2] in MODEL_FILES
        assert not model, f"{path}:{line}: imports {name}"


METRICS = {"bleu", "chrf", "perplexity", "accuracy", "aer"}


@pytest.mark.parametrize("path", files_in("training"), **ids)
def test_training_names_no_metric(path: Path) -> None:
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            assert node.value.lower() not in METRICS, f"{path}:{node.lineno}"
        for name in (getattr(node, "id", None), getattr(node, "attr", None)):
            assert name not in METRICS, f"{path}:{getattr(node, 'lineno', 0)}"


@pytest.mark.parametrize(
    "path", [path for path in FILES if stage(module_of(path)) != "tasks"], **ids
)
def test_only_tasks_compare_the_name_of_a_task(path: Path) -> None:
    for node in ast.walk(tree(path)):
        compared: list[ast.expr] = []
        if isinstance(node, ast.Compare):
            compared = [node.left, *node.comparators]
        elif isinstance(node, ast.Match):
            compared = [node.subject]
        elif isinstance(node, ast.Subscript):
            compared = [node.slice]  # a table by task is a comparison, too
        for side in compared:
            is_task = isinstance(side, ast.Attribute) and side.attr == "task"
            assert not is_task, f"{path}:{node.lineno}"


def closure(path: Path) -> set[Path]:
    """The files of the package that a file imports, directly or not, and the file itself."""
    known: set[Path] = set()
    open_files = [path]
    while open_files:
        current = open_files.pop()
        if current not in known:
            known.add(current)
            names = (name for _, name in inside(current) if name != "seq2see")
            open_files += (MODULES[name] for name in names)
    return known


def lines_of(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines()


def test_the_transformer_can_be_read_with_what_it_imports() -> None:
    read = closure(ROOT / "models" / "transformer.py")
    assert len(read) <= 12
    assert sum(len(lines_of(path)) for path in read) <= 1100
    assert not any("reduction" in str(path) or path.stem == "reduced" for path in read)


def test_the_transformer_is_under_500_lines() -> None:
    assert sum(len(lines_of(ROOT / f"{name}.py")) for name in CORE) < 500


@pytest.mark.parametrize("path", FILES, **ids)
def test_files_functions_and_lines_are_short(path: Path) -> None:
    lines = lines_of(path)
    assert len(lines) <= LONGEST_FILE
    wide = [number for number, line in enumerate(lines, start=1) if len(line) > WIDEST_LINE]
    assert not wide
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.FunctionDef):
            length = (node.end_lineno or node.lineno) - node.lineno + 1
            assert length <= LONGEST_FUNCTION, f"{node.name} has {length} lines"


ODD_OPENINGS = ("What", "Where", "How", "Which", "Of", "Who", "Whose")


@pytest.mark.parametrize("path", FILES, **ids)
def test_docstrings_begin_with_a_verb_or_a_noun(path: Path) -> None:
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
            first = (ast.get_docstring(node) or "").split(" ")[0]
            assert first not in ODD_OPENINGS, f"{getattr(node, 'name', path)}"


def test_no_file_is_a_drawer_for_everything() -> None:
    assert not {"utils", "helpers", "common", "misc"} & {path.stem for path in FILES}
