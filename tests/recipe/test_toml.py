"""Recipe files: shipped recipes, `--set`, files that are not recipes, and save → load."""

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seq2see.errors import InputError
from seq2see.recipe.schema import Recipe
from seq2see.recipe.toml import shipped

MINIMAL: dict[str, dict[str, Any]] = {"data": {"train": "pairs.tsv"}, "train": {"steps": 5}}
TEXT = '[data]\ntrain = "pairs.tsv"\n[train]\nsteps = 5\n'


def write(folder: Path, text: str | bytes = TEXT) -> Path:
    path = folder / "mine.toml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def refusal(path: str | Path, *overrides: str) -> str:
    """The one line with which a recipe is refused."""
    with pytest.raises(InputError) as caught:
        Recipe.load(path, overrides)
    message = str(caught.value)
    assert "\n" not in message
    return message


@pytest.mark.parametrize("name", shipped())
def test_shipped_recipes_load_and_say_what_they_are(name: str) -> None:
    recipe = Recipe.load(name)
    assert recipe.model.width % recipe.model.heads == 0
    path = Path(__file__).parents[2] / "recipes" / f"{name}.toml"
    assert path.read_text(encoding="utf-8").startswith("# ")


def test_the_demo_and_the_first_recipe_are_shipped() -> None:
    assert {"captions", "tiny"} <= set(shipped())


