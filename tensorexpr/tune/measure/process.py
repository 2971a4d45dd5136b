"""One worker process as its parent sees it: spawned, never forked; written and read without ever blocking; killed by group."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from ...dataclass import dataclass, field
from .protocol import READ_BYTES, Frame, FrameDecoder, ProtocolError, encode

_HEAD_BYTES = 1000
_TAIL_BYTES = 3000
_GRACE_SECONDS = 0.5
_REAP_SECONDS = 2.0
_PACKAGE_ROOT = str(Path(__file__).resolve().parents[3])


@dataclass(frozen=True)
class Launch:
    """How to start a worker.

    Args:
        module: what `python -m` runs; its command line is `child.parse_arguments`.
        plug: `module:function` that makes the worker's service; the worker's own when empty.
        memory_bytes: cap of the worker's data; 0 for none.
        environment: variables set on top of the parent's.
    """

    module: str
    plug: str = ""
    memory_bytes: int = 0
    environment: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Death:
    """Why a worker is gone: `reason` for people, the signal that ended it, whether we ended it for its limit, what it printed."""

    reason: str
    signal: int | None = None
    timed_out: bool = False
    output: str = ""


class _Output:
    """The start and the end of what a worker prints, however much that is."""

    def __init__(self) -> None:
        self._head = b""
        self._tail = b""
        self._dropped = 0

    def add(self, data: bytes) -> None:
        room = _HEAD_BYTES - len(self._head)
        self._head += data[:room]
        self._tail += data[room:] if room < len(data) else b""
        self._dropped += max(0, len(self._tail) - _TAIL_BYTES)
        self._tail = self._tail[-_TAIL_BYTES:]

    def text(self) -> str:
        gap = f"\n[... {self._dropped} bytes ...]\n" if self._dropped else ""
        return f"{self._head.decode(errors='replace')}{gap}{self._tail.decode(errors='replace')}".strip()


class WorkerProcess:
    """A running worker. Whatever it does, reading and writing here return at once; `death` says when and why it is gone."""

    def __init__(self, launch: Launch, folder: str) -> None:
        """Start the worker with `folder`, which should be private and hold no modules, as its working directory."""
        requests, self._write_fd = os.pipe()
        self._read_fd, answers = os.pipe()
        self._output_fd, printed = os.pipe()
        try:
            self._process = subprocess.Popen(
                [*_command(launch), f"--read={requests}", f"--write={answers}"],
                stdin=subprocess.DEVNULL,
                stdout=printed,
                stderr=printed,
                pass_fds=(requests, answers),
                # a group of its own, with the worker's id: killing the group ends what the worker starts too
                start_new_session=True,
                cwd=folder,
                env=_environment(launch),
            )
        except BaseException:
            for descriptor in (self._write_fd, self._read_fd, self._output_fd):
                os.close(descriptor)
            raise
        finally:
            # the worker's ends: kept open here, they would hide that the worker is gone
            for descriptor in (requests, answers, printed):
                os.close(descriptor)
        for descriptor in (self._write_fd, self._read_fd, self._output_fd):
            os.set_blocking(descriptor, False)
        self._decoder = FrameDecoder()
        self._outgoing = memoryview(b"")
        self._output = _Output()
        self._silent = False
        self.death: Death | None = None

    @property
    def pid(self) -> int:
        """The process id, which is also the id of its group."""
        return self._process.pid

    def send(self, frame: Frame) -> None:
        """Hand over a frame; what the pipe doesn't take now goes out in later calls of `advance`."""
        self._outgoing = memoryview(bytes(self._outgoing) + encode(frame))
        self._write()

    def interests(self) -> list[tuple[int, int]]:
        """The descriptors to wait on, with their events."""
        if self.death is not None:
            return []
        # a pipe that was closed at the other end is always readable: waiting on it would return at once, again and again
        output = [] if self._silent else [(self._output_fd, select.POLLIN)]
        writing = [(self._write_fd, select.POLLOUT)] if self._outgoing else []
        return [(self._read_fd, select.POLLIN), *output, *writing]

    def advance(self) -> list[Frame]:
        """Write and read what can be written and read now; returns the frames that are complete, and may set `death`."""
        if self.death is not None:
            return []
        self._write()
        self._collect_output()
        frames: list[Frame] = []
        try:
            while data := os.read(self._read_fd, READ_BYTES):
                frames.extend(self._decoder.feed(data))
            # neither data nor "try again": the worker's end is closed
            self._bury()
        except BlockingIOError:
            pass
        except ProtocolError as error:
            self.kill(f"sent garbage: {error}")
        return frames

    def kill(self, reason: str, timed_out: bool = False) -> None:
        """End the worker and everything it started, now."""
        if self.death is not None:
            return
        self._end_group()
        self._collect_output()
        self._close()
        self.death = Death(reason, int(signal.SIGKILL), timed_out, self._output.text())

    def _write(self) -> None:
        try:
            while self._outgoing:
                self._outgoing = self._outgoing[os.write(self._write_fd, self._outgoing) :]
        except BlockingIOError:
            pass
        except BrokenPipeError:
            self._outgoing = memoryview(b"")  # the read side tells how it died

    def _collect_output(self) -> None:
        try:
            data = os.read(self._output_fd, READ_BYTES)
        except BlockingIOError:
            return
        self._silent = not data
        self._output.add(data)

    def _bury(self) -> None:
        """Find out how a worker that closed its pipe ended."""
        deadline = time.monotonic() + _GRACE_SECONDS
        # its pipes close a moment before it is over, and how it ended is known after that only
        while not self._has_exited() and time.monotonic() < deadline:
            time.sleep(0.001)
        # asked before the group is killed, which would make SIGKILL the answer
        gone = self._has_exited()
        self._end_group()
        self._collect_output()
        code = self._process.returncode
        torn = " in the middle of an answer" if self._decoder.is_torn else ""
        self._close()
        if not gone or code is None:
            self.death = Death(f"closed its pipe{torn}", None, False, self._output.text())
        elif code < 0:
            self.death = Death(f"killed by {signal_name(-code)}{torn}", -code, False, self._output.text())
        else:
            self.death = Death(f"exited with code {code}{torn}", None, False, self._output.text())

    def _has_exited(self) -> bool:
        """Whether the process is over, without reaping it: until then its group id can't be anybody else's."""
        try:
            return os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
        except ChildProcessError:
            return True

    def _end_group(self) -> None:
        if self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, signal.SIGKILL)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(_REAP_SECONDS)

    def _close(self) -> None:
        for descriptor in (self._write_fd, self._read_fd, self._output_fd):
            os.close(descriptor)


def wait(workers: Sequence[WorkerProcess], seconds: float) -> None:
    """Wait until one of `workers` can be advanced, at most `seconds`."""
    poller = select.poll()
    for worker in workers:
        for descriptor, events in worker.interests():
            poller.register(descriptor, events)
    poller.poll(max(0.0, seconds) * 1000)


def signal_name(number: int) -> str:
    """The name of a signal, such as SIGSEGV."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _command(launch: Launch) -> list[str]:
    # The system takes the death of the thread that started a worker for the parent's death, so only the main thread may ask for it.
    tied = ["--die-with-parent"] if threading.current_thread() is threading.main_thread() else []
    plug = [f"--plug={launch.plug}"] if launch.plug else []
    return [sys.executable, "-m", launch.module, f"--parent={os.getpid()}", f"--memory={launch.memory_bytes}", *tied, *plug]


def _environment(launch: Launch) -> dict[str, str]:
    """The parent's environment and its module path, so that a worker imports what the parent would."""
    # relative entries, such as "" of an interactive session, mean another place in the worker's working directory
    path = [os.path.abspath(entry) for entry in sys.path]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(dict.fromkeys([*path, _PACKAGE_ROOT])), **launch.environment}
