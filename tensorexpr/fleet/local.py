"""The fleet of one machine: a scheduler in this process, and workers that are started as any other worker is."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
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
    scheduler = {
        "cls": distributed.Scheduler,
        "options": {"host": _LOOPBACK, "port": 0, "dashboard": False, "dashboard_address": f"{_LOOPBACK}:0"},
    }
    return distributed.SpecCluster(workers=specs, scheduler=scheduler, silence_logs=30)


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
            root = str(Path(__file__).resolve().parents[2])
            path = os.pathsep.join(dict.fromkeys([*map(os.path.abspath, sys.path), root]))
            self._process = await asyncio.create_subprocess_exec(
                *self._command, stdin=asyncio.subprocess.DEVNULL, env={**os.environ, "PYTHONPATH": path}, start_new_session=True
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
