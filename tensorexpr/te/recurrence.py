"""Recurrences: `te.scan` declares tensors whose rows are computed one after the other, each from earlier ones.

    X = te.placeholder((m, n), name="X")
    state = te.placeholder((m, n))
    init = te.compute((1, n), lambda _, i: X[0, i])
    update = te.compute((m, n), lambda t, i: state[t - 1, i] + X[t, i])
    sums = te.scan(init, update, state, inputs=[X])

Dimension 0 is time. Rows before `init.shape[0]` are those of init; row t after them is what update computes at t, where
the state placeholder stands for the rows of the result so far. All rows are kept, so update may look back as far as it likes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..errors import DeclarationError
from ..tir.arithmetic import convert
from ..tir.attrs import FrozenMap
from ..tir.expr import IntImm, IterVar, PrimExpr, Range, Var
from .dag import same_extents
from .declare import checked_attrs, checked_tag
from .operation import ComputeOp, PlaceholderOp
from .scan_body import check_scan
from .scan_op import ScanOp
from .tensor import Tensor


def scan(
    init: Tensor | Sequence[Tensor],
    update: Tensor | Sequence[Tensor],
    state_placeholder: Tensor | Sequence[Tensor],
    inputs: Sequence[Tensor] | None = None,
    name: str = "scan",
    tag: str = "",
    attrs: Mapping[str, Any] | None = None,
) -> Any:
    """Declare tensors whose rows along dimension 0, time, are computed one after the other.

    Args:
        init: the first rows of each state.
        update: each state at time t, from what the placeholders hold at earlier times. It has the state's whole shape;
            only its rows from init's length on are ever computed.
        state_placeholder: placeholders that stand for the result inside of update.
        inputs: other tensors that update reads; kept for `te.schedule.ScanGetBody`, they are found in any case.
        name: of the operation, for printing.
        tag: a note for schedules.
        attrs: hints for schedulers.

    Returns:
        The result, or a list of them if there are several states.

    Raises:
        DeclarationError: if the parts do not fit together, or a step reads rows that are not computed before it.
    """
    where = f"scan {name}"
    inits, updates, states = (_tensors(part, where) for part in (init, update, state_placeholder))
    given = _tensors(inputs or (), where)
    if not states or not len(inits) == len(updates) == len(states):
        raise DeclarationError(
            f"{where}: {len(inits)} init, {len(updates)} update and {len(states)} state_placeholder; give one of each for every state"
        )
    op = scan_of(name, checked_tag(tag, where), checked_attrs(attrs), inits, updates, states, given)
    made = [op.output(i) for i in range(op.num_outputs)]
    return made[0] if len(made) == 1 else made


def scan_of(
    name: str,
    tag: str,
    attrs: FrozenMap,
    init: tuple[Tensor, ...],
    update: tuple[Tensor, ...],
    state: tuple[Tensor, ...],
    inputs: tuple[Tensor, ...],
) -> ScanOp:
    """The operation of checked lists of equal length.

    Raises:
        DeclarationError: as `te.scan`.
    """
    from_row, end = _check_states(f"scan {name}", init, update, state)
    time = IterVar(Range.from_min_extent(from_row, end - from_row), Var(f"{name}_idx", end.dtype), IterVar.ORDERED)
    spatial = tuple(
        IterVar(Range.from_min_extent(IntImm(extent.dtype, 0), extent), Var(f"{name}_out{i}_i{d + 1}", extent.dtype), IterVar.DIM_INFO)
        for i, tensor in enumerate(state)
        for d, extent in enumerate(tensor.shape[1:])
    )
    op = ScanOp(name, tag, attrs, time, init, update, state, inputs, spatial)
    check_scan(op)
    return op


def _tensors(part: Any, where: str) -> tuple[Tensor, ...]:
    items = tuple(part) if isinstance(part, (tuple, list)) else (part,)
    for item in items:
        if not isinstance(item, Tensor):
            raise DeclarationError(
                f"{where}: {item!r} is no tensor; init, update, state_placeholder and inputs are tensors or lists of them"
            )
    return items


def _check_states(where: str, init: tuple[Tensor, ...], update: tuple[Tensor, ...], state: tuple[Tensor, ...]) -> tuple[PrimExpr, PrimExpr]:
    """Check each state's parts against each other; gives the first time step of update and the end of time."""
    if len(set(state)) != len(state) or len(set(update)) != len(update):
        raise DeclarationError(f"{where}: two states share an update or a state_placeholder; each state has its own")
    for first, later, held in zip(init, update, state, strict=True):
        if not isinstance(held.op, PlaceholderOp):
            raise DeclarationError(
                f"{where}: the state {held.name} is computed; a state_placeholder is a te.placeholder that stands for the result"
            )
        if not isinstance(later.op, ComputeOp):
            raise DeclarationError(f"{where}: the update {later.name} is no te.compute; wrap it in one that copies it")
        if not first.dtype == later.dtype == held.dtype:
            raise DeclarationError(
                f"{where}: init {first.name} is {first.dtype}, update {later.name} {later.dtype} and the state {held.name} {held.dtype}; "
                "they are one tensor, so one dtype"
            )
        if (
            not held.ndim
            or not same_extents(held.shape, later.shape)
            or not same_extents(held.shape[1:], first.shape[1:])
            or not first.ndim
        ):
            a, b, c = (f"[{', '.join(map(str, tensor.shape))}]" for tensor in (first, later, held))
            raise DeclarationError(
                f"{where}: shapes of init {a}, update {b} and state {c} do not fit; "
                "update and state are alike, init has fewer rows (dimension 0, time)"
            )
    rows, end = init[0].shape[0], state[0].shape[0]
    if not all(same_extents((a.shape[0], b.shape[0]), (rows, end)) for a, b in zip(init, state, strict=True)):
        raise DeclarationError(
            f"{where}: the states run over different times; all init, and all states, have the same extent of dimension 0"
        )
    # as many rows as the state is legal: no step runs
    if isinstance(rows, IntImm) and (rows.value < 1 or (isinstance(end, IntImm) and rows.value > end.value)):
        raise DeclarationError(f"{where}: init has {rows.value} rows of {end}; it has at least one, and no more than the state")
    return convert(rows), end
