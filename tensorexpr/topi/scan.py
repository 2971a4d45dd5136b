"""Running sums and products along an axis; rows run in parallel, on GPUs parts of them too (`gpu_scan`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..te.tensor import Tensor
from ..tir import arithmetic
from ..tir.arithmetic import const
from ..tir.buffer import Buffer
from ..tir.dtype import parse_dtype
from ..tir.expr import PrimExpr
from ..tir.ir_builder import IRBuilder
from .gpu_scan import is_by_columns, scan_rows
from .launches import runs_on_gpu
from .rows import Rows, in_loops, product
from .transform import reshape
from .utils import positive_axis


def scanop(
    data: Tensor,
    binop: Callable[[PrimExpr, PrimExpr], PrimExpr],
    identity_value: Any,
    op_name: str,
    axis: int | None = None,
    dtype: str | None = None,
    exclusive: bool | None = None,
) -> Tensor:
    """What `binop` makes of all elements up to each one along an axis.

    Args:
        data: of any shape.
        binop: associative, from what is there and the next element to what is there then.
        identity_value: what an exclusive scan begins with.
        op_name: of the operation, for printing.
        axis: to run along; without it `data` is flattened.
        dtype: of the result, and of the sums on the way; that of `data` without it.
        exclusive: leave out the element itself.

    Returns:
        A tensor of the shape of `data`, or of one dimension without an axis.

    Raises:
        DeclarationError: for an axis that isn't there.
    """
    if axis is None:
        return scanop(reshape(data, (product(data.shape),)), binop, identity_value, op_name, 0, dtype, exclusive)
    place = positive_axis(op_name, axis, data.ndim)
    made = dtype or data.dtype

    def body(ib: IRBuilder, ins: list[Buffer], outs: list[Buffer]) -> None:
        rows, out = Rows(ib, ins[0], place), Rows(ib, outs[0], place)
        on_gpu = runs_on_gpu()
        if on_gpu and not is_by_columns(rows):
            scan_rows(ib, rows, out, lambda so_far, value: binop(so_far, value.astype(made)), identity_value, made, bool(exclusive))
            return
        if not on_gpu and (lanes := _columns(rows)) > 1:
            _scan_columns(
                ib, rows, out, lanes, lambda so_far, value: binop(so_far, value.astype(made)), identity_value, made, bool(exclusive)
            )
            return
        with rows.parallel(rows.kind_of_loop(_OPERATIONS)) as r:
            so_far = ib.allocate(made, (1,), "so_far", scope="local")
            # An empty row has no first element to read, and no place to write it.
            with ib.if_scope(arithmetic.convert(rows.length) > 0):
                so_far[0] = identity_value if exclusive else rows.load(r, 0).astype(made)
                out.store(r, 0, so_far[0])
            with ib.for_range(1, rows.length, "i") as i:
                so_far[0] = binop(so_far[0], rows.load(r, i - 1 if exclusive else i).astype(made))
                out.store(r, i, so_far[0])

    return in_loops([data.shape], [data], body, op_name, [made])[0]


# Operations in whose time an element is added to what came before, and waits for that: 48 rows of 17 took 7 us with two threads, 1.2 alone.
_OPERATIONS = 8
# Elements of a line of the cache are 16 floats; four lines make registers that hide the latency of sums.
_COLUMNS = (64, 32, 16)


def _columns(rows: Rows) -> int:
    """How many rows that are neighbours in memory are run along at once: the scan over axis 0 of [1024, 1024] reads whole lines then."""
    inner = arithmetic.as_int(rows.inner) or 1
    return next((lanes for lanes in _COLUMNS if inner % lanes == 0), 1)


def _scan_columns(
    ib: IRBuilder, rows: Rows, out: Rows, lanes: int, join: Callable[[PrimExpr, PrimExpr], PrimExpr], first: Any, made: str, exclusive: bool
) -> None:
    """The loops of `scanop` over so many rows at once."""
    with ib.for_range(0, arithmetic.floordiv(rows.count, lanes), "block", kind=rows.kind_of_loop(1)) as block:
        so_far = ib.allocate(made, (lanes,), "so_far", scope="local")

        def step(i: Any, value: Callable[[PrimExpr], PrimExpr]) -> None:
            with ib.for_range(0, lanes, "lane", kind="vectorize") as lane:
                so_far[lane] = value(lane)
                out.store(block * lanes + lane, i, so_far[lane])

        with ib.if_scope(arithmetic.convert(rows.length) > 0):
            step(0, lambda lane: const(first, made) if exclusive else rows.load(block * lanes + lane, 0).astype(made))
        with ib.for_range(1, rows.length, "i") as i:
            step(i, lambda lane: join(so_far[lane], rows.load(block * lanes + lane, i - 1 if exclusive else i)))


def cumsum(data: Tensor, axis: int | None = None, dtype: str | None = None, exclusive: bool | None = None) -> Tensor:
    """The sum of the elements up to each one along an axis; see `scanop`. Sums of bools are int32 unless a dtype is given."""
    return scanop(data, lambda a, b: a + b, 0, "cumsum_generic", axis, _counting(data, dtype), exclusive)


def cumprod(data: Tensor, axis: int | None = None, dtype: str | None = None, exclusive: bool | None = None) -> Tensor:
    """The product of the elements up to each one along an axis; see `scanop`."""
    return scanop(data, lambda a, b: arithmetic.multiply(a, b), 1, "cumprod_generic", axis, _counting(data, dtype), exclusive)


def _counting(data: Tensor, dtype: str | None) -> str:
    return dtype or ("int32" if parse_dtype(data.dtype).code == "bool" else data.dtype)
