"""Ctrl-C, or a polite kill, during a training: the update in hand is finished and saved, so that nothing is lost."""

import signal
import threading
from collections.abc import Callable
from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Stop:
    """`with Stop(say) as stop:` the first signal only sets `stop.asked`; a second one stops at once."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self.say, self.asked = say, False

    def __enter__(self) -> "Stop":
        # Only the main thread may take signals, and what is ignored, as Ctrl-C is behind `&` in a script, stays so.
        mine = threading.current_thread() is threading.main_thread()
        heard = [each for each in SIGNALS if mine and signal.getsignal(each) is not signal.SIG_IGN]
        self.before = {each: signal.signal(each, self._ask) for each in heard}
        return self

    def _ask(self, number: int, frame: FrameType | None) -> None:
        self.asked = True
        self.__exit__()
        self.say("stopping after this update; once more stops at once")

    def __exit__(self, *error: object) -> None:
        for each, before in self.before.items():
            signal.signal(each, before)
        self.before = {}
