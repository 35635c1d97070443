"""Calibration of an exported model: the fastest distribution of work on this machine."""

import itertools
import time
from collections.abc import Sequence
from pathlib import Path

from seq2see.batches import Ids
from seq2see.ct2.batches import Setting
from seq2see.ct2.engine import Engine
from seq2see.ct2.library import cores
from seq2see.decoding.hypotheses import Search
from seq2see.tasks.translator import Translator

BATCHES = (1024, 512, 2048, 4096, 16384)  # source tokens × beam
CALIBRATION = 10.0  # seconds, in all
ROUNDS = 2  # over all settings in that time
WARM_UP = 16  # sentences, to estimate the throughput


def calibrate(folder: Path, translator: Translator, sources: Sequence[Ids]) -> Setting:
    """Choose the setting with the highest throughput, taking the best of a few tries of each.

    Settings are tried round-robin, so that a disturbance of the machine slows one try of each.
    """
    clock = _Throughput(folder, translator, sources)
    rates: dict[Setting, float] = {}
    begun = time.perf_counter()
    settings = [Setting(cores(), 1, tokens) for tokens in BATCHES]
    estimate = clock.rate(settings[0], WARM_UP)
    count = max(WARM_UP, int(estimate * CALIBRATION / (ROUNDS * len(settings) + 2)))
    for setting in settings * ROUNDS:
        if not rates or time.perf_counter() - begun < CALIBRATION:
            rates[setting] = max(rates.get(setting, 0.0), clock.rate(setting, count))
    # All cores on one batch are rarely faster, so that is tried once.
    fastest = max(rates, key=rates.__getitem__)
    one_worker = Setting(1, cores(), fastest.batch_tokens)
    if one_worker not in rates and time.perf_counter() - begun < CALIBRATION:
        rates[one_worker] = clock.rate(one_worker, count)
    return max(rates, key=rates.__getitem__)


class _Throughput:
    """Throughput of an exported model under different settings."""

    def __init__(self, folder: Path, translator: Translator, sources: Sequence[Ids]) -> None:
        self.folder = folder
        self.translator = translator
        self.sources = sources
        self.config = Search.of(translator.recipe)
        self.engines: dict[tuple[int, int], Engine] = {}

    def rate(self, setting: Setting, count: int) -> float:
        """Sentences per second, over `count` sentences."""
        engine = self._engine(setting)
        sources = list(itertools.islice(itertools.cycle(self.sources), count))
        begun = time.perf_counter()
        engine.hypotheses(sources, self.config)
        return count / (time.perf_counter() - begun)

    def _engine(self, setting: Setting) -> Engine:
        """One engine per number of threads; the batch size may change, since batching is ours."""
        shared = setting.workers, setting.threads
        if shared not in self.engines:
            recipe, pair = self.translator.recipe, self.translator.tokenizers
            self.engines[shared] = Engine(self.folder, recipe, pair, setting)
        self.engines[shared].setting = setting
        return self.engines[shared]
