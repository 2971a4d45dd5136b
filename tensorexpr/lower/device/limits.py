"""What a block of threads may take, by its function's target."""

from __future__ import annotations

from collections.abc import Sequence

from ...errors import LoweringError
from ...target import Target
from ...tir.arithmetic import as_int
from ...tir.dtype import parse_dtype
from ...tir.expr import PrimExpr
from ...tir.function import PrimFunc
from ...tir.stmt import Allocate
from ...tir.thread import MAX_THREADS

# Without a target for GPUs: what the largest one takes, so that a schedule that no GPU could run is told so.
MAX_SHARED_BYTES = 227 * 1024


def check_block(name: str, func: PrimFunc, extents: Sequence[PrimExpr], shared: Sequence[Allocate]) -> None:
    """Refuse a block of more threads, or more shared memory, than the target of `func` has.

    Raises:
        LoweringError: with the numbers.
    """
    target = func.attrs.get("target")
    known = target.attrs if isinstance(target, Target) else {}
    limit = int(known.get("max_threads_per_block", known.get("max_num_threads", MAX_THREADS)))
    threads = 1
    for extent in extents:
        threads *= as_int(extent) or 1
    of = f"{target.kind.name} has" if isinstance(target, Target) and target.kind.name != "llvm" else "GPUs have"
    if threads > limit:
        shape = f"{' x '.join(str(extent) for extent in extents)} = {threads}" if len(extents) > 1 else str(threads)
        raise LoweringError(f"In {name}: a block has {shape} threads; {of} at most {limit}. Bind smaller parts of the loops")
    room = int(known.get("max_shared_memory_per_block", MAX_SHARED_BYTES))
    sizes = [(one.constant_size() or 0) * parse_dtype(one.dtype).itemsize * parse_dtype(one.dtype).lanes for one in shared]
    if sum(sizes) > room:
        parts = ", ".join(f"{one.buffer_var.name} {size}" for one, size in zip(shared, sizes, strict=True))
        raise LoweringError(
            f"In {name}: the threads of a block share {sum(sizes)} bytes ({parts}); {of} at most {room}. "
            "Compute less of these stages at a time, at loops further inside"
        )
