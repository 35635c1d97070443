"""The job files of the guide: the Slurm script runs under a stub of Slurm, the Kubernetes job is valid."""

import os
import socket
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import torch
from sacrebleu.dataset import DATASETS

from seq2see.errors import InputError
from seq2see.tasks.table import read_recipe
from seq2see.text import corpora
from seq2see.training.passes import number_of_passes

FOLDER = Path(__file__).parents[1] / "docs" / "cluster"
STUBS = {"scontrol": 'echo "localhost"', "srun": 'exec "$@"'}


def test_the_slurm_script_trains_and_continues(toy: Any, tmp_path: Path) -> None:
    script = FOLDER / "train.slurm"
    subprocess.run(["bash", "-n", script], check=True)
    for name, line in STUBS.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{line}\n")
        (tmp_path / name).chmod(0o755)
    toy.path.write_text(
        toy.path.read_text().replace("steps = 160", "steps = 2\naccumulate = 2"), encoding="utf-8"
    )
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = str(probe.getsockname()[1])
    slurm = {"SLURM_JOB_NODELIST": "node", "SLURM_NNODES": "1", "SLURM_JOB_ID": "7"}
    slurm |= {"PROCESSES_PER_NODE": "2", "RENDEZVOUS_PORT": port, "OMP_NUM_THREADS": "1"}
    path = f"{tmp_path}:{Path(sys.executable).parent}:{os.environ['PATH']}"
    run = ["bash", script, toy.path, tmp_path / "run"]
    done = subprocess.run(run, env=os.environ | slurm | {"PATH": path}, capture_output=True)
    assert done.returncode == 0, done.stderr.decode()
    assert (tmp_path / "run" / "scorecard.json").exists()
    assert b"processes: 2" in done.stderr
    refused = subprocess.run(["bash", script], env=os.environ | slurm, capture_output=True)
    assert refused.returncode == 1 and b"the recipe to train" in refused.stderr


def test_the_kubernetes_job_starts_as_many_nodes_as_torchrun_expects() -> None:
    yaml = pytest.importorskip("yaml")
    service, job = yaml.safe_load_all((FOLDER / "train.yaml").read_text(encoding="utf-8"))
    spec = job["spec"]
    pod = spec["template"]["spec"]
    (container,) = pod["containers"]
    assert f"--nnodes={spec['completions']}" in container["command"]
    assert spec["parallelism"] == spec["completions"] and spec["completionMode"] == "Indexed"
    name = job["metadata"]["name"]
    assert pod["subdomain"] == service["metadata"]["name"]
    assert f"--rdzv-endpoint={name}-0.{pod['subdomain']}:29400" in container["command"]
    claims = {volume["name"] for volume in pod["volumes"]}
    assert {mount["name"] for mount in container["volumeMounts"]} == claims


def torchruns() -> list[list[str]]:
    """The commands of the page that start processes on one machine."""
    page = (FOLDER.parent / "cluster.md").read_text(encoding="utf-8")
    return [line[2:].split() for line in page.splitlines() if line.startswith("$ torchrun ")]


@pytest.mark.parametrize("command", torchruns(), ids=" ".join)
def test_an_update_has_a_pass_for_each_process(command: list[str]) -> None:
    options = dict(pairwise(command))
    sets = [value for option, value in pairwise(command) if option == "--set"]
    config = read_recipe(command[command.index("train") + 1], sets).train
    processes = int(options["--nproc-per-node"])
    tokens = config.accumulate * (config.batch_tokens or 4096)
    kinds = ("cpu", "cuda") if processes > 2 else ("cpu",)
    for kind in kinds:
        device = torch.device(kind)
        assert number_of_passes(tokens, config.accumulate, device) % processes == 0, kind


@pytest.mark.parametrize("name", ["wmt14-base", "wmt14-big"])
def test_the_wmt14_recipes_read_the_public_files(name: str, tmp_path: Path) -> None:
    config = read_recipe(name).data
    with pytest.raises(InputError, match=r"newstest2013.en: no such file; paths are relative to"):
        corpora.load(config, tmp_path)
    files = {"europarl-v7.de-en": 5, "commoncrawl.de-en": 4, "news-commentary-v9.de-en": 3}
    for file, count in (files | {"newstest2013": 2, "newstest2014": 1}).items():
        for language in ("de", "en"):
            lines = "".join(f"{file} {number} {language}\n" for number in range(count))
            (tmp_path / f"{file}.{language}").write_text(lines)
    corpus = corpora.load(config, tmp_path)
    assert [len(corpus.train.pairs), len(corpus.val.pairs)] == [12, 2]
    assert list(corpus.tests) == ["newstest2014"]
    assert all(source.endswith("en") for source, _ in corpus.train.pairs)
    for test_set, pairs in (("wmt13", "newstest2013"), ("wmt14/full", "newstest2014")):
        assert any(pairs in path for path in DATASETS[test_set].langpairs["en-de"])
