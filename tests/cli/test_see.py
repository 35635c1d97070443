"""`seq2see see`: a valid call writes files and tables, an invalid one gets one line."""

import re
import sys
from collections.abc import Callable
from pathlib import Path

import matplotlib.image
import pytest

from seq2see.cli import main as cli
from seq2see.see import attention, masks, scaling
from seq2see.see.attribution import METHODS

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def see(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    def run(*arguments: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["seq2see", "see", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        assert isinstance(ended.value.code, int)
        return ended.value.code, *capsys.readouterr()

    return run


def test_masks_alone_prints_every_kind_on_six_tokens(see: Run) -> None:
    code, out, error = see("masks")
    assert (code, error) == (0, "")
    for kind in masks.KINDS:
        assert f"\n{kind}: " in out
    for letter, (reason, _) in masks.REASONS.items():
        assert f"\n{letter} {reason}\n" in out
    assert "\n       Dogs  bark  .  Cats  sleep  .\n" in out


def test_masks_take_a_sentence_kinds_and_sizes(see: Run, tmp_path: Path) -> None:
    path = tmp_path / "masks.svg"
    code, out, _ = see(
        "masks",
        "a b c",
        "--kind",
        "window",
        "--kind",
        "prefix",
        "--reach",
        2,
        "--prefix",
        1,
        "--out",
        path,
    )
    assert code == 0
    assert "window: at most 2 away" in out and "prefix: the first 1, itself and earlier ones" in out
    assert "prefix" in path.read_text(encoding="utf-8")


def test_positions_draws(see: Run, learned: Path, tmp_path: Path) -> None:
    assert see("positions", "--length", 20, "--width", 8, "--out", tmp_path / "a.png") == (
        0,
        "",
        "",
    )
    assert see("positions", "--model", learned, "--out", tmp_path / "b.png") == (0, "", "")
    alone, with_model = (matplotlib.image.imread(tmp_path / f"{name}.png") for name in "ab")
    assert with_model.shape[0] > 1.4 * alone.shape[0]


def test_scaling_draws_and_prints(
    see: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(scaling, "SIZES", [4, 8])
    code, out, error = see("scaling", "--out", tmp_path / "a.png")
    assert (code, error) == (0, "") and out.startswith("variance of the scores\nsize ")
    assert matplotlib.image.imread(tmp_path / "a.png").std() > 0.05


def test_schedule_draws_the_papers_rates_or_a_recipes(see: Run, tmp_path: Path) -> None:
    code, out, error = see("schedule", "--out", tmp_path / "a.png")
    assert (code, error) == (0, "")
    assert "d = 512, warm-up 3,000    5.4e-07  8.1e-04      3,000" in out
    assert "d = 512, warm-up 4,000    3.5e-07  7.0e-04      4,000" in out
    call = ("schedule", "captions", "tiny", "--updates", 700, "--out", tmp_path / "a.svg")
    code, out, _ = see(*call)
    assert code == 0 and "captions, 700 updates" in out and "tiny, 700 updates" in out
    assert "captions, 700 updates" in (tmp_path / "a.svg").read_text(encoding="utf-8")


def test_ideas_corpora_and_logs_are_drawn_as_pages(see: Run, trained: Path, tmp_path: Path) -> None:
    for arguments, says in (
        (("smoothing", "--epsilon", 0.2, "--classes", 8), "= 0.8588"),
        (("bleu", "a b c d e", "a b c d f"), "4-grams: 1 of 2 = 0.500"),
        (("batch", "--sentences", 2, "--seed", 3), "target_in (B, T): the decoder reads, (2, "),
        (("training", trained), "best BLEU"),
        (("training", trained, "--by", "minutes"), "best BLEU"),
        (("masks",), "may attend"),
        (("shapes", "drei acht", "--model", trained), "encoder.0.self_attention.weights"),
        (("beam", "drei acht", "--model", trained, "--beam", 2), "greedy"),
        (("heads", "--sentences", 3, "--model", trained), "the aligner: cross-attention, layer"),
    ):
        page = tmp_path / f"{arguments[0]}.html"
        code, out, error = see(*arguments, "--out", page)
        assert (code, error) == (0, "") and says in out
        html = page.read_text(encoding="utf-8")
        assert html.count("<svg") == 2 and "<table>" in html


def test_heads_are_measured_on_files_without_gold_links(
    see: Run, trained: Path, tmp_path: Path
) -> None:
    source, reference = tmp_path / "a.de", tmp_path / "a.en"
    source.write_text("drei acht\neins zwei\n", encoding="utf-8")
    reference.write_text("three eight\none two\n", encoding="utf-8")
    options = ("--model", trained, "--source", source, "--reference", reference)
    code, out, error = see("heads", *options, "--out", tmp_path / "a.png", "--dark")
    assert (code, error) == (0, "")
    assert "cross-attention, layer 2, head 1" in out and "aligner" not in out
    code, _, error = see("heads", *options[:4], "--out", tmp_path / "a.png")
    assert code == 2 and "needs the --reference that translates it" in error


def test_attention_draws_a_kind_a_layer_or_a_head(see: Run, trained: Path, tmp_path: Path) -> None:
    call = ("attention", "drei acht eins", "--model", trained, "--out", tmp_path / "a.svg")
    drawn = {}
    for name, options in (
        ("all", ()),
        ("cross", ("--kind", "cross")),
        ("layer", ("--kind", "cross", "--layer", 2)),
        ("head", ("--layer", 2, "--head", 1)),
    ):
        code, out, error = see(*call, *options, "--dark")
        assert (code, out, error) == (0, "three eight one\n", "")
        drawn[name] = (tmp_path / "a.svg").read_text(encoding="utf-8")
    assert ">Encoder self-attention<" in drawn["all"]
    assert ">Encoder self-attention<" not in drawn["cross"]
    assert ">layer 1, head 1<" in drawn["cross"]
    assert ">layer 1, head 1<" not in drawn["layer"] and ">layer 2, head 2<" in drawn["layer"]
    assert ">Cross-attention, layer 2, head 1<" in drawn["head"]
    assert all(">attention weight<" in svg for svg in drawn.values())


def test_attention_too_tall_for_a_page_is_cut(
    see: Run, trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(attention, "PAGE_HEIGHT", 5.0)
    call = ("attention", "drei acht eins", "--model", trained, "--out")
    code, out, _ = see(*call, tmp_path / "a.png")
    pages = [tmp_path / f"a-{number}.png" for number in (1, 2, 3)]
    assert (code, out) == (0, "\n".join(["three eight one", *map(str, pages), ""]))
    assert all(matplotlib.image.imread(page).shape[0] < 900 for page in pages)
    assert see(*call, tmp_path / "a.html")[:2] == (0, "three eight one\n")


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--kind", "self"), "--kind 'self' is not one of encoder, decoder, cross"),
        (("--head", 1), "--head 1 needs its --layer"),
        (("--layer", 3), "--layer 3: must be at most 2 for attention"),
        (("--layer", 2, "--head", 3), "--head 3: must be at most 2 for cross-attention, layer 2"),
        (("--layer", 0), "Invalid value for '--layer'"),
    ],
)
def test_attention_refuses(
    see: Run, trained: Path, tmp_path: Path, options: tuple[object, ...], says: str
) -> None:
    out = tmp_path / "a.png"
    code, said, error = see("attention", "drei", "--model", trained, "--out", out, *options)
    assert (code, said) == (2, "")
    assert error.startswith(f"seq2see: {says}") and error.count("\n") == 1


def test_an_image_model_has_no_kinds(see: Run, pictured: Path, tmp_path: Path) -> None:
    picture, out = pictured.parent / "digit.png", tmp_path / "a.png"
    call = ("attention", picture, "--model", pictured, "--out", out)
    assert see(*call, "--dark")[0] == 0
    code, _, error = see(*call, "--layer", 1)
    assert (code, error) == (2, "seq2see: --layer 1: for translation, not for an image model\n")


@pytest.mark.parametrize("command", ["beam", "shapes"])
def test_an_empty_text_is_refused(see: Run, trained: Path, tmp_path: Path, command: str) -> None:
    code, _, error = see(command, " ", "--model", trained, "--out", tmp_path / "a.png")
    assert (code, error) == (2, "seq2see: the text is empty\n")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["masks", "--out", "a.pdf"], "--out a.pdf: must end in .png, .svg or .html"),
        (
            ["masks", "--kind", "hidden"],
            "--kind 'hidden' is not one of padding, causal, window, prefix, order, packed",
        ),
        (["masks", "--reach", "-1"], "Invalid value for '--reach'"),
        (["masks", "a b", "--prefix", "3"], "--prefix 3 must be at most 2, the number of words"),
        (["masks", " "], "TEXT has 0 words; a table has 1 to 40"),
        (["positions"], "Missing option '--out'"),
        (["positions", "--out", "no/a.png"], "--out no/a.png: there is no folder no"),
        (
            ["positions", "--out", "a.png", "--width", "7"],
            "--width 7 must be even: each sine has its cosine",
        ),
        (["positions", "--out", "a.png", "--length", "0"], "Invalid value for '--length'"),
        (["positions", "--out", "a.png", "--model", "no"], "no: no such model directory"),
        (["scaling", "--out", "a.txt"], "--out a.txt: must end in .png, .svg or .html"),
        (["scaling", "--out", "a.html", "--dark"], "--dark: a.html is light or dark as its"),
        (
            ["schedule", "captions", "--width", "512", "--out", "a.png"],
            "--width and --warmup are the recipe's own; leave them out",
        ),
        (["schedule", "captoins", "--out", "a.png"], "captoins"),
        (["smoothing", "--epsilon", "1", "--out", "a.png"], "Invalid value for '--epsilon'"),
        (["bleu", "", "a", "--out", "a.png"], "OUTPUT has 0 words; a figure has 1 to 40"),
        (["bleu", "a", "a", "--tokenize", "x", "--out", "a.png"], "tokenize = 'x' is not one of"),
        (["batch", "none.tsv", "--out", "a.png"], "none.tsv: no such file"),
        (["training", "none", "--out", "a.png"], "none/log.jsonl: cannot read the log of a run"),
        (["training", "a", "--by", "days", "--out", "a.png"], "--by 'days' is not one of updates"),
        (["training", *"abcdefg", "--out", "a.png"], "7 runs; a figure has at most 6"),
        (["norms", "--out", "a"], "--out a: must end in .png, .svg or .html"),
    ],
)
def test_a_mistake_is_one_line(see: Run, arguments: list[str], says: str) -> None:
    code, out, error = see(*arguments)
    assert (code, out) == (2, "")
    assert error.startswith(f"seq2see: {says}") and error.count("\n") == 1


