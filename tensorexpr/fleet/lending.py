"""A client's side of a loan: a device that it has for itself, and the process there that its messages reach."""

from __future__ import annotations

import contextlib
import time
from collections.abc import MutableMapping
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any
from uuid import uuid4
from weakref import WeakKeyDictionary

from ..errors import TuningError
from ..tune.measure.protocol import Frame, encode
from . import calls
from .loans import GONE
from .messages import frame_of
from .resources import run_on

if TYPE_CHECKING:
    from .fleet import Fleet

_LOOK_SECONDS = 0.5
_Arrivals = dict[str, "SimpleQueue[str]"]
_arrivals: MutableMapping[Any, _Arrivals] = WeakKeyDictionary()


class Lent:
    """A device that a worker lends; made by `lend`.

    Args:
        fleet: whose device.
        name: of the loan.
        where: the worker's address.
        future: of the call that lasts as long as the loan.
    """

    def __init__(self, fleet: Fleet, name: str, where: str, future: Any) -> None:
        self._fleet, self._name, self.where, self._future = fleet, name, where, future

    def answer(self, frame: Frame) -> Frame:
        """What the device's process says to a message.

        Raises:
            ProtocolError: if the message can't be sent.
            EOFError: if the loan is over, with the reason.
        """
        data = encode(frame)
        try:
            answers = self._fleet.client.run(calls.say, self._name, data, workers=[self.where])
            answer = frame_of(answers[self.where])
        except Exception as error:  # lost on the way: Dask has many names for that
            raise EOFError(f"{type(error).__name__}: {str(error)[:300]}") from None
        if answer.type == GONE:
            raise EOFError(str(answer.header["message"]))
        return answer

    def close(self) -> None:
        """Give the device back. Safe to call again, and by finalizers: it waits for nothing."""
        with contextlib.suppress(Exception):
            self._future.release()


def lend(fleet: Fleet, key: str, priority: int, seconds: float, wait_s: float | None) -> Lent:
    """The loan of a device with a key, once one is free.

    Args:
        fleet: whose.
        key: of the device.
        priority: higher ones get a device sooner.
        seconds: that the loan lasts at most; 0 for any.
        wait_s: seconds to wait for a device that is busy; None for any.

    Raises:
        TuningError: if there is none, or none gets free in time.
    """
    fleet.key(key)
    name, client = uuid4().hex, fleet.client
    found = _listening(client)[name] = SimpleQueue()
    until = None if wait_s is None else time.monotonic() + wait_s
    # a name of its own, which says what it is: Dask names calls after their functions and arguments otherwise
    future = client.submit(calls.lend, name, seconds, key=f"lend-{name}", resources={run_on(key): 1}, priority=priority, pure=False)
    try:
        while True:
            with contextlib.suppress(Empty):
                return Lent(fleet, name, found.get(timeout=_LOOK_SECONDS), future)
            if future.status in ("error", "cancelled", "lost", "finished"):
                raise TuningError(
                    f"no device of key {key!r} could be lent: {future.exception() if future.status == 'error' else future.status}"
                )
            if until is not None and time.monotonic() > until:
                raise TuningError(f"all devices of key {key!r} were busy for {wait_s:g} s: {fleet.devices().get(key, 0)} of them")
    except BaseException:
        future.release()
        raise
    finally:
        _listening(client).pop(name, None)


def _listening(client: Any) -> _Arrivals:
    """Where the announcements of workers go, by loan."""
    if client not in _arrivals:
        found: _Arrivals = {}
        _arrivals[client] = found

        def arrived(event: Any) -> None:
            said = event[1]
            if said["loan"] in found:
                found[said["loan"]].put(said["worker"])

        client.subscribe_topic(calls.LOANS, arrived)
    return _arrivals[client]
