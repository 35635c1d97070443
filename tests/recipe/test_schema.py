"""Recipe keys: which values and combinations are accepted, and the message for the others."""

import re
from pathlib import Path
from typing import Any

import pytest

from seq2see.errors import InputError
from seq2see.recipe.schema import Recipe

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


@pytest.mark.parametrize(
    ("override", "says"),
    [
        ("model.widht=8", "unknown key model.widht; did you mean model.width?"),
        (
            "train.learning_rate=0.1",
            "unknown key train.learning_rate; known: train.steps, train.epochs",
        ),
        ("train.beam=2", "unknown key train.beam; did you mean decode.beam?"),
        ("train.batch_token=2", "unknown key train.batch_token; did you mean train.batch_tokens?"),
        ("modle.width=8", "unknown key modle; did you mean model?"),
        ("tokenizer.path=a", "unknown key tokenizer.path; known: tokenizer.kind, tokenizer.size"),
        ("model.depth=6", "unknown key model.depth; known: model.kind, model.width"),
        (
            "model.layers=6",
            "unknown key model.layers; did you mean model.encoder_layers or model.decoder_layers?",
        ),
        ("model.qqq=1", "unknown key model.qqq; known: model.kind, model.width"),
        ("model.width='wide'", "model.width = 'wide': input should be a valid integer"),
        ("model.width=2.5", "model.width = 2.5: input should be a valid integer"),
        ("model.width=true", "model.width = True: input should be a valid integer"),
        ("model.width=0", "model.width = 0: input should be greater than or equal to 1"),
        ("model.dropout=1.0", "model.dropout = 1.0: input should be less than 1"),
        ("model.norm=middle", "model.norm = 'middle': input should be 'pre' or 'post'"),
        ("train.lr=nan", "train.lr = nan: input should be a finite number"),
        ("train.lr=0", "train.lr = 0: input should be greater than 0"),
        ("train.minutes=-1", "train.minutes = -1: input should be greater than 0"),
        ("train.seed=-1", "train.seed = -1: input should be greater than or equal to 0"),
        ("decode.beam=65", "decode.beam = 65: input should be less than or equal to 64"),
        ("tokenizer.joint=1", "tokenizer.joint = 1: input should be a valid boolean"),
        ("data.train=3", "data.train = 3: input should be a valid string"),
        ("data.join=0", "data.join = 0: input should be greater than or equal to 1"),
        ("data.test=3", "data.test = 3: input should be a valid "),
        ("data.columns=[0]", "data.columns = [0] must be two numbers from 0 or two names"),
        ("data.columns=[0, -1]", "data.columns = [0, -1] must be two numbers from 0 or two names"),
        ('data.columns=[0, "en"]', "data.columns = [0, 'en'] must be two numbers from 0 or two"),
        ("data.columns=en", "data.columns = 'en' must be two numbers from 0 or two names"),
        ("model.heads=3", "model.width (256) must be divisible by model.heads (3)"),
        (
            "data.corpus=wmt",
            "data.corpus = 'wmt': input should be 'captions', 'multi30k', 'digits', 'fashion' or 'scenes'",
        ),
        ("data.target=de", "data.source and data.target are both 'de'; they must differ"),
        ("data.columns=[2, 2]", "data.columns = [2, 2] must be two different columns"),
        (
            'data.train=["a", "b", "c"]',
            "data.train lists 3 files; two aligned files are [source, target]",
        ),
        ('data.val=["a"]', "data.val lists 1 files; two aligned files are [source, target]"),
        ('data.test=["a"]', "data.test lists 1 files; two aligned files are [source, target]"),
        (
            'data.test={news = ["a"]}',
            "data.test.news lists 1 files; two aligned files are [source, target]",
        ),
    ],
)
def test_one_line_names_file_key_value_and_rule(tmp_path: Path, override: str, says: str) -> None:
    path = write(tmp_path)
    assert refusal(path, override).startswith(f"{path}: {says}")


