"""A translation server under load, beside offline translation and other servers.

    python benchmarks/serve.py --model runs/multi30k --out benchmarks/results/serve.json

Every server has the same CTranslate2 model, beam and length penalty, one text in each request and
no cache, and is loaded by a process of its own on the same machine. Three parts, `--only` chooses:

load       all servers and offline translation in turn, in rounds: 1, 8 and 64 connections, and
           requests that arrive at random
sustained  our server with 64 connections for a minute without pause
memory     our server's resident memory over 100,000 requests, of repeated and of distinct sentences

Answers must equal what the same server answered before, to one request at a time. BLEU shows that
all translate alike. Ours differ from the offline translation where the server restores a number,
say, that the model has lost; the raw file counts these.
"""

import argparse
import contextlib
import datetime
import itertools
import json
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent / "peers"))

from servers import ALONE, OURS, Peer, peers

from seq2see.bench.rounds import ratios
from seq2see.bench.serve import (
    PATH,
    WITHOUT_CACHE,
    command,
    engine_directory,
    offline,
    one_by_one,
)
from seq2see.bench.serve_rounds import Load, Results, Target, generate, in_turn, median, row
from seq2see.bench.server_process import Server, serving
from seq2see.bench.translate import Text, test_text
from seq2see.recipe.schema import Recipe
from seq2see.scoring.bleu import score
from seq2see.scoring.card import machine
from seq2see.text import corpora
from seq2see.text.history import History

PARTS = ("load", "sustained", "memory")
CONNECTIONS = (1, 8, 64)
MOST = 64
IDLE = 4.0  # requests per second: our server is idle between them
SETTLED = 2  # tenths of the requests after which memory should no longer grow

Record = dict[str, Any]


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


@contextlib.contextmanager
def started(all_peers: Sequence[Peer]) -> Iterator[dict[str, Server]]:
    """Run all servers at once; those that are not asked are idle."""
    with contextlib.ExitStack() as stack:
        servers = {}
        for peer in all_peers:
            say(f"starting {peer.name}")
            run = serving(peer.command, ready=peer.ready, environment=peer.environment)
            servers[peer.name] = stack.enter_context(run)
        yield servers


def load(engine: Path, text: Text, options: argparse.Namespace) -> Record:
    """Measure all servers in rounds."""
    alone = offline(engine, text, None, 0.0).outputs
    offline_score = score(alone, text.references)
    with tempfile.TemporaryDirectory() as home:
        all_peers = [
            peer
            for peer in peers(engine, Path(home) / "argos")
            if not options.peer or peer.name in (OURS, ALONE, *options.peer)
        ]
        with started(all_peers) as servers:
            targets = {}
            outputs = {}
            for peer in all_peers:
                bodies = [peer.body(source) for source in text.sources]
                expected = one_by_one(servers[peer.name], peer.path, bodies)
                targets[peer.name] = Target(servers[peer.name], peer.path, bodies, expected)
                outputs[peer.name] = [output for (output,) in expected]
            loads = [Load(peer.name, count) for peer in all_peers for count in CONNECTIONS]
            loads.append(Load(OURS, None, IDLE))

            def rate() -> float:
                return offline(engine, text, None, options.window).sentences_per_second

            rounds = range(1, options.rounds + 1)
            results = in_turn(targets, loads, rate, options.window, rounds, say)
    rows = [asdict(row(one, results, reference(one))) | ours(one, results) for one in loads]
    about = {
        peer.name: {
            "label": peer.label,
            "setup": peer.setup,
            "versions": peer.versions,
            "bleu": score(outputs[peer.name], text.references).bleu,
            "unlike_offline": sum(map(str.__ne__, outputs[peer.name], alone)),
        }
        for peer in all_peers
    }
    return {
        "servers": about,
        "rows": rows,
        "offline_sentences_per_second": median([*results.offline.values()]),
        "bleu": offline_score.bleu,
        "signature": offline_score.signature,
        "window_seconds": options.window,
        "rounds": options.rounds,
    }


def reference(one: Load) -> Load:
    """The load without batching that one of ours is compared with; others have none."""
    return Load(ALONE, one.connections, one.rate) if one.server == OURS else one


