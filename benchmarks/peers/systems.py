"""The systems that are compared, the environments they run in, and their set-up."""

from dataclasses import dataclass, field


@dataclass(frozen=True)
class System:
    """One row of a table."""

    name: str  # on the command line and in the raw file
    label: str  # in a table
    script: str
    venv: str | None  # name of its requirements; None is the environment of the driver
    setup: str  # in a few words
    options: dict[str, str] = field(default_factory=dict)  # for its worker
    tuned: bool = False  # its worker tries several settings first

    @property
    def ours(self) -> bool:
        return self.venv is None


# Target pieces per source piece: costs 0.02 BLEU on val, one sentence at a time; fewer are hardly
# faster.
SHORTLIST = 30
TRAIN = (
    System("seq2see", "seq2see", "seq2see_train.py", None, "its own training loop"),
    System(
        "torch-nn",
        "torch.nn.Transformer",
        "torch_nn_train.py",
        "torch-nn",
        "pre-norm, causal hint, fused Adam and loss",
    ),
    System(
        "marian",
        "Hugging Face MarianMTModel",
        "marian_train.py",
        "transformers",
        "native loop, SDPA, fused Adam and loss; post-norm",
    ),
    System(
        "joeynmt",
        "Joey NMT",
        "joeynmt_train.py",
        "joeynmt",
        "its own training manager and data set; pre-norm",
    ),
    System(
        "joeynmt-shuffled",
        "Joey NMT, its own batches",
        "joeynmt_train.py",
        "joeynmt",
        "the same, shuffled, as is its default: as many pairs, of any length",
        {"batches": "own"},
    ),
    System(
        "eole",
        "Eole (OpenNMT-py's successor)",
        "eole_train.py",
        "eole",
        "its own trainer and iterator; pre-norm",
    ),
    System(
        "annotated",
        "The Annotated Transformer",
        "annotated_train.py",
        "torch-nn",
        "its own loop; every sentence padded to 72 tokens, as it does",
    ),
)
TRANSLATE = (
    System(
        "seq2see-ct2",
        "seq2see, --engine ct2",
        "seq2see_translate.py",
        None,
        "int8",
        {"variant": "ct2"},
    ),
    System(
        "seq2see-shortlist",
        "seq2see, ct2 with a shortlist",
        "seq2see_translate.py",
        None,
        f"int8, exported with --shortlist {SHORTLIST}",
        {"variant": "ct2-shortlist"},
    ),
    System(
        "seq2see-torch",
        "seq2see, --engine torch",
        "seq2see_translate.py",
        None,
        "float32",
        {"variant": "torch"},
    ),
    System(
        "huggingface",
        "Hugging Face generate",
        "hf_translate.py",
        "transformers",
        "float32, sorted, tuned batch size, early stopping and threads",
        tuned=True,
    ),
    System(
        "joeynmt",
        "Joey NMT",
        "joeynmt_translate.py",
        "joeynmt",
        "float32, sorted, tuned batch size and threads",
        tuned=True,
    ),
    System(
        "ctranslate2",
        "CTranslate2, documented call",
        "ct2_translate.py",
        "ctranslate2",
        "int8, translate_batch(tokens, beam_size)",
        {"variant": "documented"},
    ),
    System(
        "ctranslate2-tuned",
        "CTranslate2, tuned by hand",
        "ct2_translate.py",
        "ctranslate2",
        "int8, tuned workers, threads and batch size",
        {"variant": "tuned"},
        tuned=True,
    ),
    System(
        "ctranslate2-same-search",
        "CTranslate2, tuned, our search",
        "ct2_translate.py",
        "ctranslate2",
        "as tuned by hand, with our patience",
        {"variant": "same-search"},
        tuned=True,
    ),
)
LEFT_OUT = {
    "opennmt": (
        "OpenNMT-py 3.5.1 cannot be installed beside torch 2.13.0 "
        "(pip: it depends on torch<2.3 and >=2.1); Eole is its successor"
    ),
    "annotated": "The Annotated Transformer is not on PyPI and was not given by --annotated",
}
