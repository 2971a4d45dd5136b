"""TVM in an interpreter of its own, with schedules from its auto-scheduler's log, or tuned into it first."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ....target import Target
from ....workloads import Case
from .base import Array, Call, Peer, Unsupported

_CHILD = Path(__file__).with_name("tvm_child.py")


class Tvm(Peer):
    """TVM, reached through a pipe; its own native loop measures it, since a call through the pipe would cost more than a kernel.

    The interpreter is named by TENSOREXPR_TVM_PYTHON, the folder of its LLVM library (if it needs one) by TENSOREXPR_TVM_LIBRARY,
    its log by TENSOREXPR_TVM_LOG, and how many trials a case without a record gets by TENSOREXPR_TVM_TRIALS.
    """

    name = "tvm"

    def __init__(self, target: Target) -> None:
        super().__init__(target)
        python = os.environ.get("TENSOREXPR_TVM_PYTHON")
        if not python:
            raise ImportError("TENSOREXPR_TVM_PYTHON doesn't name an interpreter that has TVM")
        environment = {**os.environ, "TVM_NUM_THREADS": str(self.threads)}
        library = os.environ.get("TENSOREXPR_TVM_LIBRARY")
        if library:
            environment["LD_LIBRARY_PATH"] = library
        self._folder = Path(tempfile.mkdtemp())
        self._log = os.environ.get("TENSOREXPR_TVM_LOG", str(self._folder / "tvm.json"))
        self._trials = int(os.environ.get("TENSOREXPR_TVM_TRIALS", "0"))
        pipe = subprocess.PIPE
        self._child = subprocess.Popen(
            [python, str(_CHILD)], stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, text=True, env=environment
        )

    def prepare(self, case: Case, arrays: Sequence[Array]) -> Call:
        """See `Peer.prepare`."""
        if any(a.dtype != np.float32 for a in arrays):
            raise Unsupported("measured in float32")
        paths = []
        for number, array in enumerate(arrays):
            paths.append(str(self._folder / f"{number}.npy"))
            np.save(paths[-1], array)
        target = f"llvm -mcpu={self.target.mcpu} -num-cores {self.threads}"
        request = {
            "prepare": case.workload,
            "args": list(case.args),
            "arrays": paths,
            "log": self._log,
            "trials": self._trials,
            "target": target,
        }
        answer = self._ask(request)
        if "unsupported" in answer:
            raise Unsupported(answer["unsupported"])
        self.version = answer["version"]

        def call() -> Any:
            self._ask({"result": str(self._folder / "result.npy")})
            return np.load(self._folder / "result.npy")

        return call

    def seconds(self, count: int) -> float:
        """Seconds of one call, by TVM's own native loop of `count` calls."""
        return float(self._ask({"time": count})["seconds"])

    def _ask(self, request: dict[str, Any]) -> dict[str, Any]:
        assert self._child.stdin is not None and self._child.stdout is not None
        try:
            self._child.stdin.write(json.dumps(request) + "\n")
            self._child.stdin.flush()
            answer = self._child.stdout.readline()
        except OSError as error:
            raise Unsupported(f"TVM's interpreter is gone: {error}") from error
        if not answer:
            raise Unsupported("TVM's interpreter is gone")
        found: dict[str, Any] = json.loads(answer)
        return found

    def close(self) -> None:
        """End TVM's interpreter."""
        self._child.kill()
        self._child.wait()
        shutil.rmtree(self._folder, ignore_errors=True)
