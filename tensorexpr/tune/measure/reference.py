"""The arrays to measure with, made by a process of their own while the first candidates compile."""

from __future__ import annotations

import logging
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...errors import TuningError
from ...log import once
from .arrays import StoredArray, save_array
from .process import Death, Launch, WorkerProcess, wait
from .protocol import Frame
from .results import MeasureOptions
from .workers import Workers

if TYPE_CHECKING:
    from .task import MeasureTask

logger = logging.getLogger(__name__)
MODULE = "tensorexpr.tune.measure.reference_worker"
_LAUNCH = Launch(MODULE)


class Reference:
    """Inputs and expected outputs of a task, in files of a folder."""

    def __init__(self, task: MeasureTask, options: MeasureOptions, folder: Path, workers: Workers | None = None) -> None:
        self._workers, self._is_shared = workers or Workers(), workers is not None
        self._task = task
        self._folder = folder
        self._limit_s = options.reference_timeout_s
        self._request: dict[str, Any] = {"type": "evaluate", "folder": str(folder), "seed": task.seed, "verify": options.verify}
        self._worker: WorkerProcess | None = None
        self._deadline = 0.0
        self._arrays: list[StoredArray] | None = None

    @property
    def pids(self) -> list[int]:
        """The process id of the worker, if it runs."""
        return [self._worker.pid] if self._worker is not None and self._worker.death is None else []

    def start(self) -> None:
        """Start the process and hand it the work, without waiting."""
        given = []
        for number, tensor in enumerate(self._task.args):
            if tensor in self._task.inputs:
                save_array(self._folder / f"given{number}.bin", self._task.inputs[tensor])
                given.append([number, f"given{number}.bin"])
        self._request["given"] = given
        self._spawn()

    def arrays(self) -> list[StoredArray]:
        """The arguments in order; waits until they are there.

        A process that somebody kills is started again. If the definition can't be evaluated, or takes too long, there
        are inputs only, and a warning says why.

        Raises:
            TuningError: if even inputs can't be made.
        """
        if self._arrays is None:
            reply = self._finish()
            # what took too long once would do so again
            if isinstance(reply, Death) and not reply.timed_out:
                reply = self._again(reply, verify=self._request["verify"])
            if isinstance(reply, Death) and self._request["verify"]:
                once(logger, f"candidates can't be verified: evaluating the definition {reply.reason}")
                reply = self._again(reply, verify=False)
            if isinstance(reply, Death) or reply.type != "arrays":
                reason = reply.reason if isinstance(reply, Death) else reply.header.get("message", "")
                raise TuningError(f"arrays to measure with can't be made: {reason}")
            if reply.header["reason"]:
                once(logger, f"candidates can't be verified: {reply.header['reason']}")
            self._arrays = [StoredArray.from_json(item) for item in reply.header["arrays"]]
            self._give_back()
        return self._arrays

    def close(self) -> None:
        """Kill the process if it still works on this."""
        if self._worker is not None:
            self._worker.kill("not needed any more")
            self._worker = None
        if not self._is_shared:
            self._workers.close()

    def _give_back(self) -> None:
        """Leave the process to the next task, if there may be one."""
        if self._is_shared and self._worker is not None:
            self._workers.keep(_LAUNCH, self._worker)
            self._worker = None
        self.close()

    def _spawn(self) -> None:
        self._worker = self._workers.process(_LAUNCH)
        self._deadline = time.monotonic() + self._limit_s
        self._worker.send(Frame({"type": "task", "task": self._task.to_json()}))
        self._worker.send(Frame(self._request))

    def _again(self, death: Death, verify: bool) -> Frame | Death:
        logger.debug("the reference worker is started again: %s", death)
        self._request["verify"] = verify
        self._spawn()
        return self._finish()

    def _finish(self) -> Frame | Death:
        """Wait for the answer to the request, which comes after the one to the greeting."""
        worker = self._worker
        assert worker is not None
        while worker.death is None:
            wait([worker], self._deadline - time.monotonic())
            for frame in worker.advance():
                # the greeting and the request were sent together, so that both answers come here
                if frame.type != "ready":
                    return frame
            if time.monotonic() > self._deadline:
                worker.kill(f"took longer than {self._limit_s:g} s", timed_out=True)
        return worker.death
