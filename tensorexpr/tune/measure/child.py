"""What a worker process does before and around its work: ties its life to the parent's, caps its memory, answers frames."""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import os
import resource
import select
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from ...errors import TensorExprError
from .protocol import Channel, Frame, ProtocolError

MESSAGE_CHARACTERS = 500
TRACEBACK_CHARACTERS = 4000
_PR_SET_PDEATHSIG = 1
_OOM_SCORE = "500"
Handler = Callable[[Frame], Frame]


def parse_arguments(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """The command line that `process.WorkerProcess` writes."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--read", type=int, required=True, help="file descriptor of the pipe that requests come from")
    parser.add_argument("--write", type=int, required=True, help="file descriptor of the pipe that answers go to")
    parser.add_argument("--parent", type=int, required=True, help="process id of the tuner")
    parser.add_argument("--memory", type=int, default=0, help="bytes of data this process may have; 0: no limit")
    parser.add_argument("--die-with-parent", action="store_true", help="ask the system to kill this process when the tuner dies")
    parser.add_argument("--plug", default="", help="module:function that makes the service")
    return parser.parse_args(arguments)


def connect(options: argparse.Namespace) -> Channel:
    """Set the process up as a worker and return its channel to the parent."""
    for descriptor in (options.read, options.write):
        os.set_inheritable(descriptor, False)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if options.memory:
        resource.setrlimit(resource.RLIMIT_DATA, (options.memory, options.memory))
    # When memory runs out, the system should end a worker rather than the tuner. Not every system lets us say so.
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text(_OOM_SCORE)
    if options.die_with_parent:
        _die_with_parent(options.parent)
    threading.Thread(target=_watch, args=(options.read,), daemon=True).start()
    return Channel(options.read, options.write)


def _die_with_parent(parent: int) -> None:
    with contextlib.suppress(AttributeError, OSError):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
    # the parent may have died before the system was asked to tell of it
    if os.getppid() != parent:
        _end_group()


def _watch(descriptor: int) -> None:
    """End this process group when the parent's end of the pipe is gone, even if the main thread hangs in native code."""
    poller = select.poll()
    # no events wanted: poll then reports only that the other end hung up, and takes no request away from the main thread
    poller.register(descriptor, 0)
    poller.poll()
    _end_group()


def _end_group() -> None:
    # started by hand, the group is a shell's job or a test's
    if os.getpgrp() == os.getpid():
        os.killpg(os.getpgrp(), signal.SIGKILL)
    os._exit(1)


def serve(channel: Channel, handlers: Mapping[str, Handler]) -> None:
    """Answer every frame with what the handler of its type returns, or "failed" with the error, until the pipe is closed.

    The "key" of a request, if it has one, goes back with the answer.
    """
    while (frame := _receive(channel)) is not None:
        try:
            answer = handlers[frame.type](frame)
        except Exception as error:
            answer = failure(error)
        channel.send(Frame({**answer.header, "key": frame.header.get("key")}, answer.blobs))


def _receive(channel: Channel) -> Frame | None:
    try:
        return channel.receive()
    except ProtocolError as error:
        print(f"tensorexpr worker: {error}", file=sys.stderr)
        return None


def failure(error: BaseException, kind: str = "") -> Frame:
    """The answer to a request that failed: the first line of the message, the traceback, and what kind of failure it is."""
    line = (str(error).strip().splitlines() or [""])[0]
    message = (line if isinstance(error, TensorExprError) else f"{type(error).__name__}: {line}")[:MESSAGE_CHARACTERS]
    text = "".join(traceback.format_exception(type(error), error, error.__traceback__))[-TRACEBACK_CHARACTERS:]
    printable = text.encode(errors="replace").decode()
    return Frame({"type": "failed", "error": kind, "message": message.encode(errors="replace").decode(), "traceback": printable})