def ours(one: Load, results: Results) -> Record:
    """How many times the rate of a server ours has, with as many connections."""
    own = {
        number: measured.sentences_per_second
        for number, measured in results.measured.get(Load(OURS, one.connections), {}).items()
    }
    theirs = {
        number: measured.sentences_per_second
        for number, measured in results.measured[one].items()
        if measured.sentences_per_second and one.server != OURS
    }
    return {"ours_is": median(ratios(own, theirs))}


def sustained(engine: Path, text: Text, options: argparse.Namespace) -> Record:
    """Load our server without pause, between two measurements of the offline rate."""
    before = offline(engine, text, None, options.window)
    one = Load(OURS, MOST)
    with serving(command(engine, *WITHOUT_CACHE)) as server:
        bodies = [{"text": source} for source in text.sources]
        target = Target(server, PATH, bodies, one_by_one(server, PATH, bodies))
        say(f"{one} for {options.sustained:g} s")
        measured = generate(target, one, options.sustained)
    after = offline(engine, text, None, options.window)
    rate = (before.sentences_per_second + after.sentences_per_second) / 2
    values: Record = asdict(measured)
    return values | {
        "connections": MOST,
        "seconds": options.sustained,
        "offline_sentences_per_second": rate,
        "of_offline": measured.sentences_per_second / rate,
    }


def memory(engine: Path, text: Text, options: argparse.Namespace) -> Record:
    """Follow our server's resident memory over many requests."""
    tenth = options.requests // 10
    recipe = Recipe.load(engine / "recipe.toml")
    corpus = corpora.load(recipe.data, None, History.load(engine))
    training = [source for source, _ in corpus.train.pairs if source.strip()]
    kinds = {
        "repeated": itertools.cycle(text.sources),
        "distinct": distinct(training),
    }
    rows = []
    for kind, sentences in kinds.items():
        with serving(command(engine)) as server:  # with its cache, as it is used
            resident = [server.resident_mb() or 0.0]
            failed = 0
            for done in range(1, 11):
                bodies = [{"text": sentence} for sentence in itertools.islice(sentences, tenth)]
                target = Target(server, PATH, bodies, None)
                measured = generate(target, Load(OURS, MOST), options.longest, tenth)
                if measured.requests + measured.refused + measured.errors < tenth:
                    raise SystemExit(f"{tenth} requests took longer than {options.longest:g} s")
                failed += measured.errors + measured.refused
                resident.append(server.resident_mb() or 0.0)
                say(f"{kind}: {done * tenth} requests · {resident[-1]:.1f} MB")
        rows.append(
            {
                "sentences": kind,
                "requests": 10 * tenth,
                "errors": failed,
                "resident_mb": resident,  # at the start, and after each tenth
                "growth_mb": resident[-1] - resident[SETTLED],
            }
        )
    return {"rows": rows, "settled": SETTLED / 10}


def distinct(sources: Sequence[str]) -> Iterator[str]:
    """Yield sentences that differ: all of a corpus, then all again with a number at the end."""
    unique = list(dict.fromkeys(sources))
    yield from unique
    for number in itertools.count(1):
        yield from (f"{source} ({number})" for source in unique)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--model", type=Path, required=True, help="trained, or exported for CTranslate2")
    add("--out", type=Path, required=True, help="raw file; parts that are not run are kept")
    add("--only", nargs="+", choices=PARTS, default=list(PARTS))
    add("--peer", nargs="*", metavar="NAME", help="measure these peers only, beside ours")
    add("--rounds", type=int, default=3)
    add("--window", type=float, default=20.0, help="seconds of a measurement in a round")
    add("--sustained", type=float, default=60.0, help="seconds")
    add("--requests", type=int, default=100_000, help="of memory")
    add("--longest", type=float, default=600.0, help="seconds that a tenth of them may take")
    add("--limit", type=int, default=1000, help="sentences of the test set")
    return parser.parse_args()


def main() -> None:
    options = arguments()
    engine = engine_directory(options.model)
    test = test_text(Recipe.load(engine / "recipe.toml"), engine)
    text = Text(test.name, test.sources[: options.limit], test.references[: options.limit])
    record: Record = {}
    if options.out.exists():
        record = json.loads(options.out.read_text(encoding="utf-8"))
    for part, measure in (("load", load), ("sustained", sustained), ("memory", memory)):
        if part not in options.only:
            continue
        about = {
            "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
            "machine": machine(),
            "text": text.name,
            "text_sentences": len(text.sources),
        }
        record[part] = about | measure(engine, text, options)
        options.out.write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
