"""The reading of files: what they are read by, how far it is, and remarks on the way."""

from dataclasses import dataclass, field

from seq2see.recipe.schema import DataConfig
from seq2see.text.progress import Progress, silent


@dataclass
class Watch:
    """State of reading several files."""

    config: DataConfig
    stage: str = ""  # as the user sees it
    progress: Progress = silent
    total: int = 0  # bytes of all files
    done: int = 0
    notes: list[str] = field(default_factory=list)  # for the user

    def tick(self, count: int) -> None:
        """Report that more bytes have been read."""
        self.done += count
        self.progress(self.stage, min(1.0, self.done / max(1, self.total)))
