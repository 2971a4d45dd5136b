"""Devices that a worker lends to clients: each has a process of its own meanwhile, which does what the client's messages ask."""

from __future__ import annotations

import contextlib
import math
import os
import signal
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager

from ..errors import TuningError
from ..tune.measure.folder import SharedFolder
from ..tune.measure.pool import Job, WorkerPool
from ..tune.measure.process import Death, Launch
from ..tune.measure.protocol import Frame, encode
from .messages import frame_of

# What answers the messages. A name: sessions stand above this package.
_SERVICE = "tensorexpr.rpc.lent"
_LOOK_SECONDS = 0.2
# The type of messages that measure: they have the machine for themselves.
TIMED = "timed"
GONE = "gone"
_OVER = "the loan is over"


class Loan:
    """A process that serves one client, until the client, its limit or itself ends it."""

    def __init__(self) -> None:
        self._folder = SharedFolder()
        self._pool = WorkerPool(Launch(_SERVICE), 1, str(self._folder.path), Frame({"type": "task"}))
        self._pool.start()
        self._pids: list[int] = []
        self._turn = threading.Lock()
        self.ended = threading.Event()

    def answer(self, frame: Frame) -> Frame:
        """What the process says to a message; "gone" with the reason if it is over."""
        with self._turn:
            if self.ended.is_set():
                return _gone(_OVER)
            self._pool.submit(Job(0, frame, math.inf))
            try:
                (answer,) = self._pool.answers()
            except TuningError as error:
                self.ended.set()
                return _gone(str(error))
            if isinstance(answer.reply, Death):
                self.ended.set()
                return _gone(f"its process {answer.reply.reason}. It printed: {answer.reply.output or 'nothing'}")
            # one that died between two messages was replaced, and with it all that the client had there
            pids, self._pids = self._pids, self._pool.pids
            if pids not in ([], self._pids):
                self.ended.set()
                return _gone("its process died")
            return answer.reply

    def close(self) -> None:
        """End the process, also in the middle of an answer."""
        self.ended.set()
        for pid in self._pool.pids:
            # by its group: the thread that waits for an answer sees the death, and lets go of its turn
            with contextlib.suppress(ProcessLookupError):
                os.killpg(pid, signal.SIGKILL)
        with self._turn:
            self._pool.close()
        self._folder.close()


class Loans:
    """What a station lends.

    Args:
        alone: holds the machine while something is measured.
    """

    def __init__(self, alone: Callable[[], AbstractContextManager[None]]) -> None:
        self._alone = alone
        self._loans: dict[str, Loan] = {}

    def lend(self, name: str, seconds: float, is_wanted: Callable[[], bool], announce: Callable[[], None]) -> None:
        """Lend a device under a name, and wait for the end of that.

        Args:
            name: of the loan.
            seconds: at most; 0 for as long as the client wants.
            is_wanted: whether it still does.
            announce: called when messages are taken.
        """
        loan = self._loans[name] = Loan()
        until = time.monotonic() + seconds if seconds > 0 else math.inf
        try:
            announce()
            while not loan.ended.wait(_LOOK_SECONDS) and is_wanted() and time.monotonic() < until:
                pass
        finally:
            del self._loans[name]
            loan.close()

    def answer(self, name: str, data: bytes) -> bytes:
        """The answer to a message of the client that has a loan."""
        loan = self._loans.get(name)
        if loan is None:
            return encode(_gone(_OVER))
        frame = frame_of(data)
        with self._alone() if frame.type == TIMED else contextlib.nullcontext():
            return encode(loan.answer(frame))

    def close(self) -> None:
        """Take all back."""
        for loan in list(self._loans.values()):
            loan.ended.set()


def _gone(message: str) -> Frame:
    return Frame({"type": GONE, "message": message})