def test_a_model_without_learned_positions_is_refused(
    see: Run, trained: Path, tmp_path: Path
) -> None:
    code, out, error = see("positions", "--model", trained, "--out", tmp_path / "a.png")
    assert (code, out) == (2, "") and error.startswith(
        f'seq2see: {trained}: model.positions is "sinusoidal"; only '
    )


def test_painting_draws_its_views(see: Run, painted: Path, tmp_path: Path) -> None:
    options = ("--model", painted, "--seed", 4)
    forming, guidance = tmp_path / "forming.svg", tmp_path / "guidance.png"
    call = ("painting", "A red star", *options, "--steps", 3, "--guidance", 2, "--out", forming)
    assert see(*call) == (0, "", "")
    text = forming.read_text(encoding="utf-8")
    assert "seed 4, 3 steps, guidance 2" in text and ">star<" in text
    assert see("painting", "ring", *options, "--view", "guidance", "--out", guidance) == (0, "", "")
    assert matplotlib.image.imread(guidance).std() > 0.05


def test_painting_merges_half_of_the_positions_or_as_told(
    see: Run, painted: Path, tmp_path: Path
) -> None:
    out = tmp_path / "merging.svg"
    options = ("ring", "--model", painted, "--steps", 2, "--out", out)
    for more, says in (
        (("--view", "merging"), "merging ratio 0.5"),
        (("--view", "merging", "--merge", 0.25), "256 → 192 positions"),
        (("--merge", 0.75), "merging ratio 0.75"),
    ):
        assert see("painting", *options, *more) == (0, "", "")
        assert says in out.read_text(encoding="utf-8")


