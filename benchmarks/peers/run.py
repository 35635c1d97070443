"""Measure seq2see beside its peers, each in an environment of its own, on the same batches and the same weights.

    python benchmarks/peers/run.py setup                      make the environments, so that nothing installs later
    python benchmarks/peers/run.py train                      both sizes, all systems, five rounds
    python benchmarks/peers/run.py translate --model DIR      a pre-norm model with one SentencePiece vocabulary
    python benchmarks/peers/run.py all --model DIR

Each round starts every system's worker once, in turn; medians are over rounds, ratios of the same round. The raw file
is written after every worker, and a peer that fails leaves its reason there and the others alone. Called again with
the same settings, it does the rounds that are missing and tries again what failed.
"""

import argparse
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

from seq2see.files import write_text
from seq2see.scoring.card import machine

HERE = Path(__file__).parent
RESULTS = HERE.parent / "results"
CACHE = HERE / ".cache"
TUNING = 3  # times as long as a measurement: so long may tuning take, which tries every setting
ALIKE = 0.5  # BLEU
LOAD = 0.5  # of a core; more before the start means that something else runs

Record = dict[str, Any]


class Failed(Exception):
    """What a worker died of."""


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def now() -> str:
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")


def work(system: System, job: Record, given: argparse.Namespace) -> Record:
    """Run a system's worker once; its last line is the answer."""
    limit = given.timeout * (TUNING if job.get("tune") else 1)
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
                command, cwd=scratch, env=environment, capture_output=True, text=True, timeout=limit
            )
        except subprocess.TimeoutExpired:
            raise Failed(f"took longer than {limit:g} s") from None
    (CACHE / f"{system.name}.log").write_text(done.stdout + done.stderr, encoding="utf-8")
    try:
        found: Record = json.loads(done.stdout.strip().split("\n")[-1])
        assert done.returncode == 0 and isinstance(found, dict)
    except (ValueError, AssertionError):
        raise Failed(
            (done.stderr.strip() or f"exit code {done.returncode}").split("\n")[-1]
        ) from None
    return found


def raw(path: Path) -> Record:
    """What a raw file holds so far."""
    found: Record = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    return found


def begin(
    systems: Sequence[System],
    everybody: Sequence[System],
    settings: Record,
    path: Path,
    given: argparse.Namespace,
) -> Record:
    """A record to fill: a new one, or what the raw file has of the same settings; and the environments it needs.

    What failed is tried again, and what does not take part this time stays as it is.
    """
    settings = settings | {
        "machine": machine() | {"threads": given.threads},
        "seconds": given.seconds,
    }
    old = raw(path).get(settings["of"], {})
    other = [key for key, value in settings.items() if old.get(key) != value]
    if old and (other or given.fresh):
        reason = "--fresh" if given.fresh else f"its settings differ ({', '.join(other)})"
        say(f"{settings['of']}: begins anew and drops what is in {path}: {reason}")
        old = {}
    elif old:
        say(f"{settings['of']}: goes on with what is in {path}; --fresh would begin anew")
    record = settings | {
        "date": old.get("date", now()),
        "load_before": old.get("load_before", 0.0),
        "systems": {},
    }
    entries = old.get("systems", {})
    for system in (each for each in everybody if each in systems or each.name in entries):
        entry = entries.get(system.name, {"rounds": []})
        if system in systems and entry.pop("failed", None) and not entry["rounds"]:
            entry.pop("tuning", None)  # its setting may be why it failed
        record["systems"][system.name] = entry | {
            "label": system.label,
            "setup": system.setup,
            "ours": system.ours,
        }
    for system in systems:
        entry = record["systems"][system.name]
        if system.venv is not None and len(entry["rounds"]) < given.rounds:
            say(f"{system.name}: environment {system.venv} …")
            try:
                venvs.ensure(system.venv)
            except venvs.NotInstalled as error:
                fail(entry, system, error)
    return record


def fail(entry: Record, system: System, error: Exception) -> None:
    entry["failed"] = str(error)
    say(f"{system.name}: FAILED: {error}")


