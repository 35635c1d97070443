"""Measure seq2see beside its peers, each in an environment of its own, on the same batches and the same weights.

    python benchmarks/peers/run.py setup                      make the environments, so that nothing installs later
    python benchmarks/peers/run.py train                      both sizes, all systems, five rounds
    python benchmarks/peers/run.py translate --model DIR      a pre-norm model with one SentencePiece vocabulary
    python benchmarks/peers/run.py all --model DIR

Each round starts every system's worker once, in turn; medians are over rounds, ratios of the same round. The raw file
is written after every worker, and a peer that fails leaves its reason there and the others alone.
"""

import argparse
import dataclasses
import datetime
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import prepare
import venvs
from systems import LEFT_OUT, TRAIN, TRANSLATE, System

from seq2see.evaluate import machine

HERE = Path(__file__).parent
RESULTS = HERE.parent / "results"
CACHE = HERE / ".cache"
TUNED_ON = 256  # sentences
ALIKE = 0.5  # BLEU
LOAD = 0.5  # of a core; more before the start means that something else runs

Record = dict[str, Any]


class Failed(Exception):
    """What a worker died of."""


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def work(system: System, job: Record, given: argparse.Namespace) -> Record:
    """Run a system's worker once; its last line is the answer."""
    interpreter = Path(sys.executable) if system.venv is None else venvs.python(system.venv)
    threads = str(given.threads)
    quiet = {"HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false", "PYTHONUNBUFFERED": "1"}
    environment = os.environ | quiet | {"OMP_NUM_THREADS": threads, "MKL_NUM_THREADS": threads}
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch) / "job.json"
        path.write_text(json.dumps(job | system.options | {"scratch": scratch}), encoding="utf-8")
        command = [str(interpreter), str(HERE.resolve() / system.script), str(path)]
        try:
            done = subprocess.run(
                command, cwd=scratch, env=environment, capture_output=True, text=True, timeout=given.timeout
            )
        except subprocess.TimeoutExpired:
            raise Failed(f"took longer than {given.timeout:g} s") from None
    (CACHE / f"{system.name}.log").write_text(done.stdout + done.stderr, encoding="utf-8")
    try:
        found: Record = json.loads(done.stdout.strip().split("\n")[-1])
        assert done.returncode == 0 and isinstance(found, dict)
    except (ValueError, AssertionError):
        raise Failed((done.stderr.strip() or f"exit code {done.returncode}").split("\n")[-1]) from None
    return found


def begin(systems: Sequence[System], given: argparse.Namespace) -> Record:
    """The record's head, and the environments of all who take part."""
    record: Record = {
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "machine": machine() | {"threads": given.threads},
        "load_before": given.load,
        "rounds": given.rounds,
        "seconds": given.seconds,
        "systems": {},
    }
    for system in systems:
        described = {key: value for key, value in dataclasses.asdict(system).items() if key in ("label", "setup")}
        record["systems"][system.name] = described | {"ours": system.ours, "rounds": []}
        try:
            if system.venv is not None:
                say(f"{system.name}: environment {system.venv} …")
                venvs.ensure(system.venv)
        except venvs.NotInstalled as error:
            fail(record["systems"][system.name], system, error)
    return record


def fail(entry: Record, system: System, error: Exception) -> None:
    entry["failed"] = str(error)
    say(f"{system.name}: FAILED: {error}")


def measure(
    systems: Sequence[System], jobs: dict[str, Record], record: Record, given: argparse.Namespace, save: Callable
) -> None:
    """Round after round, forwards and backwards in turn, so that what comes first is not always the same."""
    unit = record["unit"]
    for number in range(1, given.rounds + 1):
        for system in systems if number % 2 else reversed(systems):
            entry = record["systems"][system.name]
            if "failed" in entry:
                continue
            try:
                found = work(system, jobs[system.name], given)
            except Failed as error:
                fail(entry, system, error)
                continue
            entry["rounds"].append(found | {"round": number})
            text = f"{found[unit]:,.1f} {unit.replace('_', ' ')} · {found['peak_memory_mb']:,.0f} MB"
            say(f"round {number}/{given.rounds} · {record['of']} · {system.name}: {text}")
            summarise(record)
            save()


def summarise(record: Record) -> None:
    """Medians of each system; ratios of each of ours to each peer, of the rounds that both have."""
    unit, systems = record["unit"], record["systems"]
    rates = {name: {row["round"]: row[unit] for row in entry["rounds"]} for name, entry in systems.items()}
    for name, entry in systems.items():
        if rates[name]:
            entry["median"] = statistics.median(rates[name].values())
            entry["peak_memory_mb"] = statistics.median(row["peak_memory_mb"] for row in entry["rounds"])
    record["ratios"] = {}
    for own in (name for name, entry in systems.items() if entry["ours"]):
        for peer in (name for name, entry in systems.items() if not entry["ours"]):
            both = [rates[own][number] / rates[peer][number] for number in rates[own] if number in rates[peer]]
            if both:
                ratio = {"median": statistics.median(both), "rounds": both}
                record["ratios"].setdefault(own, {})[peer] = ratio


def chosen(systems: Sequence[System], given: argparse.Namespace) -> list[System]:
    """Ours, and the peers that were asked for."""
    unknown = set(given.peer or []) - {system.name for system in (*TRAIN, *TRANSLATE)}
    if unknown:
        raise SystemExit(f"--peer {' '.join(sorted(unknown))}: not among {', '.join(s.name for s in systems)}")
    return [system for system in systems if system.ours or not given.peer or system.name in given.peer]