def test_painting_names_words_that_the_model_never_saw(
    see: Run, painted: Path, tmp_path: Path
) -> None:
    options = ("--model", painted, "--out", tmp_path / "a.png")
    code, out, error = see("painting", "a red elephant", *options)
    assert (code, out) == (0, "") and "no training prompt has 'elephant'" in error


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["", "--out", "a.png"], "prompt 1 ('') has no words"),
        (["ring", "--out", "a.gif"], "--out a.gif: must end in .png, .svg or .html"),
        (["ring", "--out", "."], "--out .: must end in .png, .svg or .html"),
        (["ring", "--out", "folder.png"], "--out folder.png: cannot write: Is a directory"),
        (
            ["ring", "--out", "a.png", "--view", "guidence"],
            "--view 'guidence' is not one of forming, guidance, merging",
        ),
        (
            ["ring", "--out", "a.png", "--view", "guidance", "--guidance", "2.5"],
            "--guidance 2.5: --view guidance draws several; leave it out",
        ),
        (["ring", "--out", "a.png", "--guidance", "0"], "guidance 0 ignores the prompt"),
        (["ring", "--out", "a.png", "--steps", "0"], "Invalid value for '--steps'"),
        (["ring", "--out", "a.png", "--merge", "0.8"], "Invalid value for '--merge'"),
        (
            ["ring", "--out", "a.png", "--view", "merging", "--merge", "0"],
            "nothing is merged; --merge takes the share of positions, above 0",
        ),
    ],
)
def test_painting_refuses(
    see: Run,
    painted: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    says: str,
) -> None:
    (tmp_path / "folder.png").mkdir()
    monkeypatch.chdir(tmp_path)
    code, out, error = see("painting", "--model", painted, *arguments)
    assert (code, out) == (2, "")
    assert error.startswith(f"seq2see: {says}") and error.count("\n") == 1


