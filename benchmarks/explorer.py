"""The explorer's attention room in a real browser: bytes, time until it is drawn, and frames.

    python benchmarks/explorer.py

A server of its own has a model of the paper's base size (6 + 6 layers, 8 heads, width 512) after
one update. For sentences and given translations of up to 40 and up to 200 tokens, headless Chromium
opens the room anew in each round. `drawn` is the time from the end of the answer with all heads to
the frame that shows them; it includes asking for the exact weights of one head (`head`). Then the
page is scrolled by the mouse's wheel. Writes `results/explorer.json`.
"""

import argparse
import datetime
import json
import os
import shutil
import statistics
import tempfile
from itertools import pairwise
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from playwright.sync_api import Browser, Page, sync_playwright

import seq2see
from seq2see.bench.serve import command
from seq2see.bench.server_process import serving
from seq2see.scoring.card import machine
from seq2see.tasks.translator import Translator
from seq2see.text import captions
from seq2see.text.tokenizers import Tokenizer

RESULTS = Path(__file__).parent / "results"
LENGTHS = (40, 200)  # at most, of each side, </s> included
WINDOW = {"width": 1280, "height": 800}
SCROLLED = 3000  # pixels
SPEED = 1200  # pixels a second
PAIRS = 400
RECIPE = """
[data]
source = "de"
target = "en"
train = "{pairs}"
max_length = 256

[tokenizer]
size = 1000

[model]
width = 512
heads = 8
encoder_layers = 6
decoder_layers = 6
feed_forward = 2048

[train]
steps = 1
validate_sentences = 1

[decode]
beam = 1
"""
DRAWN = """
window.drawn = new Promise((resolve) => {
  const observer = new MutationObserver(() => {
    if (document.querySelector("[data-name=head] canvas") === null) return;
    observer.disconnect();
    requestAnimationFrame(() => setTimeout(() => resolve(performance.now())));
  });
  observer.observe(document, { childList: true, subtree: true });
});
"""
TIMES = """
drawn.then((drawn) => {
  const find = (route) => performance.getEntriesByType("resource").find(({ name }) => {
    return name.endsWith(`/v1/explore/${route}`);
  });
  const [maps, head] = [find("attention"), find("head")];
  return {
    bytes: maps.decodedBodySize,
    drawn: drawn - maps.responseEnd,
    head: head.responseEnd - maps.responseEnd,
  };
})
"""
TICK = """
window.ticks = [];
requestAnimationFrame(function tick(now) {
  ticks.push(now);
  requestAnimationFrame(tick);
});
"""

Record = dict[str, Any]


def untrained(folder: Path) -> Translator:
    """Make a model directory with weights that are nearly random."""
    pairs = folder / "pairs.tsv"
    lines = [f"{one.source}\t{one.target}\n" for one in captions.generate("train", PAIRS)]
    pairs.write_text("".join(lines), encoding="utf-8")
    recipe = folder / "recipe.toml"
    recipe.write_text(RECIPE.format(pairs=pairs), encoding="utf-8")
    opened: Translator = seq2see.train(recipe, out=folder / "run")
    return opened


def cut(texts: list[str], tokenizer: Tokenizer, tokens: int) -> str:
    """Return the longest beginning of the texts that has at most so many tokens with </s>."""
    words = " ".join(texts).split()
    while len(tokenizer.encode(" ".join(words))) + 1 > tokens:
        words.pop()
    return " ".join(words)


def view(translator: Translator, tokens: int) -> dict[str, str]:
    """Choose a sentence and a translation of this length, or a little less."""
    several = captions.generate("val", tokens // 5)
    sides = translator.tokenizers
    return {
        "text": cut([one.source for one in several], sides.source, tokens),
        "target": cut([one.target for one in several], sides.target, tokens),
    }


def lengths(translator: Translator, shown: dict[str, str]) -> dict[str, int]:
    """Count the tokens of both sides, with </s>."""
    sides = translator.tokenizers
    return {
        "source_tokens": len(sides.source.encode(shown["text"])) + 1,
        "target_tokens": len(sides.target.encode(shown["target"])) + 1,
    }


def scrolled(page: Page) -> Record:
    """Scroll the page and count its frames."""
    page.evaluate(TICK)
    wheel = {"x": 640, "y": 400, "speed": SPEED, "gestureSourceType": "mouse"}
    session = page.context.new_cdp_session(page)
    session.send("Input.synthesizeScrollGesture", {**wheel, "yDistance": -SCROLLED})
    ticks = page.evaluate("ticks")
    moved = page.evaluate("scrollY")
    gaps = [after - before for before, after in pairwise(ticks)]
    return {
        "frames_per_second": 1000 * len(gaps) / (ticks[-1] - ticks[0]),
        "longest_frame_ms": max(gaps),
        "scrolled_pixels": moved,
    }


def visit(browser: Browser, url: str) -> Record:
    """Open the room in a browser that has cached nothing."""
    context = browser.new_context(viewport=WINDOW)
    page = context.new_page()
    page.set_default_timeout(60_000)
    page.add_init_script(DRAWN)
    page.goto(url)
    times: Record = page.evaluate(TIMES)
    result = times | scrolled(page)
    context.close()
    return result


def measure(browser: Browser, translator: Translator, address: str, rounds: int) -> list[Record]:
    """Open the room at every length in turn, after once without measuring."""
    views = {tokens: view(translator, tokens) for tokens in LENGTHS}
    visits: dict[int, list[Record]] = {tokens: [] for tokens in LENGTHS}
    for number in range(rounds + 1):
        for tokens, shown in views.items():
            one = visit(browser, f"{address}/#attention?{urlencode(shown)}")
            print(json.dumps({"round": number, "tokens": tokens} | one), flush=True)
            if number > 0:
                visits[tokens].append(one)
    return [lengths(translator, views[tokens]) | summary(rows) for tokens, rows in visits.items()]


def summary(rows: list[Record]) -> Record:
    """Keep the medians of the rounds, and the slowest."""
    middle = {key: statistics.median(row[key] for row in rows) for key in rows[0]}
    slowest = max(row["drawn"] for row in rows)
    return {
        "overview_bytes": int(middle["bytes"]),
        "drawn_ms": middle["drawn"],
        "slowest_drawn_ms": slowest,
        "head_ms": middle["head"],
        "frames_per_second": middle["frames_per_second"],
        "least_frames_per_second": min(row["frames_per_second"] for row in rows),
        "longest_frame_ms": max(row["longest_frame_ms"] for row in rows),
        "scrolled_pixels": min(row["scrolled_pixels"] for row in rows),
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--out", type=Path, default=RESULTS / "explorer.json")
    options = parser.parse_args()
    chromium = shutil.which("chromium")
    arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        translator = untrained(Path(folder))
        browser = playwright.chromium.launch(executable_path=chromium, args=arguments)
        with serving(command(Path(folder) / "run", "--engine", "torch")) as server:
            load = os.getloadavg()[0]
            address = f"http://{server.host}:{server.port}"
            rows = measure(browser, translator, address, options.rounds)
        version = browser.version
        browser.close()
    result = {
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "machine": machine(),
        "browser": f"Chromium {version}",
        "load_average_before": load,
        "load_average_after": os.getloadavg()[0],
        "rounds": options.rounds,
        "rows": rows,
    }
    options.out.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
