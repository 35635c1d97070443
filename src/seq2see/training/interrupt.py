"""Graceful interruption of training: finish and save the current update, then stop."""

import signal
import threading
from collections.abc import Callable
from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Stop:
    """Context in which a first Ctrl-C or SIGTERM only sets `asked`; the next one takes effect.

    A process among several may get the same signal twice, from a scheduler and from torchrun: with
    `every` one is taken for the first.
    """

    def __init__(self, say: Callable[[str], None], every: bool = False) -> None:
        self.say = say
        self.every = every
        self.asked = False

    def __enter__(self) -> "Stop":
        # Only the main thread may handle signals. Those already ignored stay ignored, as Ctrl-C is
        # for a background job of a script.
        in_main_thread = threading.current_thread() is threading.main_thread()
        self.before = {
            number: signal.signal(number, self._ask)
            for number in SIGNALS
            if in_main_thread and signal.getsignal(number) is not signal.SIG_IGN
        }
        return self

    def _ask(self, number: int, frame: FrameType | None) -> None:
        first = not self.asked
        self.asked = True
        if not self.every:
            self.__exit__()
            self.say("stopping after this update; interrupt again to stop immediately")
        elif first:
            self.say("stopping after this update")

    def __exit__(self, *error: object) -> None:
        for number, handler in self.before.items():
            signal.signal(number, handler)
        self.before = {}
