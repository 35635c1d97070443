"""Measure seq2see beside its peers, each in its own environment, on equal batches and weights.

    python benchmarks/peers/run.py setup                    create the environments beforehand
    python benchmarks/peers/run.py train                    both sizes, all systems, five rounds
    python benchmarks/peers/run.py translate --model DIR    a pre-norm model, one SentencePiece
                                                            vocabulary
    python benchmarks/peers/run.py all --model DIR

Each round starts every system's worker once, in turn; medians are over rounds, ratios within a
round. The raw file is written after every worker; a peer that fails leaves its reason there and
does not affect the others. Called again with the same settings, it runs the missing rounds and
retries what failed.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import prepare
import venvs
from record import Record, begin, fail, now, raw, saver, say, score
from systems import LEFT_OUT, TRAIN, TRANSLATE, System

from seq2see.bench.rounds import turns
from seq2see.scoring.card import machine

HERE = Path(__file__).parent
RESULTS = HERE.parent / "results"
CACHE = HERE / ".cache"
TUNING = 3  # times the time limit: tuning tries every setting
LOAD = 0.5  # of a core; more before the start means that something else is running


class Failed(Exception):
    """The reason why a worker failed."""


def work(system: System, job: Record, options: argparse.Namespace) -> Record:
    """Run a system's worker once; the last line of its output is the result."""
    limit = options.timeout * (TUNING if job.get("tune") else 1)
    interpreter = Path(sys.executable) if system.venv is None else venvs.python(system.venv)
    threads = str(options.threads)
    quiet = {"HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false", "PYTHONUNBUFFERED": "1"}
    environment = os.environ | quiet | {"OMP_NUM_THREADS": threads, "MKL_NUM_THREADS": threads}
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch) / "job.json"
        path.write_text(json.dumps(job | system.options | {"scratch": scratch}), encoding="utf-8")
        command = [str(interpreter), str(HERE.resolve() / system.script), str(path)]
        try:
            done = subprocess.run(
                command, cwd=scratch, env=environment, capture_output=True, text=True, timeout=limit
            )
        except subprocess.TimeoutExpired:
            raise Failed(f"took longer than {limit:g} s") from None
    (CACHE / f"{system.name}.log").write_text(done.stdout + done.stderr, encoding="utf-8")
    try:
        result: Record = json.loads(done.stdout.strip().split("\n")[-1])
        assert done.returncode == 0 and isinstance(result, dict)
    except (ValueError, AssertionError):
        message = done.stderr.strip() or f"exit code {done.returncode}"
        raise Failed(message.split("\n")[-1]) from None
    return result


def start(
    systems: Sequence[System],
    everybody: Sequence[System],
    settings: Record,
    path: Path,
    options: argparse.Namespace,
) -> Record:
    """Begin or continue a record, and create the environments that it needs."""
    conditions = {
        "machine": machine() | {"threads": options.threads},
        "seconds": options.seconds,
    }
    record = begin(systems, everybody, settings | conditions, path, options.fresh)
    for system in systems:
        entry = record["systems"][system.name]
        if system.venv is not None and len(entry["rounds"]) < options.rounds:
            say(f"{system.name}: environment {system.venv} …")
            try:
                venvs.ensure(system.venv)
            except venvs.NotInstalled as error:
                fail(entry, system, error)
    return record


def measure(
    systems: Sequence[System],
    jobs: dict[str, Record],
    record: Record,
    options: argparse.Namespace,
    save: Callable[[], None],
    then: Callable[[str], None] = lambda name: None,
) -> bool:
    """Run the missing rounds, every other one in reverse order; return whether all succeeded."""
    unit = record["unit"]
    for number, system in turns(systems, range(1, options.rounds + 1), alternate=True):
        entry = record["systems"][system.name]
        if "failed" in entry or number in [row["round"] for row in entry["rounds"]]:
            continue
        try:
            result = work(system, jobs[system.name], options)
        except Failed as error:
            fail(entry, system, error)
        else:
            entry["rounds"].append(result | {"round": number, "date": now()})
            record |= {"date": now(), "load_before": max(options.load, record["load_before"])}
            rate = f"{result[unit]:,.1f} {unit.replace('_', ' ')}"
            figures = f"{rate} · {result['peak_memory_mb']:,.0f} MB"
            say(f"round {number}/{options.rounds} · {record['of']} · {system.name}: {figures}")
            then(system.name)
        save()
    save()
    return not any("failed" in record["systems"][system.name] for system in systems)


def chosen(systems: Sequence[System], options: argparse.Namespace) -> list[System]:
    """Return our systems and the requested peers."""
    unknown = set(options.peer or []) - {system.name for system in (*TRAIN, *TRANSLATE)}
    if unknown:
        names = ", ".join(system.name for system in systems)
        raise SystemExit(f"--peer {' '.join(sorted(unknown))}: not one of {names}")
    return [
        system
        for system in systems
        if system.ours or not options.peer or system.name in options.peer
    ]


