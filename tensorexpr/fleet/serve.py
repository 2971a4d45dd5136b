"""The process of a worker: a Dask nanny, which starts the worker again when it dies, and connects again when the scheduler was away."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import platform
import signal
import socket
import time
from collections.abc import Sequence
from typing import Any
from urllib.parse import urlsplit

from .. import __version__, processor
from ..dataclass import dataclass
from ..errors import TuningError
from ..runtime import engine
from ..target import Target
from ..tune.measure.native import calibrated
from .cores import Cores
from .devices import CPU, device_named
from .resources import offered
from .security import check_listening, distributed_package, host_of, is_loopback

logger = logging.getLogger(__name__)
# How the worker's process, which the nanny starts, learns what it offers.
STATION = "TENSOREXPR_STATION"
_PAUSE_SECONDS = 1.0
# A machine that others use may take a minute to start a process.
_START_SECONDS = 180.0
_LISTENS_SECONDS = 5.0


@dataclass(frozen=True)
class WorkerOptions:
    """What a worker offers and where it listens; the command line `python -m tensorexpr worker` says it."""

    scheduler: str
    keys: Sequence[str] = ()
    name: str | None = None
    host: str | None = None
    jobs: int | None = None
    device: str = CPU
    devices: int = 1
    cores: Sequence[int] = ()
    retry_s: float = float("inf")
    security: Any = None
    insecure: bool = False


def describe(options: WorkerOptions) -> dict[str, Any]:
    """What the worker says of itself; see `messages.WorkerDescription`.

    Raises:
        TuningError: if there is no such device, or nothing can be timed here.
    """
    device_named(options.device)
    target = Target("llvm").resolved()
    versions = {"tensorexpr": __version__, "llvm": engine.llvm_version(), "python": platform.python_version()}
    return {
        "keys": list(options.keys) or [target.mcpu],
        "devices": options.devices,
        "device": options.device,
        "target": str(target),
        "cores": options.jobs or processor.usable_cores(),
        "host": socket.gethostname(),
        "versions": versions,
        "speed": _speed(options),
    }


def _speed(options: WorkerOptions) -> float:
    """How fast the CPU is now, if it is what is measured on."""
    if options.device != CPU or not options.devices:
        return 0.0
    with Cores().to_measure():
        return calibrated(processor.usable_cores())


def serve(options: WorkerOptions) -> int:
    """Work until SIGINT or SIGTERM, or until the scheduler has been away for `retry_s`; the exit code.

    Raises:
        TuningError: for an address that others reach, without TLS; for a device that there isn't; without Dask.
    """
    distributed_package()
    # each start and end of a worker is told of otherwise
    logging.getLogger("distributed").setLevel(logging.WARNING)
    if options.cores:
        os.sched_setaffinity(0, options.cores)
    reached = host_of(options.scheduler)
    host = options.host or ("127.0.0.1" if is_loopback(reached) else _address_towards(reached))
    check_listening(host, options.security, options.insecure)
    said = describe(options)
    speed = f", {said['speed'] / 1e6:.1f} million steps of the probe a second" if said["speed"] else ""
    print(
        f"worker of {options.scheduler}: {said['devices']} x {said['device']}, keys {', '.join(said['keys'])}{speed}, {said['target']}",
        flush=True,
    )
    return asyncio.run(_serve(options, host, said))


async def _serve(options: WorkerOptions, host: str, said: dict[str, Any]) -> int:
    ended = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, ended.set)
    away_since = time.monotonic()
    while not ended.is_set():
        try:
            work = asyncio.ensure_future(_work(_nanny(options, host, said)))
            await _first(work, ended.wait())
            await asyncio.gather(work, return_exceptions=ended.is_set())
            # it had a scheduler until now, or still has: a nanny also ends when its worker took too long to start again
            away_since = time.monotonic()
            is_there = not ended.is_set() and await _is_there(options.scheduler)
        # a nanny whose worker isn't there in time fails an assertion when it tidies up
        except (OSError, TimeoutError, RuntimeError, AssertionError) as error:
            listens = await _is_there(options.scheduler)
            why = (
                f"{type(error).__name__}: {error}" if listens else "no scheduler answers there: `dask scheduler --host ADDRESS` starts one"
            )
            logger.warning("no worker of %s was started: %s", options.scheduler, why)
            is_there = False
        if not is_there and time.monotonic() - away_since >= options.retry_s:
            break
        await _first(asyncio.sleep(_PAUSE_SECONDS), ended.wait())
    return 0


async def _work(nanny: Any) -> None:
    """Until the nanny gives up, or is told to end, if only while it looks for its scheduler, which takes it half a minute."""
    try:
        async with nanny:
            await nanny.finished()
    except asyncio.CancelledError:
        await nanny.close()
        raise


async def _is_there(scheduler: str) -> bool:
    """Whether somebody listens at an address."""
    parts = urlsplit(scheduler if "://" in scheduler else f"tcp://{scheduler}")
    try:
        _, writer = await asyncio.wait_for(asyncio.open_connection(parts.hostname, parts.port), _LISTENS_SECONDS)
    except (OSError, TimeoutError, ValueError, asyncio.TimeoutError):
        return False
    writer.close()
    return True


def _nanny(options: WorkerOptions, host: str, said: dict[str, Any]) -> Any:
    keys, cores, devices = said["keys"], said["cores"], said["devices"]
    return distributed_package().Nanny(
        options.scheduler,
        # a thread for each job that may be worked on
        nthreads=cores + devices,
        name=options.name,
        host=host,
        resources=offered(cores, keys, devices),
        # memory is used by processes that Dask doesn't see, and those have limits of their own
        memory_limit=0,
        # Dask's pages of a worker have no TLS and no password
        dashboard=False,
        dashboard_address="127.0.0.1:0",
        death_timeout=min(options.retry_s or _START_SECONDS, _START_SECONDS),
        security=options.security,
        preload=["tensorexpr.fleet.preload"],
        env={STATION: json.dumps(said)},
        silence_logs=logging.WARNING,
    )


async def _first(*things: Any) -> None:
    """Wait for the first of some things, and give the others up."""
    tasks = [asyncio.ensure_future(thing) for thing in things]
    _, left = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    for task in left:
        task.cancel()


def _address_towards(host: str) -> str:
    """This machine's address on the way to another one.

    Raises:
        TuningError: if there is no way.
    """
    try:
        kind, _, _, _, address = socket.getaddrinfo(host, 9, type=socket.SOCK_DGRAM)[0]
        with socket.socket(kind, socket.SOCK_DGRAM) as probe:
            probe.connect(address)  # sends nothing
            return str(probe.getsockname()[0])
    except OSError as error:
        raise TuningError(f"there is no way to {host}: {error}") from None
