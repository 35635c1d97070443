"""The job files of the guide: the Slurm script runs under a stub of Slurm, the Kubernetes job is valid."""

import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

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
