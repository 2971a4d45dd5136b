"""Kernels built side by side: by workers where that pays, else here.

Schedules and lowering are Python, and llvmlite lets one thread at a time into LLVM, so threads gain nothing: workers are processes. They
are started afresh, as a copy of this one would hold locks of threads that it doesn't have, and they get computations, no weights.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar

from ..errors import LoweringError, TensorExprError
from ..lower.context import PassContext
from ..lower.plain_context import context_to_json
from ..processor import usable_cores
from ..target import Target
from ..tir.op_registry import has_lowering_rules
from ..tune.measure.pool import Job
from ..tune.measure.process import Launch
from ..tune.measure.protocol import Frame
from ..tune.measure.workers import Workers
from .kernel_schedules import built_kernel
from .kernels import BuiltKernel, Wanted
from .regions import regions_of, regions_to_json

_MODULE = "tensorexpr.relax.kernel_worker"
# A worker is ready after about a second, which two or three kernels take: each should have some more than that to do.
_LEAST_EACH = 4
_LIMIT_SECONDS = 600.0
_ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
_KEPT: ContextVar[Workers | None] = ContextVar("workers of builds", default=None)


@contextmanager
def kept_workers() -> Iterator[None]:
    """Within this context workers outlive a build, and serve the next one."""
    with Workers() as workers:
        token = _KEPT.set(workers)
        try:
            yield
        finally:
            _KEPT.reset(token)


def made_kernels(wanted: Mapping[str, Wanted], target: Target) -> Iterator[tuple[str, BuiltKernel]]:
    """Build kernels; each comes with its name, in the order in which they are done.

    The option "relax.build.processes" of a PassContext says how many workers there are, 1 for none; by default as many as cores where
    there are kernels enough.

    Raises:
        LoweringError, CodegenError: from the steps.
    """
    travelling = {name: one for name, one in wanted.items() if one.computation is not None}
    count = _workers(len(travelling))
    done: set[str] = set()
    if count > 1:
        for name, kernel in _by_workers(travelling, target, count):
            done.add(name)
            yield name, kernel
    for name, one in wanted.items():  # also those that a worker failed at: here the error tells the user
        if name not in done:
            yield name, built_kernel(one.func, one.symbol, target, one.constants, one.recorded)


def _workers(kernels: int) -> int:
    """How many workers build so many kernels; 1 if this process does it itself."""
    context = PassContext.current()
    stated = int(context.config.get("relax.build.processes", 0))
    if context.instruments or has_lowering_rules():  # Python functions of this process that watch or change what is built
        return 1
    kept = _KEPT.get()
    if kept is not None and kept.pids and kernels > 1:  # they run already
        return stated or usable_cores()
    # For few kernels this is 0, which means as 1 does that no worker is started.
    return min(stated or usable_cores(), kernels // (1 if stated else _LEAST_EACH))


def _by_workers(wanted: Mapping[str, Wanted], target: Target, count: int) -> Iterator[tuple[str, BuiltKernel]]:
    """The kernels that workers built; those that they didn't are left out."""
    try:
        shared = {"type": "target", "target": target.resolved().export(), "context": context_to_json(PassContext.current())}
    except LoweringError:  # options that don't travel
        return
    names = list(wanted)
    launch = Launch(_MODULE, environment=_ONE_THREAD)
    kept = _KEPT.get()
    workers = kept or Workers()
    try:
        pool = workers.pool(launch, count, Frame(shared))
        for n, name in enumerate(names):
            one = wanted[name]
            steps = None if one.recorded is None else one.recorded.to_json()
            said = {"constants": list(one.constants), "recorded": steps, "regions": regions_to_json(regions_of(one.func))}
            header = {"type": "kernel", "symbol": one.symbol, **said}
            pool.submit(Job(n, Frame(header, (json.dumps(one.computation).encode(),)), _LIMIT_SECONDS))
        for answer in pool.answers():
            reply = answer.reply
            if isinstance(reply, Frame) and reply.type == "built":
                # By key: answers come in the order in which kernels are done.
                name = names[answer.key]
                yield name, BuiltKernel.of_parts(wanted[name].symbol, target, reply.header["kernel"], reply.blobs)
    except (TensorExprError, OSError):
        return  # no process can be started here
    finally:
        if kept is None:
            workers.close()
