"""Joey NMT with its own data set, model and training manager; timed where it logs an update."""

from pathlib import Path
from typing import Any

import joeynmt_setup
import torch
import worker
from joeynmt.config import parse_global_args, set_validation_args
from joeynmt.prediction import prepare
from joeynmt.training import TrainManager


class Measured(TrainManager):
    """Ends when the meter has measured enough."""

    meter: worker.Meter
    tokens = 0
    positions = 0

    def _train_step(self, batch: Any) -> Any:
        self.positions += batch.trg.numel()
        return super()._train_step(batch)

    def _log_scores(self, *given: Any, **named: Any) -> None:
        super()._log_scores(*given, **named)
        done = self.meter.update(self.stats.total_tokens - self.tokens)
        self.tokens = self.stats.total_tokens
        self.stats.is_max_update |= done

    def _save_checkpoint(self, new_best: bool, score: float) -> None:
        """Save nothing."""


def main() -> None:
    job = worker.job()
    torch.set_num_threads(job["threads"])
    data = Path(job["data"])
    sides = [
        {"lang": language, "level": "word", "voc_file": str(data / f"vocabulary.{language}")}
        for language in ("source", "target")
    ]
    splits = {"train": str(data / "train"), "dev": str(data / "dev")}
    configuration = joeynmt_setup.configuration(job, *sides, splits)
    args = parse_global_args(configuration, rank=0, mode="train")
    model, train_data, dev_data, _ = prepare(args, rank=0, mode="train")
    trainer = Measured(
        rank=0,
        model=model,
        model_dir=args.model_dir,
        device=args.device,
        n_gpu=args.n_gpu,
        num_workers=args.num_workers,
        autocast=args.autocast,
        seed=args.seed,
        train_args=args.train,
        dev_args=set_validation_args(args.test),
    )
    trainer.meter = worker.Meter(job, equal=job.get("batches") != "own")
    trainer.train_and_validate(train_data=train_data, valid_data=dev_data)
    parameters = sum(p.numel() for p in model.parameters())
    padding = 1 - trainer.stats.total_tokens / trainer.positions
    trainer.meter.report(
        parameters, worker.versions("torch", "joeynmt", "sentencepiece"), target_padding=padding
    )


if __name__ == "__main__":
    main()