def test_painting_needs_a_diffusion_model(see: Run, trained: Path, tmp_path: Path) -> None:
    code, out, error = see("painting", "ring", "--model", trained, "--out", tmp_path / "a.png")
    says = f"seq2see: {trained}: a model of task 'translate', which is for seq2see translate\n"
    assert (code, out, error) == (2, "", says)


@pytest.mark.parametrize("method", ["erasure", "rollout"])
def test_attribution_draws_and_prints_the_translation(
    see: Run, trained: Path, tmp_path: Path, method: str
) -> None:
    out = tmp_path / "a.svg"
    options = ("--model", trained, "--method", method, "--out", out)
    assert see("attribution", "drei acht eins", *options) == (0, "three eight one\n", "")
    text = re.sub(r"<[^>]*>", "", out.read_text(encoding="utf-8"))
    assert METHODS[method].unit in text and "source token" in text
    assert see("attribution", "drei acht", *options, "--target", "two") == (0, "two\n", "")


def test_attribution_refuses(see: Run, trained: Path, tmp_path: Path) -> None:
    out = tmp_path / "a.png"
    for model, method, text, says in (
        ("no", "magic", "drei", "method 'magic' is not one of erasure, gradient, "),
        (trained, "norm", " ", "the source has no tokens to attribute to"),
        (trained, "norm", "drei " * 200, "the source has more than the model's "),
    ):
        code, printed, error = see(
            "attribution", text, "--model", model, "--method", method, "--out", out
        )
        assert (code, printed) == (2, "") and not out.exists()
        assert error.startswith(f"seq2see: {says}") and error.count("\n") == 1