def test_a_folder_of_that_name_does_not_hide_a_shipped_recipe(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tiny").mkdir()
    assert Recipe.load("tiny").data.corpus == "multi30k"


def test_a_file_of_that_name_takes_precedence_over_a_shipped_recipe(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tiny").write_text(TEXT)
    assert Recipe.load("tiny").data.train == "pairs.tsv"


@pytest.mark.parametrize(
    ("override", "section", "key", "value"),
    [
        ("model.norm=post", "model", "norm", "post"),
        ("data.train='a b.tsv'", "data", "train", "a b.tsv"),
        ("data.train=a=b.tsv", "data", "train", "a=b.tsv"),
        (" model.width = 8 ", "model", "width", 8),
        ("train.lr=2e-3", "train", "lr", 0.002),
        ("train.lr=1", "train", "lr", 1.0),
        ("tokenizer.joint=false", "tokenizer", "joint", False),
        ("data.columns=[2, 0]", "data", "columns", (2, 0)),
        ('data.columns=["en", "de"]', "data", "columns", ("en", "de")),
        ('data.train=["a.de", "a.en"]', "data", "train", ["a.de", "a.en"]),
        (
            'data.test={news = "n.tsv", web = ["w.de", "w.en"]}',
            "data",
            "test",
            {"news": "n.tsv", "web": ["w.de", "w.en"]},
        ),
        ("train.minutes=0.5", "train", "minutes", 0.5),
    ],
)
def test_set_takes_strings_numbers_booleans_and_tables(
    tmp_path: Path, override: str, section: str, key: str, value: object
) -> None:
    table = getattr(Recipe.load(write(tmp_path), [override]), section)
    assert getattr(table, key) == value and type(getattr(table, key)) is type(value)


@pytest.mark.parametrize(
    ("overrides", "budget"),
    [
        (["train.minutes=2"], (None, None, 2)),
        (["train.epochs=2"], (None, 2, None)),
        (["train.epochs=2", "train.steps=9"], (9, None, None)),
        (["train.steps=9", "train.minutes=1"], (None, None, 1)),
    ],
)
def test_a_new_budget_replaces_the_old_one(
    tmp_path: Path, overrides: list[str], budget: tuple[float | None, ...]
) -> None:
    train = Recipe.load(write(tmp_path), overrides).train
    assert (train.steps, train.epochs, train.minutes) == budget


def test_a_new_batch_size_replaces_the_old_one(tmp_path: Path) -> None:
    train = Recipe.load(
        write(tmp_path, TEXT + "batch_tokens = 9\n"), ["train.batch_sentences=7"]
    ).train
    assert (train.batch_tokens, train.batch_sentences) == (None, 7)


def test_own_data_replace_a_named_corpus() -> None:
    data = Recipe.load("tiny", ["data.train=pairs.tsv"]).data
    assert (data.corpus, data.train) == (None, "pairs.tsv")


@pytest.mark.parametrize(
    "override", ["train.lr", "lr=1", "train.=1", ".lr=1", "=1", "", "train lr=1"]
)
def test_a_malformed_set_is_answered_with_the_form(tmp_path: Path, override: str) -> None:
    assert refusal(write(tmp_path), override).startswith(
        f"--set {override!r}: write it as section.key=value"
    )


def test_set_needs_a_table(tmp_path: Path) -> None:
    assert "'data' is not a table" in refusal(write(tmp_path, "data = 3\n"), "data.train=a")


def test_files_that_are_not_recipes(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    assert re.search(r"no such recipe; .*captions, .*tiny", refusal(path))
    assert refusal(write(tmp_path, "a = = b")).startswith(f"{path}: not TOML: ")
    assert refusal(write(tmp_path, TEXT.encode() + b"# \xff")).startswith(
        f"{path}: not UTF-8 at byte {len(TEXT) + 2};"
    )
    assert refusal(tmp_path) == f"{tmp_path}: cannot read the recipe: Is a directory"
    assert "Not a directory" in refusal(path / "below")


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("multi3k", "multi30k"),
        ("captions.toml", "captions"),
        ("Tatoeba", "tatoeba"),
        ("wmt14", "wmt14-base or wmt14-big"),
    ],
)
def test_a_misspelt_name_is_answered_with_the_nearest(name: str, near: str) -> None:
    assert refusal(name) == f"{name}: no such recipe; did you mean {near}?"


def test_a_path_is_answered_with_the_files_beside_it(tmp_path: Path) -> None:
    path = write(tmp_path)
    for name in ("mien.toml", "mine", "mine.tml"):
        missing = tmp_path / name
        assert refusal(missing) == f"{missing}: no such recipe; did you mean {path}?"


def test_a_byte_order_mark_is_accepted(tmp_path: Path) -> None:
    assert Recipe.load(write(tmp_path, b"\xef\xbb\xbf" + TEXT.encode())) == Recipe.load(
        write(tmp_path)
    )


texts = st.text(st.characters(exclude_categories=["Cs"])) | st.sampled_from(
    ['"', "\\", "a\nb\r\n", '\\"', "'''", "\x7f", "ü\u2028"]
)
paths = texts | st.tuples(texts, texts).map(list)


@given(
    source=texts,
    train=paths,
    test=st.none() | paths | st.dictionaries(texts, paths),
    lr=st.none() | st.floats(min_value=0, exclude_min=True, allow_infinity=False),
    minutes=st.floats(min_value=1e-300, max_value=1e300),
    columns=st.none()
    | st.tuples(st.integers(0, 9), st.integers(10, 99))
    | st.tuples(texts, texts).filter(lambda names: names[0] != names[1]),
)
def test_save_then_load_gives_the_same_recipe(
    source: str,
    train: str | list[str],
    test: Any,
    lr: float | None,
    minutes: float,
    columns: tuple[int, int] | tuple[str, str] | None,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    data = {
        "source": source,
        "target": source + "x",
        "train": train,
        "test": test,
        "columns": columns,
    }
    recipe = Recipe.model_validate(
        {
            "data": data,
            "train": {"minutes": minutes, "lr": lr},
            "tokenizer": {"joint": False},
            "model": {"width": 8},
        }
    )
    path = tmp_path_factory.getbasetemp() / "saved.toml"
    recipe.save(path)
    assert Recipe.load(path) == recipe


def test_save_leaves_derived_values_out(tmp_path: Path) -> None:
    Recipe.model_validate(MINIMAL).save(tmp_path / "saved.toml")
    assert tomllib.loads((tmp_path / "saved.toml").read_text()) == MINIMAL


def test_derived_values() -> None:
    recipe = Recipe.model_validate(MINIMAL | {"model": {"width": 512}})
    assert recipe.model.inner == 2048 and recipe.tie == "all"
    assert recipe.train.peak(512) == pytest.approx((512 * 4000) ** -0.5)
    words = Recipe.model_validate(MINIMAL | {"tokenizer": {"kind": "words"}})
    assert words.tie == "target" and not words.one_vocabulary