def train(options: argparse.Namespace) -> bool:
    systems = [
        system
        for system in chosen(TRAIN, options)
        if options.annotated or system.name != "annotated"
    ]
    path = options.out or RESULTS / "peers-train.json"
    say("writing the batches of all systems …")
    facts = prepare.training(CACHE / "train")
    good = True
    for size in options.size:
        model = prepare.SIZES[size] | facts
        settings = {"of": size, "unit": "target_tokens_per_second", "model": model}
        record = start(systems, TRAIN, settings, path, options)
        record["left_out"] = {
            name: reason for name, reason in LEFT_OUT.items() if name not in record["systems"]
        }
        job = {
            "data": str((CACHE / "train").resolve()),
            "model": model,
            "overrides": prepare.overrides(size),
            "seconds": options.seconds,
            "threads": options.threads,
            "annotated": options.annotated and str(options.annotated.resolve()),
        }
        jobs = dict.fromkeys([system.name for system in systems], job)
        good &= measure(systems, jobs, record, options, saver(path, record))
    say(f"written: {path}")
    return good


def translate(options: argparse.Namespace) -> bool:
    require_model(options)
    systems = chosen(TRANSLATE, options)
    path = options.out or RESULTS / "peers-translate.json"
    name = f"beam {options.beam}"
    say("writing the weights of all systems, exporting for CTranslate2 …")
    known = None if options.fresh else raw(path).get(name, {}).get("exported")
    facts, references = prepare.translation(CACHE / "translate", options.model, known)
    directory = facts.pop("model_directory")
    settings = facts | {
        "of": name,
        "unit": "sentences_per_second",
        "beam": options.beam,
        "test": prepare.TEST,
        "sentences": options.sentences or len(references),
    }
    record = start(systems, TRANSLATE, settings, path, options)
    save = saver(path, record)
    job = facts | {
        "data": str((CACHE / "translate").resolve()),
        "model_directory": directory,
        "beam": options.beam,
        "seconds": options.seconds,
        "threads": options.threads,
        "sentences": options.sentences,
        "tune": False,
    }
    outputs = {system.name: CACHE.resolve() / f"{system.name}.outputs.json" for system in systems}
    jobs = {}
    for system in systems:
        own = job | {"outputs": str(outputs[system.name])}
        setting = tuned(system, own, record, options, save)
        jobs[system.name] = own | {"setting": setting}

    def score_outputs(name: str) -> None:
        score(record, name, outputs[name], references)

    good = measure(systems, jobs, record, options, save, score_outputs)
    say(f"written: {path}")
    return good


def tuned(
    system: System,
    job: Record,
    record: Record,
    options: argparse.Namespace,
    save: Callable[[], None],
) -> Record | None:
    """Return the fastest setting of a system, tuning it if that has not been done."""
    entry = record["systems"][system.name]
    if system.tuned and "tuning" not in entry and "failed" not in entry:
        say(f"{system.name}: trying settings …")
        try:
            entry["tuning"] = work(system, job | {"tune": True}, options)
        except Failed as error:
            fail(entry, system, error)
        save()
    setting: Record | None = entry.get("tuning", {}).get("setting")
    return setting


def setup(options: argparse.Namespace) -> bool:
    systems = (*chosen(TRAIN, options), *chosen(TRANSLATE, options))
    good = True
    for name in dict.fromkeys(system.venv for system in systems if system.venv):
        say(f"environment {name} …")
        try:
            venvs.ensure(name)
        except venvs.NotInstalled as error:
            say(f"{name}: FAILED: {error}")
            good = False
    return good


def require_model(options: argparse.Namespace) -> None:
    if options.model is None:
        raise SystemExit("--model DIR is missing: all systems translate with its weights")


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("what", choices=("setup", "train", "translate", "all"))
    add("--size", nargs="+", choices=tuple(prepare.SIZES), default=["base", "small"])
    add("--peer", nargs="+", metavar="NAME", help="measure these peers only, beside ours")
    add("--rounds", type=int, default=5)
    add("--seconds", type=float, default=30.0, help="least duration of a measurement")
    add("--threads", type=int, default=os.cpu_count())
    limit = f"seconds that a worker may take; {TUNING} times that for tuning"
    add("--timeout", type=float, default=600.0, help=limit)
    add("--fresh", action="store_true", help="drop the rounds in the raw file")
    add("--model", type=Path, help="model directory whose weights all systems translate with")
    add("--beam", type=int, default=4)
    add("--sentences", type=int, help="of the test set, for a trial; by default all")
    add("--annotated", type=Path, metavar="PATH", help="the_annotated_transformer.py")
    raw_file = "raw file of train or translate; by default results/peers-train.json, …"
    add("--out", type=Path, help=raw_file)
    return parser.parse_args()


def main() -> None:
    options = arguments()
    options.load = os.getloadavg()[0]
    if options.load > LOAD and options.what != "setup":
        say(f"warning: load {options.load:.1f} before the start; the figures will be unreliable")
    if options.out and options.what not in ("train", "translate"):
        raise SystemExit(f"--out is one raw file: for train or translate, not for {options.what}")
    if options.what == "all":
        require_model(options)
    CACHE.mkdir(exist_ok=True)
    steps = {
        "setup": [setup],
        "train": [train],
        "translate": [translate],
        "all": [setup, train, translate],
    }
    sys.exit(0 if all([step(options) for step in steps[options.what]]) else 1)


if __name__ == "__main__":
    main()