def measure(
    systems: Sequence[System],
    jobs: dict[str, Record],
    record: Record,
    given: argparse.Namespace,
    save: Callable[[], None],
    score: Callable[[str], None] = lambda name: None,
) -> bool:
    """The rounds that are missing, forwards and backwards in turn, so that what comes first is not always the same."""
    unit = record["unit"]
    for number in range(1, given.rounds + 1):
        for system in systems if number % 2 else reversed(systems):
            entry = record["systems"][system.name]
            if "failed" in entry or number in [row["round"] for row in entry["rounds"]]:
                continue
            try:
                found = work(system, jobs[system.name], given)
            except Failed as error:
                fail(entry, system, error)
            else:
                entry["rounds"].append(found | {"round": number, "date": now()})
                record |= {"date": now(), "load_before": max(given.load, record["load_before"])}
                text = f"{found[unit]:,.1f} {unit.replace('_', ' ')} · {found['peak_memory_mb']:,.0f} MB"
                say(f"round {number}/{given.rounds} · {record['of']} · {system.name}: {text}")
                score(system.name)
            save()
    save()
    return not any("failed" in record["systems"][system.name] for system in systems)


def summarise(record: Record) -> None:
    """Medians of each system; ratios of each of ours to each peer, of the rounds that both have."""
    unit, systems = record["unit"], record["systems"]
    rates = {
        name: {row["round"]: row[unit] for row in entry["rounds"]}
        for name, entry in systems.items()
    }
    for name, entry in systems.items():
        if rates[name]:
            entry["median"] = statistics.median(rates[name].values())
            entry["peak_memory_mb"] = statistics.median(
                row["peak_memory_mb"] for row in entry["rounds"]
            )
    record["ratios"] = {}
    for own in (name for name, entry in systems.items() if entry["ours"]):
        for peer in (name for name, entry in systems.items() if not entry["ours"]):
            both = [
                rates[own][number] / rates[peer][number]
                for number in rates[own]
                if number in rates[peer]
            ]
            if both:
                ratio = {"median": statistics.median(both), "rounds": both}
                record["ratios"].setdefault(own, {})[peer] = ratio


def chosen(systems: Sequence[System], given: argparse.Namespace) -> list[System]:
    """Ours, and the peers that were asked for."""
    unknown = set(given.peer or []) - {system.name for system in (*TRAIN, *TRANSLATE)}
    if unknown:
        raise SystemExit(
            f"--peer {' '.join(sorted(unknown))}: not among {', '.join(s.name for s in systems)}"
        )
    return [
        system for system in systems if system.ours or not given.peer or system.name in given.peer
    ]


def saver(path: Path, record: Record) -> Callable[[], None]:
    """Writes the record into the raw file, beside what other sizes or searches left there."""

    def save() -> None:
        summarise(record)
        write_text(
            path,
            json.dumps(raw(path) | {record["of"]: record}, indent=1, ensure_ascii=False) + "\n",
        )

    return save


def train(given: argparse.Namespace) -> bool:
    systems = [s for s in chosen(TRAIN, given) if given.annotated or s.name != "annotated"]
    path = given.out or RESULTS / "peers-train.json"
    say("writing everybody's batches …")
    facts = prepare.training(CACHE / "train")
    good = True
    for size in given.size:
        model = prepare.SIZES[size] | facts
        settings = {"of": size, "unit": "target_tokens_per_second", "model": model}
        record = begin(systems, TRAIN, settings, path, given)
        record["left_out"] = {
            name: why for name, why in LEFT_OUT.items() if name not in record["systems"]
        }
        job = {
            "data": str((CACHE / "train").resolve()),
            "model": model,
            "overrides": prepare.overrides(size),
        }
        job |= {"seconds": given.seconds, "threads": given.threads}
        job |= {"annotated": given.annotated and str(given.annotated.resolve())}
        jobs = dict.fromkeys([system.name for system in systems], job)
        good &= measure(systems, jobs, record, given, saver(path, record))
    say(f"written: {path}")
    return good