@pytest.mark.parametrize(
    ("overrides", "says"),
    [
        (
            ["model.width=9", "model.heads=3"],
            "model.width (9) must be even for sinusoidal positions",
        ),
        (
            ["model.attention_width=90"],
            "model.attention_width (90) must be divisible by model.heads (4)",
        ),
        (
            ["model.attention_width=20", "model.positions=rotary"],
            "model.attention_width / model.heads (5) must be even",
        ),
        (
            ["model.positions=learned", "data.max_length=256"],
            "model.max_positions (256) must be more than data.max_length (256): </s> has a",
        ),
        (
            ["model.positions=learned", "decode.min_length=256"],
            "model.max_positions (256) must be more than decode.min_length (256)",
        ),
        (
            ["tokenizer.kind=bpe", "tokenizer.sampling=0.5"],
            "tokenizer.sampling needs tokenizer.kind 'unigram', not 'bpe'",
        ),
        (["tokenizer.kind=words", "tokenizer.joint=true"], "tokenizer.joint is for subwords"),
        (["tokenizer.joint=false", "model.tie=all"], "model.tie 'all' needs one vocabulary"),
        (["tokenizer.kind=words", "model.tie=all"], "model.tie 'all' needs one vocabulary"),
        (
            ["data.corpus=multi30k", "data.val=v.tsv"],
            "data.corpus 'multi30k' brings its own val and test",
        ),
        (
            ["model.kind=lstm", "model.width=9"],
            "model.width (9) must be even: half of it reads the source from each",
        ),
        (
            ["model.kind=conv", "model.width=9"],
            "model.width (9) must be even for sinusoidal positions",
        ),
        (
            ["model.kind=conv", "model.positions=rotary"],
            "model.positions 'rotary' is for self-attention, which",
        ),
        (
            ["model.kind=gru", "model.attend=false", "model.score=dot"],
            "model.score is for attention, and model.attend",
        ),
        (
            ["model.kind=conv", "model.positions=learned", "data.max_length=256"],
            "model.max_positions (256) must be more than data.max_length (256): </s> has a",
        ),
    ],
)
def test_impossible_combinations(tmp_path: Path, overrides: list[str], says: str) -> None:
    path = write(tmp_path)
    assert refusal(path, *overrides).startswith(f"{path}: {says}")


@pytest.mark.parametrize(
    ("kind", "setting", "user"),
    [
        ("lstm", "norm=pre", "transformer"),
        ("rnn", "heads=4", "transformer"),
        ("gru", "positions=sinusoidal", "conv"),
        ("gru", "kernel=3", "conv"),
        ("conv", "feed_forward=8", "transformer"),
        ("conv", "attend=true", "gru"),
        ("conv", "embedding_init=normal", "transformer"),
        ("transformer", "attend=true", "lstm"),
        ("transformer", "kernel=3", "conv"),
    ],
)
def test_a_key_that_this_kind_of_model_does_not_use(
    tmp_path: Path, kind: str, setting: str, user: str
) -> None:
    path, key = write(tmp_path), setting.partition("=")[0]
    said = refusal(path, f"model.kind={kind}", f"model.{setting}")
    assert re.fullmatch(
        f"{path}: model.{key} is for model.kind .*'{user}'.*, not for {kind!r}", said
    )


@pytest.mark.parametrize("kind", ["rnn", "lstm", "gru", "conv"])
def test_defaults_of_unused_keys_are_not_checked(tmp_path: Path, kind: str) -> None:
    # The 4 heads of the default do not divide 6.
    recipe = Recipe.load(write(tmp_path), [f"model.kind={kind}", "model.width=6"])
    recipe.save(tmp_path / "saved.toml")
    assert Recipe.load(tmp_path / "saved.toml") == recipe


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (
            "[data]\ntrain = 'a'\n[train]\nsteps = 1\nepochs = 1\n",
            "give exactly one of .* not steps and epochs",
        ),
        ("[data]\ntrain = 'a'\n[train]\n", "give exactly one of .* not none"),
        ("[data]\ntrain = 'a'\n", "train is missing"),
        ("[train]\nsteps = 1\n", "data is missing"),
        ("", "data is missing"),
        (
            TEXT + "batch_tokens = 1\nbatch_sentences = 1\n",
            "give train.batch_tokens or train.batch_sentences, not both",
        ),
        (
            "[data]\ntrain = 'a'\ncorpus = 'captions'\n[train]\nsteps = 1\n",
            "give either data.corpus .*, data.train .* or data.mix",
        ),
        ("[data]\n[train]\nsteps = 1\n", "give either data.corpus .*, data.train .* or data.mix"),
        ("data = 3\n[train]\nsteps = 1\n", "data = 3: input should be a valid dictionary"),
        ("lr = 1\n" + TEXT, "unknown key lr; did you mean train.lr?"),
        (TEXT + "stepps = 3\n", "unknown key train.stepps; did you mean train.steps"),
    ],
)
def test_incomplete_and_contradictory_files(tmp_path: Path, text: str, says: str) -> None:
    path = write(tmp_path, text)
    assert re.match(f"{re.escape(str(path))}: {says}", refusal(path))


