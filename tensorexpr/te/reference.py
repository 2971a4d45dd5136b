"""What a computation means: evaluated with NumPy straight from the definitions, without schedules or lowering.

Everything runs in blocks, so that temporaries stay near `BLOCK_BYTES` whatever the extents. Elements are computed in
the declared dtypes, sums and products accumulate in float64.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

import numpy as np

from ..dataclass import dataclass, field
from ..errors import ArgumentError, DeclarationError
from ..tir.arithmetic import all as all_of
from ..tir.dtype import to_numpy
from ..tir.expr import CommReducer, IntImm, IterVar, PrimExpr, ProducerLoad, Reduce, Var
from ..tir.interpreter import interpret
from .blocks import boxes, open_grid
from .bounds import refuse_reads_outside
from .contraction import Contraction, contract, first_fitting, overflows, recognise, views
from .dag import given_placeholders, post_dfs_order
from .demand import first_rows
from .dependent_axes import dependent_axes, within
from .evaluation import Array, Program, compile_program
from .extern import ExternOp, extern_function, scalar_symbols
from .operation import ComputeOp, Operation, PlaceholderOp
from .reductions import Accumulator
from .scan_body import check_states_bound, state_dependent, step_boxes
from .scan_op import ScanOp
from .tensor import Tensor

BLOCK_BYTES = 1 << 26  # of temporaries: of a product of matrices as a whole they would take m * n * k elements
_USUAL_EXTENT = 64  # of a range that only the data says
Inputs = Mapping[Any, Array]  # of placeholder tensors and scalar variables; Any since keys of a Mapping are invariant


def evaluate(outputs: Sequence[Tensor], inputs: Inputs, extern_seconds: float | None = None) -> list[Array]:
    """The values of `outputs`.

    Args:
        outputs: tensors, computed ones or placeholders.
        inputs: an array for every placeholder that is read; a number for every scalar variable. Symbolic extents are
            taken from the arrays' shapes.
        extern_seconds: that the loops of an extern, which are interpreted, may take; None for as many as they take.

    Returns:
        An array of the declared shape and dtype for each output.

    Raises:
        ArgumentError: if an input is missing or doesn't fit its placeholder.
        DeclarationError: if a definition reads out of bounds.
        IterationLimitError: if these don't do.
    """
    run = _Evaluation(dict(inputs), _bind(outputs, inputs), extern_seconds=extern_seconds)
    ops = post_dfs_order([tensor.op for tensor in outputs])
    refuse_reads_outside(ops)
    stepwise = check_states_bound(ops, [tensor.op for tensor in outputs])
    run.starts = first_rows(ops, [tensor.op for tensor in outputs])
    for op in ops:
        if isinstance(op, (ComputeOp, ExternOp, ScanOp)) and op not in stepwise:
            run.whole(op.output(0))
    return [run.whole(tensor) for tensor in outputs]


def evaluate_points(tensor: Tensor, inputs: Inputs, points: Array) -> Array:
    """The elements of `tensor` at `points`, an integer array of one index tuple a row; producers only where needed.

    Raises:
        ArgumentError: if an input is missing or doesn't fit, or a point is outside the tensor.
        DeclarationError: if a definition reads out of bounds.
    """
    run = _Evaluation(dict(inputs), _bind([tensor], inputs))
    points = np.asarray(points, np.int64)
    if points.ndim != 2 or points.shape[1] != tensor.ndim:
        raise ArgumentError(f"points of {tensor.name} have shape {list(points.shape)}; they need one row of {tensor.ndim} indices each")
    shape = np.asarray(run.shape(tensor), np.int64)
    if ((points < 0) | (points >= shape)).any():
        raise ArgumentError(f"a point lies outside {tensor.name}, whose shape is {list(run.shape(tensor))}")
    return run.at(tensor, points)


def _bind(outputs: Sequence[Tensor], inputs: Inputs) -> dict[Var, int]:
    """The values of symbolic extents and scalars, with every placeholder's array checked."""
    env: dict[Var, int] = {var: value for var, value in inputs.items() if isinstance(var, Var)}
    checks: list[tuple[Tensor, PrimExpr, int]] = []
    for op in given_placeholders(post_dfs_order([tensor.op for tensor in outputs])):
        tensor = op.output(0)
        if tensor not in inputs:
            raise ArgumentError(f"no array for placeholder {op.name}")
        array = np.asarray(inputs[tensor])
        if array.ndim != tensor.ndim or array.dtype != to_numpy(op.dtype):
            raise ArgumentError(
                f"placeholder {op.name} is {op.dtype} with {tensor.ndim} dimensions, its array {array.dtype} with {array.ndim}"
            )
        for extent, size in zip(op.shape, array.shape, strict=True):
            # a plain variable is known from its array; n + 1 is checked when all of them are
            if isinstance(extent, Var):
                env.setdefault(extent, size)  # a value that the caller gave stays; the check below compares it
            checks.append((tensor, extent, size))
    for tensor, extent, size in checks:
        if _value(extent, env) != size:
            raise ArgumentError(f"an extent of placeholder {tensor.name} is {extent} = {_value(extent, env)}, its array has {size}")
    return env


