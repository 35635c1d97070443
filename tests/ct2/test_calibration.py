"""Calibration chooses the setting with the highest throughput."""

from pathlib import Path

import pytest
import torch

from seq2see.ct2 import calibration
from seq2see.ct2.batches import Setting
from seq2see.ct2.engine import Engine
from seq2see.decoding.hypotheses import Search
from seq2see.tasks.translator import Translator


@pytest.mark.parametrize("fastest", [Setting(3, 1, 4096), Setting(1, 3, 4096)])
def test_calibration_takes_the_fastest(
    exported: Path, translator: Translator, monkeypatch: pytest.MonkeyPatch, fastest: Setting
) -> None:
    monkeypatch.setattr(calibration, "CALIBRATION", 120.0)
    monkeypatch.setattr(calibration, "cores", lambda: 3)
    tried: dict[Setting, list[int]] = {}
    clock = [0.0]

    def hypotheses(engine: Engine, sources: list[list[int]], config: Search) -> None:
        tried.setdefault(engine.setting, []).append(len(sources))
        if sum(map(len, tried.values())) == 5:  # disturb the first try of 4096 by workers
            clock[0] += 5.0
        if engine.setting == fastest:
            clock[0] += 1.0
        else:
            clock[0] += 1.5 if engine.setting.batch_tokens == 4096 else 2.0

    monkeypatch.setattr(Engine, "hypotheses", hypotheses)
    monkeypatch.setattr("time.perf_counter", lambda: clock[0])
    before = torch.get_num_threads()
    assert calibration.calibrate(exported, translator, [[5, 6]]) == fastest
    assert torch.get_num_threads() == before
    assert set(tried) == {
        *(Setting(3, 1, tokens) for tokens in calibration.BATCHES),
        Setting(1, 3, 4096),
    }
    assert tried[Setting(3, 1, 4096)] == [80, 80] and tried[Setting(1, 3, 4096)] == [
        80
    ]  # 16 took two seconds