def test_a_misspelt_key_is_named_before_the_missing_one(tmp_path: Path) -> None:
    path = write(tmp_path, "[data]\ntrain = 'a'\n[train]\nstep = 5\n[modle]\nwidth = 8\n")
    assert "unknown key" in refusal(path)


@pytest.mark.parametrize(
    ("overrides", "says"),
    [
        (["kind=merge", "r=[1, 2]"], "reduce.r has 2 numbers; model.encoder_layers is 3"),
        (
            ["kind=merge", "r=-1"],
            "reduce.r = -1: must be a whole number of at least 0, or one for each layer",
        ),
        (["kind=merge", "r=0.5"], "reduce.r = 0.5: must be a whole number"),
        (
            ["kind=prune", "thresholds=[0.1, 2.0, 1]"],
            "reduce.thresholds = [0.1, 2.0, 1]: must be a number from 0 to 1",
        ),
        (["kind=prune", "mode=top", "keep=[0.5]"], "reduce.keep has 1 numbers"),
        (["kind=merge", "r=[1, 2, 3]", "schedule=decreasing"], "a list is a schedule itself"),
        (["r=8"], "reduce.r is for reduce.kind 'merge'"),
        (["kind=prune", "match=neighbours"], "reduce.match is for reduce.kind 'merge'"),
        (["kind=merge", "mode=top"], "reduce.mode is for reduce.kind 'prune'"),
        (
            ["kind=prune", "keep=0.3"],
            "reduce.keep is for reduce.kind 'prune' and reduce.mode 'top'",
        ),
        (["kind=prune", "mode=top", "thresholds=0.3"], "reduce.thresholds is for"),
        (
            ["kind=prune", "penalty=0.3"],
            "reduce.penalty is for reduce.kind 'prune' and reduce.mode 'soft'",
        ),
        (
            ["kind=prune", "mode=soft", "temperature=0"],
            "reduce.temperature = 0: input should be greater than 0",
        ),
        (["kind=merge", "model.positions=rotary"], "model.positions 'rotary' is for all tokens"),
        (
            ["kind=merge", "model.kind=lstm"],
            "reduce.kind 'merge' is for encoders of model.kind 'transformer'",
        ),
        (["kin=merge"], "unknown key reduce.kin; did you mean reduce.kind?"),
    ],
    ids=str,
)
def test_impossible_merging_and_pruning_is_refused(
    tmp_path: Path, overrides: list[str], says: str
) -> None:
    keys = [key if key.startswith("model.") else f"reduce.{key}" for key in overrides]
    assert says in refusal(write(tmp_path), *keys)


@pytest.mark.parametrize(
    "keys",
    [
        {"kind": "merge", "r": [4, 2, 0]},
        {"kind": "merge", "r": 2, "schedule": "decreasing", "match": "neighbours"},
        {"kind": "prune", "thresholds": 0},
        {
            "kind": "prune",
            "mode": "soft",
            "thresholds": [0.1, 0.2, 1],
            "temperature": 0.1,
            "penalty": 2,
        },
        {"kind": "prune", "mode": "top", "keep": 1},
    ],
    ids=str,
)
def test_merging_and_pruning_are_saved(tmp_path: Path, keys: dict[str, Any]) -> None:
    recipe = Recipe.model_validate(MINIMAL | {"reduce": keys})
    recipe.save(tmp_path / "saved.toml")
    assert Recipe.load(tmp_path / "saved.toml") == recipe