def _value(expr: PrimExpr, env: Mapping[Var, int]) -> int:
    return expr.value if isinstance(expr, IntImm) else int(compile_program([expr]).run(env)[0])


@dataclass(slots=True)
class _Evaluation:
    """One evaluation: arrays known so far, values of variables, and the programs of the operations."""

    arrays: dict[Tensor | Var, Array]
    env: dict[Var, int]
    plans: dict[ComputeOp, _Plan] = field(default_factory=dict)
    starts: dict[Operation, int] = field(default_factory=dict)  # the first row that anyone asks for, where that isn't 0
    extern_seconds: float | None = None

    def shape(self, tensor: Tensor) -> tuple[int, ...]:
        """The extents of a tensor as numbers."""
        return tuple(_value(extent, self.env) for extent in tensor.shape)

    def plan(self, op: ComputeOp) -> _Plan:
        """The compiled definition of `op`."""
        if op not in self.plans:
            self.plans[op] = _make_plan(op)
        return self.plans[op]

    def ranges(self, axes: Sequence[IterVar]) -> list[tuple[int, int]]:
        """(begin, extent) of each axis."""
        return [(_value(axis.dom.min, self.env), _value(axis.dom.extent, self.env)) for axis in axes if axis.dom is not None]

    def whole(self, tensor: Tensor) -> Array:
        """All elements of a tensor."""
        if tensor not in self.arrays and isinstance(tensor.op, ComputeOp):
            op = tensor.op
            results = [np.empty(self.shape(output), to_numpy(output.dtype)) for output in map(op.output, range(op.num_outputs))]
            start = self.starts.get(op, 0)
            if start:
                # rows that nobody asks for would read before the first row of a tensor
                for result in results:  # np.empty would make results differ from run to run
                    result[:start] = 0
                extents = (max(0, results[0].shape[0] - start), *results[0].shape[1:])
                self._fill_box(op, results, [start, *[0] * (len(extents) - 1)], extents)
            else:
                self._fill(op, results)
            self.arrays.update({op.output(i): result for i, result in enumerate(results)})
        if tensor not in self.arrays and isinstance(tensor.op, ExternOp):
            self._run_extern(tensor.op)
        if tensor not in self.arrays and isinstance(tensor.op, ScanOp):
            self._run_scan(tensor.op)
        return np.asarray(self.arrays[tensor])

    def _run_scan(self, op: ScanOp) -> None:
        """The rows of init, then step after step the box that each operation of a step needs."""
        results = [np.empty(self.shape(tensor), to_numpy(tensor.dtype)) for tensor in op.state_placeholder]
        ((begin, count),) = self.ranges([op.scan_axis])
        for result, init in zip(results, op.init, strict=True):
            # over fewer rows than init has, n = 1 with two of them, the rest of init is unused
            result[:begin] = self.whole(init)[: len(result)]
        local: dict[Tensor | Var, Array] = dict(zip(op.state_placeholder, results, strict=True))
        steps, boxes_at = state_dependent(op), step_boxes(op)
        for tensor in (step.output(i) for step in steps for i in range(step.num_outputs)):
            local[tensor] = np.zeros(self.shape(tensor), to_numpy(tensor.dtype))
        # the same arrays under both names: a step reads through `self.arrays` what earlier steps wrote into `local`
        self.arrays.update(local)
        # their ends depend on the step alone: compiled once for all of them
        corners = {step: compile_program([end for axis in boxes_at[step] for end in (axis.min, axis.max)]) for step in steps}
        for t in range(begin, begin + count):
            for step in steps:
                ends = [int(end) for end in corners[step].run({**self.env, op.scan_axis.var: t})]
                arrays = [local[step.output(i)] for i in range(step.num_outputs)]
                # boxes are hulls of what is read, and may stick out of a tensor
                low = [max(0, end) for end in ends[::2]]
                high = [min(end, size - 1) for end, size in zip(ends[1::2], arrays[0].shape, strict=True)]
                self._fill_box(step, arrays, low, [max(0, b - a + 1) for a, b in zip(low, high, strict=True)])
            for result, update in zip(results, op.update, strict=True):
                result[t] = local[update][t]
        # the state placeholders and what a step computes exist only while the scan runs
        for bound in local:
            del self.arrays[bound]
        self.arrays.update({op.output(i): result for i, result in enumerate(results)})

    def _run_extern(self, op: ExternOp) -> None:
        """Interpret the statement of an extern on whole arrays."""
        outputs = [op.output(i) for i in range(op.num_outputs)]
        made = [np.zeros(self.shape(output), to_numpy(output.dtype)) for output in outputs]
        # a transposed view is copied: buffers of the statement are compact
        read = [np.asarray(self.whole(tensor), order="C") for tensor in op.inputs]
        missing = [var.name for var in scalar_symbols(op) if var not in self.env]
        if missing:
            raise DeclarationError(f"the variable {missing[0]} has no value; give it one among the inputs")
        numbers = [self.env[var] for var in scalar_symbols(op)]
        interpret(extern_function(op), [*read, *made, *numbers], seconds=self.extern_seconds)
        for output, array in zip(outputs, made, strict=True):
            self.arrays[output] = array

    def _fill(self, op: ComputeOp, results: list[Array]) -> None:
        plan, extents = self.plan(op), results[0].shape
        if plan.contraction is not None:
            reduced = self.ranges(op.reduce_axis)
            # a sum of no terms is its first value, which the plain way writes
            if all(extent for _, extent in reduced) and self._fill_contraction(op, plan, results[0], reduced):
                return
        self._fill_box(op, results, [0] * len(extents), extents)

    def _fill_box(self, op: ComputeOp, results: list[Array], starts: Sequence[int], extents: Sequence[int]) -> None:
        """Compute the elements of one box."""
        plan = self.plan(op)
        volume = self._volume(op, plan)
        dtypes = [to_numpy(axis.dtype) for axis in op.axis]
        for box in boxes(extents, volume):
            grid = open_grid(box, 0, len(box), starts, dtypes)
            values = self._block(op, plan, grid, tuple(end - begin for begin, end in box))
            for result, value in zip(results, values, strict=True):
                result[tuple(slice(start + begin, start + end) for start, (begin, end) in zip(starts, box, strict=True))] = value

    def _block(self, op: ComputeOp, plan: _Plan, grid: list[Array], shape: tuple[int, ...]) -> list[Array]:
        """The outputs of `op` where its axes take the coordinates `grid`, which broadcast to `shape`."""
        env: dict[Var, Array] = {**self.env, **{axis.var: grid[d] for d, axis in enumerate(op.axis)}}
        if plan.start is None or plan.combiner is None:
            return [np.broadcast_to(value, shape) for value in plan.body.run(env, self.load)]
        starts = [np.broadcast_to(value, shape).copy() for value in plan.start.run(env, self.load)]
        accumulator = Accumulator(plan.combiner, starts)
        # the axes of the reduction are dimensions behind those of the output
        env |= {axis.var: np.reshape(grid[d], np.shape(grid[d]) + (1,) * len(op.reduce_axis)) for d, axis in enumerate(op.axis)}
        ranges = self._ranges_around(op, plan, env, len(shape))
        dtypes = [to_numpy(axis.dtype) for axis in op.reduce_axis]
        # the block of the outputs is given; what it leaves of the budget goes to the points of the reduction
        for box in boxes([extent for _, extent in ranges], max(1, _block_volume(plan, 1) // max(1, prod(shape)))):
            own = open_grid(box, len(shape), len(shape) + len(box), [begin for begin, _ in ranges], dtypes)
            env |= {axis.var: own[d] for d, axis in enumerate(op.reduce_axis)}
            full = shape + tuple(end - begin for begin, end in box)
            condition, *sources = plan.body.run(env, self.load)
            # a condition that is true everywhere needs no mask as large as the box
            always = np.ndim(condition) == 0 and bool(condition)
            accumulator.combine([np.broadcast_to(s, full) for s in sources], None if always else np.broadcast_to(condition, full))
        return accumulator.results()

    def _volume(self, op: ComputeOp, plan: _Plan) -> int:
        """Points of a block of output elements; ranges that differ between them may be whatever they are."""
        fixed = [axis for axis in op.reduce_axis if axis not in plan.dependent]
        return _block_volume(plan, prod(extent for _, extent in self.ranges(fixed)) * _USUAL_EXTENT ** len(plan.dependent))

    def _ranges_around(self, op: ComputeOp, plan: _Plan, env: dict[Var, Array], rank: int) -> list[tuple[int, int]]:
        """(begin, extent) of each reduction axis: of one whose range depends on other axes, what holds the ranges of all elements."""
        found: list[tuple[int, int]] = []
        # a range may depend on the reduction axes before it too
        known = dict(env)
        for place, axis in enumerate(op.reduce_axis):
            found += [self._range_around(axis, known)] if axis in plan.dependent else self.ranges([axis])
            if plan.dependent:
                own = open_grid(((0, found[-1][1]),), rank + place, rank + len(op.reduce_axis), [found[-1][0]], [to_numpy(axis.dtype)])
                known[axis.var] = own[0]
        return found

    def _range_around(self, axis: IterVar, env: Mapping[Var, Array]) -> tuple[int, int]:
        assert axis.dom is not None
        begins, extents = compile_program([axis.dom.min, axis.dom.extent]).run(env, self.load)
        counts = np.asarray(extents) > 0
        if not counts.any():
            return 0, 0
        begins, extents, counts = np.broadcast_arrays(begins, extents, counts)
        # an empty range may begin anywhere, so it doesn't count
        begin = int(begins[counts].min())
        return begin, int((begins + extents)[counts].max()) - begin

    def _fill_contraction(self, op: ComputeOp, plan: _Plan, result: Array, reduced: list[tuple[int, int]]) -> bool:
        """Fill `result` by contraction; False if some index leaves its tensor, which the plain way reports."""
        assert plan.contraction is not None and plan.start is not None and plan.combiner is not None
        contraction, axes = plan.contraction, (*op.axis, *op.reduce_axis)
        starts = [0] * len(op.axis) + [begin for begin, _ in reduced]
        extents = [*result.shape, *(extent for _, extent in reduced)]

        def producer(load: ProducerLoad) -> Array:
            assert isinstance(load.producer, Tensor)
            return self.whole(load.producer)

        def operands(box: tuple[tuple[int, int], ...]) -> tuple[dict[Var, tuple[int, int]], list[Array] | None]:
            ranges = {axis.var: (start + b, start + e) for axis, start, (b, e) in zip(axes, starts, box, strict=True)}
            return ranges, views(contraction, producer, ranges, self.env)

        # no output has an element
        if any(extent == 0 for extent in extents):
            return True
        if operands(tuple((0, extent) for extent in extents))[1] is None or overflows(contraction, producer):
            return False
        count = len(op.axis)
        # the output is cut first: a cut of the reduction makes partial sums, each to be added up
        spatial_volume = first_fitting(extents[:count], lambda box: _fits(operands((*box, *((0, e) for e in extents[count:])))[1], box))
        inner = next(boxes(extents[:count], spatial_volume))
        reduce_volume = first_fitting(extents[count:], lambda box: _fits(operands((*inner, *box))[1], inner))
        for box in boxes(extents[:count], spatial_volume):
            shape = tuple(end - begin for begin, end in box)
            grid = open_grid(box, 0, count, [0] * count, [to_numpy(axis.dtype) for axis in op.axis])
            env: dict[Var, Array] = {**self.env, **{axis.var: grid[d] for d, axis in enumerate(op.axis)}}
            accumulator = Accumulator(plan.combiner, [np.broadcast_to(value, shape) for value in plan.start.run(env, self.load)])
            for part in boxes(extents[count:], reduce_volume):
                ranges, found = operands((*box, *part))
                assert found is not None
                value = contract(contraction, found, ranges, [axis.var for axis in op.axis], [axis.var for axis in op.reduce_axis])
                # an integer sum modulo 2**64 may be cut to its dtype part by part: wrapping commutes with addition
                accumulator.values[0] = accumulator.values[0] + value.astype(accumulator.values[0].dtype)
            result[tuple(slice(begin, end) for begin, end in box)] = accumulator.results()[0]
        return True

    def load(self, node: ProducerLoad, indices: Sequence[Array], mask: Array | None) -> Array:
        """The elements of a producer at `indices`; where `mask` is False they may be anything."""
        tensor = node.producer
        assert isinstance(tensor, Tensor)
        shape = self.shape(tensor)
        inside = [_clipped(node, d, index, shape[d], mask) for d, index in enumerate(indices)]
        if 0 in shape:  # every read is guarded away
            return np.zeros(np.broadcast_shapes(*map(np.shape, inside)), to_numpy(tensor.dtype))
        if tensor in self.arrays or isinstance(tensor.op, PlaceholderOp):
            return self.whole(tensor)[tuple(inside)]
        grid = np.broadcast_arrays(*inside)
        points = np.stack([g.reshape(-1) for g in grid], axis=1) if grid else np.zeros((1, 0), np.int64)
        return self.at(tensor, points).reshape(grid[0].shape if grid else ())

    def at(self, tensor: Tensor, points: Array) -> Array:
        """The elements at `points`: only these, unless they are most of the tensor anyway."""
        op, shape = tensor.op, self.shape(tensor)
        if not shape:
            return np.full(len(points), self.whole(tensor))
        if not isinstance(op, ComputeOp) or tensor in self.arrays:
            return self.whole(tensor)[tuple(points.T)]
        # a gather may name one element many times: it is computed once
        flat, inverse = np.unique(np.ravel_multi_index(tuple(points.T), shape), return_inverse=True)
        # `whole` is kept for the next reader, these points aren't
        if 2 * len(flat) >= prod(shape):
            return self.whole(tensor)[tuple(points.T)]
        chosen = np.unravel_index(flat, shape)
        plan = self.plan(op)
        step = self._volume(op, plan)
        parts = []
        for begin in range(0, len(flat), step):
            grid = [c[begin : begin + step].astype(to_numpy(axis.dtype)) for c, axis in zip(chosen, op.axis, strict=True)]
            parts.append(self._block(op, plan, grid, (len(grid[0]),))[tensor.value_index])
        return np.concatenate(parts)[inverse.reshape(-1)] if parts else np.empty(0, to_numpy(tensor.dtype))


@dataclass(frozen=True, slots=True)
class _Plan:
    """A compiled definition. For reductions `body` gives the condition and the sources, `start` the first values."""

    body: Program
    start: Program | None = None
    combiner: CommReducer | None = None
    contraction: Contraction | None = None
    dependent: tuple[IterVar, ...] = ()


def _make_plan(op: ComputeOp) -> _Plan:
    first = op.body[0]
    if not isinstance(first, Reduce):
        return _Plan(compile_program(op.body))
    start = first.init or first.combiner.identity_element
    dependent = dependent_axes(op)
    contraction = recognise(first) if len(first.source) == 1 and not dependent else None
    condition = all_of(first.condition, *(part for axis in dependent for part in within(axis)))
    return _Plan(compile_program(first.source, guard=condition), compile_program(start), first.combiner, contraction, dependent)


def _block_volume(plan: _Plan, reduction: int) -> int:
    """Points of a block of output elements, so that the temporaries of its reduction fit."""
    return max(1, BLOCK_BYTES // (8 * max(2, plan.body.peak)) // max(1, reduction))


def _fits(operands: list[Array] | None, box: Sequence[tuple[int, int]]) -> bool:
    # 8 bytes an element for the converted copy, and 8 for its rearranged one
    return operands is not None and 16 * (sum(view.size for view in operands) + prod(e - b for b, e in box)) <= BLOCK_BYTES


def _clipped(node: ProducerLoad, dim: int, index: Array, extent: int, mask: Array | None) -> Array:
    index = np.asarray(index)
    if index.size == 0 or (index.min() >= 0 and index.max() < extent):
        return index
    wrong = (index < 0) | (index >= extent)
    if mask is None or np.logical_and(wrong, mask).any():
        raise DeclarationError(f"{node} reads index {int(index[wrong].flat[0])} of dimension {dim}, whose extent is {extent}")
    if extent == 0:
        return index
    return np.clip(index, 0, extent - 1)