def translate(given: argparse.Namespace) -> bool:
    if given.model is None:
        raise SystemExit("--model DIR is missing: whose weights shall all systems translate with?")
    systems = chosen(TRANSLATE, given)
    path = given.out or RESULTS / "peers-translate.json"
    of = f"beam {given.beam}"
    say("writing everybody's weights, exporting for CTranslate2 …")
    known = None if given.fresh else raw(path).get(of, {}).get("exported")
    facts, references = prepare.translation(CACHE / "translate", given.model, known)
    directory = facts.pop("model_directory")
    settings = facts | {
        "of": of,
        "unit": "sentences_per_second",
        "beam": given.beam,
        "test": prepare.TEST,
    }
    settings["sentences"] = given.sentences or len(references)
    record = begin(systems, TRANSLATE, settings, path, given)
    job = facts | {
        "data": str((CACHE / "translate").resolve()),
        "model_directory": directory,
        "beam": given.beam,
    }
    job |= {"seconds": given.seconds, "threads": given.threads, "sentences": given.sentences}
    jobs = {}
    save = saver(path, record)
    for system in systems:
        entry = record["systems"][system.name]
        jobs[system.name] = job | {
            "outputs": str(CACHE.resolve() / f"{system.name}.outputs.json"),
            "tune": False,
        }
        if system.tuned and "tuning" not in entry and "failed" not in entry:
            say(f"{system.name}: trying settings …")
            try:
                entry["tuning"] = work(system, jobs[system.name] | {"tune": True}, given)
            except Failed as error:
                fail(entry, system, error)
            save()
        jobs[system.name]["setting"] = entry.get("tuning", {}).get("setting")
    good = measure(
        systems,
        jobs,
        record,
        given,
        save,
        lambda name: score(record, name, Path(jobs[name]["outputs"]), references),
    )
    say(f"written: {path}")
    return good


def score(record: Record, name: str, outputs: Path, references: list[str]) -> None:
    """BLEU of a first round, and how far all are from ours: the same weights must translate about alike."""
    systems = record["systems"]
    if "bleu" in systems[name]:
        return
    found = json.loads(outputs.read_text(encoding="utf-8"))
    systems[name]["bleu"] = prepare.bleu(found, references[: len(found)])
    ours = systems["seq2see-torch"].get("bleu")
    for other, entry in systems.items():
        if ours is not None and "bleu" in entry and "bleu_difference" not in entry:
            entry["bleu_difference"] = entry["bleu"] - ours
            if abs(entry["bleu_difference"]) > ALIKE:
                say(
                    f"warning: {other}: BLEU {entry['bleu']:.2f} is more than {ALIKE} from seq2see-torch's {ours:.2f}"
                )


def setup(given: argparse.Namespace) -> bool:
    good = True
    for name in dict.fromkeys(
        s.venv for s in (*chosen(TRAIN, given), *chosen(TRANSLATE, given)) if s.venv
    ):
        say(f"environment {name} …")
        try:
            venvs.ensure(name)
        except venvs.NotInstalled as error:
            say(f"{name}: FAILED: {error}")
            good = False
    return good


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=("setup", "train", "translate", "all"))
    parser.add_argument(
        "--size", nargs="+", choices=tuple(prepare.SIZES), default=["base", "small"]
    )
    parser.add_argument("--peer", nargs="+", metavar="NAME", help="these alone, beside ours")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument(
        "--seconds", type=float, default=30.0, help="of each measurement, at least; whole updates"
    )
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument(
        "--timeout",
        type=float,
        default=600.0,
        help=f"seconds that a worker may take; to tune {TUNING} times as many",
    )
    parser.add_argument(
        "--fresh", action="store_true", help="drop the rounds that the raw file has"
    )
    parser.add_argument("--model", type=Path, help="the model directory to translate with")
    parser.add_argument("--beam", type=int, default=4)
    parser.add_argument(
        "--sentences", type=int, help="of the test set, to try things out; by default all"
    )
    parser.add_argument(
        "--annotated", type=Path, metavar="PATH", help="a checkout's the_annotated_transformer.py"
    )
    parser.add_argument(
        "--out",
        type=Path,
        help="raw file of train or translate; by default results/peers-train.json, …-translate.json",
    )
    return parser.parse_args()


def main() -> None:
    given = arguments()
    given.load = os.getloadavg()[0]
    if given.load > LOAD and given.what != "setup":
        say(
            f"warning: the load is {given.load:.1f} before anything has begun; these figures will not be worth much"
        )
    if given.out and given.what not in ("train", "translate"):
        raise SystemExit(f"--out is one raw file: for train or translate, not for {given.what}")
    CACHE.mkdir(exist_ok=True)
    steps = {
        "setup": [setup],
        "train": [train],
        "translate": [translate],
        "all": [setup, train, translate],
    }
    if given.what == "all" and given.model is None:
        raise SystemExit("--model DIR is missing: whose weights shall all systems translate with?")
    sys.exit(0 if all([step(given) for step in steps[given.what]]) else 1)


if __name__ == "__main__":
    main()
