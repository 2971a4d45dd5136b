"""The door of a fleet: a scheduler, and what its workers offer."""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Callable, Collection
from functools import cached_property
from types import TracebackType
from typing import Any
from urllib.request import urlopen

from ..errors import TuningError
from ..target import Target
from ..target.machine import without_caches
from . import calls, lending, local
from .lending import Lent
from .messages import WorkerDescription
from .plugs import FleetBuilder, FleetRunner
from .resources import keys_of, other_versions, run_on
from .security import distributed_package, security_of

logger = logging.getLogger(__name__)
_CONNECT_SECONDS = 10.0
_PAUSE_SECONDS = 0.2
_DASHBOARD_SECONDS = 2.0
# How Dask's names of calls begin that hold a device.
_ON_DEVICES = ("run-", "lend-")


class Fleet:
    """The workers of a Dask scheduler that compile and measure programs: `python -m tensorexpr worker SCHEDULER`.

    Args:
        scheduler: its address, such as "tcp://10.0.0.5:8786", or a `distributed.Client`.
        patience_s: seconds without the scheduler, or without any worker that could do a job, after which a search gives up.
        tls_ca_file, tls_cert, tls_key: files of TLS, as of Dask; for an address.

    Raises:
        TuningError: if Dask isn't installed, or no scheduler answers.
    """

    def __init__(
        self,
        scheduler: Any,
        patience_s: float = 60.0,
        tls_ca_file: str | None = None,
        tls_cert: str | None = None,
        tls_key: str | None = None,
    ) -> None:
        self.patience_s = patience_s
        self._cluster: Any = None
        self._is_closed = False
        self._security = security_of(tls_ca_file, tls_cert, tls_key)
        if isinstance(scheduler, str):
            self.address, self._is_own = scheduler, True
            self._client = self._connected(_CONNECT_SECONDS)
        elif isinstance(scheduler, distributed_package().Client):
            self.address, self._is_own = str(scheduler.scheduler.address), False
            self._client = scheduler
        else:
            raise TuningError(f'Fleet takes an address such as "tcp://10.0.0.5:8786" or a distributed.Client, not {scheduler!r:.80}')

    @staticmethod
    def local(
        workers: int = 2,
        cores: int | None = None,
        key: str | None = None,
        device: str = "cpu",
        devices: int = 1,
        patience_s: float = 60.0,
    ) -> Fleet:
        """A fleet of this machine, for laptops and tests: a scheduler in this process, and workers on loopback.

        Args:
            workers: processes that compile. The first one measures as well; of other devices than the CPU each has some.
            cores: programs that they compile at the same time, all together; the usable cores if None.
            key: of the devices; the CPU's name if None.
            device: "cpu", or `module:function` of what is measured on.
            devices: of each worker that measures.
            patience_s: as of `Fleet`.

        Raises:
            TuningError: if Dask isn't installed, or the workers don't start, or there are to be none.
        """
        if workers < 1:
            raise TuningError(f"Fleet.local takes workers from 1, not {workers}")
        cluster = local.cluster(workers, cores, key, device, devices)
        try:
            fleet = Fleet(cluster.scheduler_address, patience_s)
        except BaseException:
            cluster.close()
            raise
        fleet._cluster = cluster
        try:
            fleet.client.wait_for_workers(workers, timeout=patience_s)
        except TimeoutError:
            fleet.close()
            raise TuningError(f"the workers of this machine didn't start within {patience_s:g} s; see what they print") from None
        return fleet

    @property
    def client(self) -> Any:
        """The `distributed.Client`, connected; one that lost its scheduler is waited for.

        Raises:
            TuningError: if the scheduler stays away.
        """
        deadline = time.monotonic() + self.patience_s
        while self._client.status != "running":
            if self._client.status == "closed" and self._is_own:
                self._client = self._connected(max(0.1, deadline - time.monotonic()))
            elif time.monotonic() > deadline or self._client.status == "closed":
                raise self._gone()
            else:
                time.sleep(_PAUSE_SECONDS)
        return self._client

    def _gone(self) -> TuningError:
        return TuningError(f"the scheduler at {self.address} is gone; what was measured is in the log, and a search goes on from there")

    def _connected(self, timeout_s: float) -> Any:
        distributed = distributed_package()
        deadline = time.monotonic() + timeout_s
        while True:
            try:
                # Before there is a client: one that was made for no address waits for its scheduler when it is deleted.
                scheme, place = distributed.comm.parse_address(self.address)
                distributed.comm.registry.get_backend(scheme)
                if scheme in ("tcp", "tls"):
                    distributed.comm.parse_host_port(place)
                return distributed.Client(self.address, security=self._security, timeout=max(1.0, timeout_s / 2), set_as_default=False)
            except TypeError as error:  # Dask's for an encrypted connection without files
                raise TuningError(
                    f"{self.address} is an encrypted connection, which takes tls_ca_file, tls_cert and tls_key, or Dask's configuration "
                    f"of them: {str(error)[:100]}"
                ) from None
            except ValueError as error:
                raise TuningError(
                    f"{self.address!r} is no address of a scheduler ({str(error)[:100]}); it is written as tcp://HOST:PORT, or tls://HOST:PORT"
                ) from None
            except MemoryError:  # Dask takes the first bytes of an answer for a length
                raise TuningError(
                    f"what answers at {self.address} is no scheduler of Dask; see which port `dask scheduler` printed"
                ) from None
            except (OSError, TimeoutError) as error:
                if time.monotonic() > deadline:
                    raise TuningError(
                        f"no scheduler answers at {self.address}: {str(error)[:200]}. Start one with `dask scheduler --host ADDRESS`"
                    ) from None
                time.sleep(_PAUSE_SECONDS)

    def workers(self) -> list[WorkerDescription]:
        """The workers of this version, as they describe themselves."""
        found = self.client.run(calls.describe, on_error="ignore", workers=list(self._offers()))
        described = [WorkerDescription.of({**data, "address": address}) for address, data in sorted(found.items()) if data]
        return described

    def devices(self) -> dict[str, int]:
        """How many devices there are of each key."""
        keys = sorted({key for resources in self._offers().values() for key in keys_of(resources)})
        return {key: self.count(run_on(key)) for key in keys}

    def key(self, wanted: str | None = None) -> str:
        """The key of devices that are there, waited for; the only one if None.

        Raises:
            TuningError: if there are none, or several to choose from.
        """
        deadline = time.monotonic() + self.patience_s
        while not (known := self.devices()) or (wanted is not None and wanted not in known):
            # a wrong key is told at once: other devices are there already
            if known or time.monotonic() > deadline:
                raise TuningError(self.nobody(run_on(wanted) if wanted else run_on("")))
            time.sleep(_PAUSE_SECONDS)
        if wanted is None and len(known) > 1:
            raise TuningError(f"the fleet has devices of several keys: {', '.join(known)}; choose one: fleet.runner(key=...)")
        return wanted or next(iter(known))

    def target(self, key: str | None = None) -> Target:
        """The machine behind the devices of a key: what tasks are made for that are measured there.

        Raises:
            TuningError: if there is no such device, or machines of one key differ.
        """
        chosen = self.key(key)
        targets = {without_caches(worker.target): worker.target for worker in self.workers() if chosen in worker.keys}
        if len(targets) != 1:
            raise TuningError(f"devices of key {chosen!r} are of different machines: {'; '.join(targets)}; give them keys of their own")
        return Target(next(iter(targets.values())))

    def check_target(self, key: str, target: Target) -> None:
        """Refuse a target that says "this machine" where the devices are of another one.

        Raises:
            TuningError: if it does.
        """
        named = target.attrs.get("mcpu") and target.attrs.get("num-cores")
        there = self.target(key)
        if not named and without_caches(str(target.resolved())) != without_caches(str(there)):
            raise TuningError(
                f"the task is for this machine ({target.resolved()}), and devices of key {key!r} are {there}; make the task with "
                f"target=fleet.target({key!r})"
            )

    def builder(self, timeout: float | None = None, build_func: Any = "default") -> FleetBuilder:
        """What compiles programs on the fleet; see `FleetBuilder`."""
        return FleetBuilder(self, timeout, build_func)

    def runner(
        self,
        key: str | None = None,
        timeout: float | None = None,
        number: int | None = None,
        repeat: int | None = None,
        min_repeat_ms: int | None = None,
        cooldown_interval: float | None = None,
        enable_cpu_cache_flush: bool | None = None,
        priority: int = 0,
    ) -> FleetRunner:
        """What measures programs on the fleet's devices of a key; see `FleetRunner`."""
        return FleetRunner(self, key, timeout, number, repeat, min_repeat_ms, cooldown_interval, enable_cpu_cache_flush, priority)

    def lend(self, key: str, priority: int = 0, seconds: float = 0.0, wait_s: float | None = None) -> Lent:
        """A device that this client has for itself; see `lending.lend`. `rpc.connect_tracker` makes sessions of it."""
        return lending.lend(self, key, priority, seconds, wait_s)

    def close(self) -> None:
        """Leave the scheduler; end the workers of `Fleet.local`. Safe to call again."""
        self._is_closed = True
        if self._is_own and self._client.status != "closed":
            self._client.close(timeout=5)
        if self._cluster is not None:
            self._cluster.close(timeout=20)
            self._cluster = None

    def __enter__(self) -> Fleet:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Fleet({self.address!r})"

    def names(self) -> list[str]:
        """The names of all workers, as Dask's pages show them."""
        return [str(worker["name"]) for worker in self._known().values()]

    def _offers(self) -> dict[str, dict[str, float]]:
        """The resources of each worker."""
        return {address: dict(worker.get("resources", {})) for address, worker in self._known().items()}

    def _known(self) -> dict[str, Any]:
        """What the scheduler knows of each worker, by address."""
        deadline = time.monotonic() + self.patience_s
        while time.monotonic() <= deadline:
            client = self.client
            # not client.scheduler_info, which a timer of Dask empties of workers between the answer and the look at it
            with contextlib.suppress(OSError):
                return dict(client.sync(client.scheduler.identity)["workers"])
            time.sleep(_PAUSE_SECONDS)
        raise self._gone()

    def count(self, resource: str) -> int:
        """How much there is of a resource now."""
        return int(sum(resources.get(resource, 0) for resources in self._offers().values()))

    def holders(self, resource: str) -> list[str]:
        """The workers that have some of it."""
        return sorted(address for address, resources in self._offers().items() if resources.get(resource))

    @property
    def is_closed(self) -> bool:
        """Whether `close` was called."""
        return self._is_closed

    @cached_property
    def dashboard(self) -> str | None:
        """The address of Dask's own pages about the scheduler; None if they aren't served, or not to this machine."""
        link = self.client.dashboard_link
        try:
            # a scheduler without them has an address for them all the same
            with urlopen(str(link), timeout=_DASHBOARD_SECONDS):
                return str(link)
        except (OSError, ValueError):
            return None

    def demand(self, key: str) -> tuple[int, int]:
        """How many devices of a key are free, and how many jobs wait for one. A worker that doesn't answer has none that is free."""
        resource, offers = run_on(key), self._offers()
        workers = sorted(address for address, resources in offers.items() if resources.get(resource))
        used = self.client.run(calls.used, workers=workers, on_error="ignore") if workers else {}
        # by the workers that were asked: one that has just come isn't known to be free
        busy = int(sum(found.get(resource, 0) for found in used.values()))
        offered = int(sum(offers[address][resource] for address in used))
        jobs = sum(name.startswith(_ON_DEVICES) for found in self.client.processing(workers).values() for name in found)
        return offered - busy, max(0, jobs - busy)

    def processing(self, keys: Collection[str]) -> list[str]:
        """The workers that work on calls with these keys, or have them waiting."""
        return sorted(worker for worker, known in self.client.processing().items() if set(known) & set(keys))

    def tell(self, function: Callable[..., Any], *args: Any) -> None:
        """Call a function on all workers without waiting, if the scheduler is there."""
        if self._client.status == "running":
            self._client.run(function, *args, wait=False, on_error="ignore")

    def nobody(self, resource: str) -> str:
        """Why nobody does jobs that need a resource."""
        offers = self._offers()
        names = {name for resources in offers.values() for name in resources}
        keys, others = keys_of(names), other_versions(names)
        wanted = keys_of([resource])
        known = f"; there are devices of the keys {', '.join(keys)}" if keys else ""
        versions = (
            f"; workers of tensorexpr {', '.join(others)} are there, which make other programs: install one version" if others else ""
        )
        what = f"no device of key {wanted[0]!r}" if wanted and wanted[0] else "no device" if wanted else "no worker that compiles"
        return (
            f"{what} at the scheduler {self.address}, which has {len(offers)} workers{known}{versions}. Start one: "
            f"python -m tensorexpr worker {self.address}{f' --key {wanted[0]}' if wanted and wanted[0] else ''}"
        )
