"""The way data flows: a file imports only from what stands before it, and what must not exist does not."""

import ast
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import seq2see

ROOT = Path(seq2see.__file__).parent
FILES = sorted(ROOT.rglob("*.py"))
ids = {"ids": lambda path: str(path.relative_to(ROOT))}

# Each may import from those before it and, being a folder, from itself; the package hands out what stands before it.
FLOW = ["errors", "files", "recipe", "text", "pictures", "batches", "layers", "models", "training"]
FLOW += ["decoding", "scoring", "tasks", "ct2", "see", "bench", "api", "cli"]
PLACE = {name: place for place, name in enumerate([*FLOW, "seq2see"])}
# Files that still import from a later folder.
TO_MEND = {"models/init.py", "pictures/augment.py"}
CORE = [
    "layers/masks",
    "layers/attention",
    "layers/positions",
    "layers/blocks",
    "models/transformer",
]


def module_of(path: Path) -> str:
    parts = path.relative_to(ROOT.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_of(path): path for path in FILES}


def imports(path: Path) -> Iterator[tuple[int, str]]:
    """Line and full name of every import, wherever it stands; `from a import b` is a.b where that is a module."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: write imports in full"
            for alias in node.names:
                name = f"{node.module}.{alias.name}"
                yield node.lineno, name if name in MODULES else str(node.module)


def stage(module: str) -> str:
    """`seq2see.layers.masks` stands at `layers`."""
    return module.split(".")[1] if "." in module else module


def inside(path: Path) -> Iterator[tuple[int, str]]:
    yield from ((line, name) for line, name in imports(path) if name.split(".")[0] == "seq2see")


def test_every_file_stands_on_the_flow() -> None:
    assert {stage(module) for module in MODULES} <= set(PLACE)


@pytest.mark.parametrize("path", FILES, **ids)
def test_a_file_imports_only_from_what_stands_before_it(path: Path) -> None:
    own = stage(module_of(path))
    for line, name in inside(path):
        assert name in MODULES, f"{path}:{line}: there is no {name}"
        if name == "seq2see":
            continue  # see below
        other = stage(name)
        before = PLACE[other] < PLACE[own] or (other == own and (ROOT / own).is_dir())
        before |= str(path.relative_to(ROOT)) in TO_MEND
        assert before, f"{path}:{line}: {own} imports {name}"


def test_no_two_files_import_each_other() -> None:
    graph = {
        module: {name for _, name in inside(path) if name not in ("seq2see", module)}
        for module, path in MODULES.items()
        if module != "seq2see"
    }
    assert set(TopologicalSorter(graph).static_order()) >= set(
        graph
    )  # raises CycleError with the way round


@pytest.mark.parametrize(
    "path", [path for path in FILES if any(name == "seq2see" for _, name in inside(path))], **ids
)
def test_the_package_itself_is_asked_for_its_version_alone(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Attribute)
            and isinstance(node.value, ast.Name)
            and node.value.id == "seq2see"
        ):
            assert node.attr == "__version__" or path == ROOT / "__init__.py", (
                f"{path}:{node.lineno}"
            )
        if isinstance(node, ast.ImportFrom) and node.module == "seq2see":
            for alias in node.names:
                assert alias.name == "__version__" or f"seq2see.{alias.name}" in MODULES, (
                    f"{path}:{node.lineno}"
                )


TORCHLESS = ["errors.py", "files.py", "recipe/*.py", "text/**/*.py", "ct2/engine.py"]
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
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            called = f"{node.value.id}.{node.attr}"
            assert called not in ("torch.load", "torch.save", "importlib.import_module"), (
                f"{path}:{node.lineno}"
            )


def test_decoding_never_asks_which_model_it_has() -> None:
    tree = ast.parse((ROOT / "decoding" / "search.py").read_text(encoding="utf-8"))
    names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    assert not {"isinstance", "issubclass", "hasattr", "getattr", "type"} & names


def test_no_file_is_a_drawer_for_everything() -> None:
    assert not {"utils", "helpers", "common", "misc"} & {path.stem for path in FILES}


def test_the_transformer_is_small_enough_to_read() -> None:
    assert (
        sum(len((ROOT / f"{name}.py").read_text(encoding="utf-8").splitlines()) for name in CORE)
        < 600
    )