def saver(path: Path, key: str, record: Record) -> Callable[[], None]:
    """Writes the record into the raw file, beside what other sizes or models left there."""

    def save() -> None:
        found = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
        temporary = path.with_suffix(".tmp")
        temporary.write_text(json.dumps(found | {key: record}, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        temporary.replace(path)

    return save


def train(given: argparse.Namespace) -> bool:
    systems = [s for s in chosen(TRAIN, given) if given.annotated or s.name != "annotated"]
    path = given.out or RESULTS / "peers-train.json"
    say("writing everybody's batches …")
    facts = prepare.training(CACHE / "train")
    good = True
    for size in given.size:
        model = prepare.SIZES[size] | facts
        record = begin(systems, given) | {"of": size, "unit": "target_tokens_per_second", "model": model}
        record["left_out"] = {name: why for name, why in LEFT_OUT.items() if name not in record["systems"]}
        job = {"data": str((CACHE / "train").resolve()), "model": model, "overrides": prepare.overrides(size)}
        job |= {"seconds": given.seconds, "threads": given.threads}
        job |= {"annotated": given.annotated and str(given.annotated.resolve())}
        save = saver(path, size, record)
        measure(systems, dict.fromkeys([s.name for s in systems], job), record, given, save)
        save()
        good &= not any("failed" in entry for entry in record["systems"].values())
    say(f"written: {path}")
    return good


def translate(given: argparse.Namespace) -> bool:
    if given.model is None:
        raise SystemExit("--model DIR is missing: whose weights shall all systems translate with?")
    systems = chosen(TRANSLATE, given)
    path = given.out_translate or RESULTS / "peers-translate.json"
    record = begin(systems, given) | {"of": f"beam {given.beam}", "unit": "sentences_per_second", "beam": given.beam}
    say("writing everybody's weights, exporting for CTranslate2 …")
    facts, references = prepare.translation(CACHE / "translate", given.model)
    directory = facts.pop("model_directory")
    record |= facts | {"test": prepare.TEST, "sentences": given.sentences or len(references)}
    job = facts | {"data": str((CACHE / "translate").resolve()), "model_directory": directory, "beam": given.beam}
    job |= {"seconds": given.seconds, "threads": given.threads, "sentences": given.sentences}
    jobs = {}
    save = saver(path, record["of"], record)
    for system in systems:
        outputs = str(CACHE.resolve() / f"{system.name}.outputs.json")
        jobs[system.name] = job | {"outputs": outputs, "tune": 0, "setting": None}
        if system.tuned and "failed" not in record["systems"][system.name]:
            say(f"{system.name}: trying settings …")
            try:
                found = work(system, jobs[system.name] | {"tune": TUNED_ON}, given)
            except Failed as error:
                fail(record["systems"][system.name], system, error)
            else:
                record["systems"][system.name]["tuning"] = found
                jobs[system.name]["setting"] = found["setting"]
    measure(systems, jobs, record, given, save)
    score(record, {name: Path(job["outputs"]) for name, job in jobs.items()}, references)
    save()
    say(f"written: {path}")
    return not any("failed" in entry for entry in record["systems"].values())


def score(record: Record, outputs: dict[str, Path], references: list[str]) -> None:
    """BLEU of what the last round wrote, and how far it is from ours: the same weights must translate about alike."""
    for name, entry in record["systems"].items():
        if entry["rounds"]:
            found = json.loads(outputs[name].read_text(encoding="utf-8"))
            entry["bleu"] = prepare.bleu(found, references[: len(found)])
    ours = record["systems"]["seq2see-torch"].get("bleu")
    for name, entry in record["systems"].items():
        if ours is not None and "bleu" in entry:
            entry["bleu_difference"] = entry["bleu"] - ours
            if abs(entry["bleu_difference"]) > ALIKE:
                say(f"warning: {name}: BLEU {entry['bleu']:.2f} is more than {ALIKE} from seq2see-torch's {ours:.2f}")


def setup(given: argparse.Namespace) -> bool:
    good = True
    for name in dict.fromkeys(s.venv for s in (*chosen(TRAIN, given), *chosen(TRANSLATE, given)) if s.venv):
        say(f"environment {name} …")
        try:
            venvs.ensure(name)
        except venvs.NotInstalled as error:
            say(f"{name}: FAILED: {error}")
            good = False
    return good


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("setup", "train", "translate", "all"))
    parser.add_argument("--size", nargs="+", choices=tuple(prepare.SIZES), default=["base", "small"])
    parser.add_argument("--peer", nargs="+", metavar="NAME", help="these alone, beside ours")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=30.0, help="of each measurement, at least; whole updates")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--timeout", type=float, default=3600.0, help="seconds that a worker may take")
    parser.add_argument("--model", type=Path, help="the model directory to translate with")
    parser.add_argument("--beam", type=int, default=4)
    parser.add_argument("--sentences", type=int, help="of the test set, to try things out; by default all")
    parser.add_argument("--annotated", type=Path, metavar="PATH", help="a checkout's the_annotated_transformer.py")
    parser.add_argument("--out", type=Path, help="raw file of training; by default results/peers-train.json")
    parser.add_argument("--out-translate", type=Path, help="… of translation; by default results/peers-translate.json")
    return parser.parse_args()


def main() -> None:
    given = arguments()
    given.load = os.getloadavg()[0]
    if given.load > LOAD and given.what != "setup":
        say(f"warning: the load is {given.load:.1f} before anything has begun; these figures will not be worth much")
    CACHE.mkdir(exist_ok=True)
    steps = {"setup": [setup], "train": [train], "translate": [translate], "all": [setup, train, translate]}
    if given.what == "all" and given.model is None:
        raise SystemExit("--model DIR is missing: whose weights shall all systems translate with?")
    sys.exit(0 if all([step(given) for step in steps[given.what]]) else 1)


if __name__ == "__main__":
    main()
