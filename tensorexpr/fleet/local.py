"""The fleet of one machine: a scheduler in this process, and workers that are started as any other worker is."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from ..processor import usable_cores
from .devices import CPU
from .security import distributed_package

_END_SECONDS = 5.0
_LOOPBACK = "127.0.0.1"


def cluster(workers: int, cores: int | None, key: str | None, device: str, devices: int) -> Any:
    """A Dask cluster; arguments as of `Fleet.local`."""
    distributed = distributed_package()
    total = usable_cores() if cores is None else cores
    share = [total // workers + (number < total % workers) for number in range(workers)]
    # one CPU is one device, however many processes compile for it
    measuring = [devices if device != CPU or number == 0 else 0 for number in range(workers)]
    options = [*(["--key", key] if key else []), "--device", device]
    specs = {
        number: {
            "cls": _worker_class(),
            "options": {"arguments": [*options, "--jobs", str(max(1, share[number])), "--devices", str(measuring[number])]},
        }
        for number in range(workers)
    }
    return distributed.SpecCluster(workers=specs, scheduler=_scheduler_spec(_LOOPBACK, 0), silence_logs=30)


def scheduler(host: str, port: int, security: Any) -> Any:
    """A Dask cluster that has no workers of its own: its scheduler is for those that come.

    Raises:
        OSError, RuntimeError: if it can't listen there.
    """
    spec = _scheduler_spec(host, port)
    if security is not None:
        spec["options"] |= {"protocol": "tls://", "security": security}
    return distributed_package().SpecCluster(workers={}, scheduler=spec, security=security, silence_logs=30)


def _scheduler_spec(host: str, port: int) -> dict[str, Any]:
    options = {"host": host, "port": port, "dashboard": False, "dashboard_address": f"{_LOOPBACK}:0"}
    return {"cls": distributed_package().Scheduler, "options": options}


def environment() -> dict[str, str]:
    """The environment of a process that imports what this one can."""
    root = str(Path(__file__).resolve().parents[2])
    return {**os.environ, "PYTHONPATH": os.pathsep.join(dict.fromkeys([*map(os.path.abspath, sys.path), root]))}


def end(process: subprocess.Popen[bytes], seconds: float) -> None:
    """End a worker that leads a session of its own, with all that it started. It has some seconds to do so itself."""
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


@lru_cache(maxsize=1)
def _worker_class() -> type[Any]:
    """A worker as `SpecCluster` wants it. Made here, since Dask is imported only by those who use it."""
    from distributed.deploy.spec import ProcessInterface

    class CommandWorker(ProcessInterface):
        """`python -m tensorexpr worker`, so that programs that start a fleet need no guard around their main part."""

        def __init__(self, scheduler: str, name: Any, arguments: Sequence[str], **_: Any) -> None:
            self._command = [sys.executable, "-m", "tensorexpr", "worker", scheduler, "--name", str(name), "--retry", "0", *arguments]
            self._process: asyncio.subprocess.Process | None = None
            super().__init__(scheduler=scheduler, name=name)  # type: ignore[no-untyped-call]

        async def start(self) -> None:
            """Start the process, without waiting until it has connected."""
            self._process = await asyncio.create_subprocess_exec(
                *self._command, stdin=asyncio.subprocess.DEVNULL, env=environment(), start_new_session=True
            )
            await super().start()  # type: ignore[no-untyped-call]

        async def close(self) -> None:
            """End the process and all that it started."""
            if self._process is not None and self._process.returncode is None:
                with contextlib.suppress(ProcessLookupError):
                    self._process.terminate()
                with contextlib.suppress(asyncio.TimeoutError):
                    await asyncio.wait_for(self._process.wait(), _END_SECONDS)
                if self._process.returncode is None:
                    os.killpg(self._process.pid, signal.SIGKILL)
                    await self._process.wait()
            await super().close()  # type: ignore[no-untyped-call]

    return CommandWorker
