"""The loops of recurrent layers.

    few weights, or a sequence for each thread          many weights
    for each sequence, in parallel:                     for each step:
      for each step:                                      for each panel, in parallel:
        for each panel: its units of the next state         for each sequence: its units of the next state
        the next state is the state                       for each sequence: the next state is the state

A panel has all gates that a unit needs at once, so that sums stay in registers from the first weight to the functions of the gates.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from functools import partial
from typing import TYPE_CHECKING, Any

from ...dataclass import dataclass
from ...target import Target
from ...te.intrinsics.dot_group import dot_of_fours
from ...tir import intrin
from ...tir.arithmetic import as_int, cast, const, floordiv, floormod, maximum, minimum
from ...tir.dtype import parse_dtype
from ...tir.expr import PrimExpr, Ramp
from ...tir.ir_builder import BufferVar, IRBuilder

if TYPE_CHECKING:
    from ...tir.buffer import Buffer
    from .recurrent import Cell

GROUP = 4  # bytes that an instruction multiplies and adds to one sum
_LANES = 16
_SUMS = 64  # elements of the sums of a panel: eight registers of AVX, as many as hide the latency of a product
_SHARED = 1 << 19  # bytes of the weights of a step from which threads are worth their start in each


@dataclass(frozen=True)
class Panels:
    """How weights stand in memory: [blocks][count][rows][each][units][group].

    Args:
        blocks, each: gates one after the other, in each block so many of them side by side.
        units: of a panel.
        count: panels of a block.
        rows: groups of numbers of a state.
        group: numbers of a state that one sum adds at once.
    """

    blocks: int
    each: int
    units: int
    count: int
    rows: int
    group: int

    @staticmethod
    def of(each: int, gates: int, hidden: int, group: int) -> Panels:
        """Panels of as many units as sums have room for."""
        units = min(max(_SUMS // each // _LANES, 1) * _LANES, -(-hidden // _LANES) * _LANES)
        return Panels(gates // each, each, units, -(-hidden // units), -(-hidden // group), group)

    @property
    def padded(self) -> int:
        """Units of all panels, the last of which may lie behind the last unit of the layer."""
        return self.count * self.units


@dataclass(frozen=True)
class Sizes:
    """Extents of a layer."""

    time: PrimExpr
    batch: PrimExpr
    directions: int
    hidden: int
    panels: Panels


@dataclass(frozen=True)
class Operands:
    """Buffers that are read; see `recurrent.recurrent_steps`."""

    gates: Buffer
    weights: Buffer
    states: Sequence[Buffer]
    bias: Buffer | None
    peepholes: Buffer | None
    lengths: Buffer | None
    levels: Sequence[Buffer]


def _each(ib: IRBuilder, count: int, body: Callable[[Any], None]) -> None:
    """For each of so many elements, in vectors as far as they go."""
    whole = count // _LANES
    if whole:
        with ib.for_range(0, whole, "jo") as outer, ib.for_range(0, _LANES, "ji", kind="vectorize") as inner:
            body(outer * _LANES + inner)
    if count % _LANES:
        with ib.for_range(whole * _LANES, count, "jr") as rest:
            body(rest)


def _number(x: PrimExpr, value: float) -> PrimExpr:
    return const(value, x.dtype)


# What is kept of a sequence between steps beside its states: rows as long as these.
_KEPT = {"lstm": ("state", "cells", "next"), "gru": ("state", "next", "part"), "rnn": ("state", "next")}


class _Layer:
    """What the loops share: buffers, and the statements of a step for one sequence ("task") and one panel.

    `phases` are the blocks of weights that are multiplied one behind the other, as the state that a later one reads depends on all of an
    earlier one.
    """

    phases: tuple[tuple[int, ...], ...] = ((0,),)

    def __init__(self, ib: IRBuilder, cell: Cell, sizes: Sizes, given: Operands, found: Sequence[Buffer]) -> None:
        self.ib, self.cell, self.sizes, self.panels, self.dtype = ib, cell, sizes, sizes.panels, given.gates.dtype
        ways, batch, hidden, gates = sizes.directions, sizes.batch, sizes.hidden, sizes.panels.blocks * sizes.panels.each
        self.tasks = batch * ways
        self.x = ib.buffer_ptr(given.gates, (sizes.time, batch, ways * gates, hidden))
        self.weights = ib.buffer_ptr(given.weights, (ways * self.panels.blocks * self.panels.count * self.row * self.panels.rows,))
        self.first = [ib.buffer_ptr(one, (ways, batch, hidden)) for one in given.states]
        self.all = ib.buffer_ptr(found[0], (sizes.time, ways, batch, hidden))
        self.last = [ib.buffer_ptr(one, (ways, batch, hidden)) for one in found[1:]]
        self.lengths = None if given.lengths is None else ib.buffer_ptr(given.lengths)
        self.levels = [ib.buffer_ptr(one, (ways, gates, hidden)) for one in given.levels]
        # Rows of states and sums are as long as the panels: behind the last unit they hold what nobody reads.
        self.total = ib.allocate(self.dtype, (self.tasks, gates * self.panels.padded), "total")
        self.kept = {name: ib.allocate(self.dtype, (self.tasks, self.panels.padded), name) for name in _KEPT[cell.kind]}
        self.bias = None if given.bias is None else ib.buffer_ptr(given.bias, (ways, hidden))
        self.peepholes = None if given.peepholes is None else ib.buffer_ptr(given.peepholes, (ways, 3, hidden))
        self.bytes = ib.allocate("uint8", (self.tasks, self.panels.rows * GROUP), "bytes") if self.levels else None
        self.scale = ib.allocate(self.dtype, (self.tasks,), "scale") if self.levels else None
        # of the bytes of a state what stands for zero, and their sum
        self.whole = ib.allocate("int32", (self.tasks, 2), "whole") if self.levels else None
        target = Target.current(allow_none=True)
        lanes = 0 if target is None else target.vector_bits // 32
        self.instruction = (None if target is None else dot_of_fours(target.vector_bits, target.features), lanes)

    @property
    def row(self) -> int:
        """Elements of a row of a panel."""
        return self.panels.each * self.panels.units * self.panels.group

    def place(self, task: Any) -> tuple[Any, Any]:
        """The direction and the sequence of a task."""
        if self.sizes.directions == 1:
            return 0, task
        return floordiv(task, self.sizes.batch), floormod(task, self.sizes.batch)

    def inside(self, j: Any, of: BufferVar, row: tuple[Any, ...]) -> PrimExpr:
        """Element j of a row of an operand, which ends at the last unit; 0 behind it."""
        place = *row, j
        whole = self.panels.padded == self.sizes.hidden
        return of[place] if whole else intrin.if_then_else(j < self.sizes.hidden, of[place], const(0, of.dtype))

    def element(self, of: BufferVar, task: Any, j: Any) -> PrimExpr:
        """One of what is kept of a sequence."""
        return of[task, j]

    def put(self, count: int, into: BufferVar, row: tuple[Any, ...], value: Callable[[Any], PrimExpr]) -> None:
        """Set the first elements of a row."""

        def element(j: Any) -> None:
            place = *row, j
            into[place] = value(j)

        _each(self.ib, count, element)

    def start(self, task: Any) -> None:
        """The states before the first step."""
        d, b = self.place(task)
        for name, given in zip(("state", "cells"), self.first, strict=False):
            self.put(self.panels.padded, self.kept[name], (task,), partial(self.inside, of=given, row=(d, b)))
        if self.levels:
            self.round(task)

    def finish(self, task: Any, t: Any) -> None:
        """The next state becomes the state, and a result."""
        d, b = self.place(task)
        state, following = self.kept["state"], self.kept["next"]
        self.put(self.panels.padded, state, (task,), lambda j: following[task, j])
        self.put(self.sizes.hidden, self.all, (t, d, b), lambda j: state[task, j])
        if self.levels:
            self.round(task)

    def end(self, task: Any, count: Any) -> None:
        """Behind the last step."""
        d, b = self.place(task)
        if self.lengths is not None:
            with self.ib.for_range(count, self.sizes.time, "rest") as rest:
                self.put(self.sizes.hidden, self.all, (rest, d, b), lambda j: const(0, self.dtype))
        for name, found in zip(("state", "cells"), self.last, strict=False):
            self.put(self.sizes.hidden, found, (d, b), partial(self.element, self.kept[name], task))

    def count(self, b: Any) -> Any:
        """How many steps a sequence has, in the dtype of the extent, as one loop runs from it to the extent."""
        time = self.sizes.time
        return time if self.lengths is None else cast(self.lengths[b], "int64" if "64" in getattr(time, "dtype", "") else "int32")

    def step(self, task: Any, s: Any, count: Any) -> Any:
        """The place of step number s: from the end of each sequence, not from that of the longest one, if it is reversed."""
        if self.sizes.directions == 2:
            return intrin.select(self.place(task)[0] == 0, s, count - 1 - s)
        return count - 1 - s if self.cell.reverse else s

    def round(self, task: Any) -> None:
        """The bytes that stand for a state (ONNX, DynamicQuantizeLinear)."""
        ib, hidden, state = self.ib, self.sizes.hidden, self.kept["state"]
        assert self.bytes is not None and self.scale is not None and self.whole is not None
        ends = [ib.allocate(self.dtype, (_LANES,), name, scope="local") for name in ("least", "greatest")]
        for one, chosen in zip(ends, (minimum, maximum), strict=True):
            self.put(_LANES, one, (), lambda j: const(0, self.dtype))

            def seen(j: Any, one: BufferVar = one, chosen: Callable[..., PrimExpr] = chosen) -> None:
                one[j % _LANES] = chosen(one[j % _LANES], state[task, j])

            _each(ib, hidden, seen)
            with ib.for_range(1, _LANES, "lane") as lane:
                one[0] = chosen(one[0], one[lane])
        low, high = ends
        width = (high[0] - low[0]) / _number(low[0], 255)
        # a state of zeros has no range
        high[0] = intrin.select(width > _number(width, 0), width, _number(width, 1))
        low[0] = intrin.nearbyint(_number(width, 0) - low[0] / high[0])
        self.scale[task], self.whole[task, 0] = high[0], cast(low[0], "int32")

        def level(j: Any) -> PrimExpr:
            whole = intrin.nearbyint(state[task, j] / high[0]) + low[0]
            return minimum(maximum(whole, _number(whole, 0)), _number(whole, 255))

        total = ib.allocate("int32", (_LANES,), "sum", scope="local")
        self.put(_LANES, total, (), lambda j: const(0, "int32"))

        def stored(j: Any) -> None:
            self.bytes[task, j] = cast(level(j), "uint8")  # type: ignore[index]
            total[j % _LANES] = total[j % _LANES] + cast(self.bytes[task, j], "int32")  # type: ignore[index]

        _each(ib, hidden, stored)
        with ib.for_range(1, _LANES, "lane") as lane:
            total[0] = total[0] + total[lane]
        self.whole[task, 1] = total[0]
        if self.panels.rows * GROUP > hidden:
            with ib.for_range(hidden, self.panels.rows * GROUP, "behind") as behind:
                self.bytes[task, behind] = const(0, "uint8")

    def sums(self, task: Any, t: Any, block: Any, panel: Any, state: str, added: Mapping[int, str]) -> None:
        """The gates of a panel: what comes from the inputs, and products of a state and weights.

        Args:
            task, t: the sequence and the place of the step.
            block, panel: of the weights.
            state: which row multiplies them.
            added: what gates begin with: their number -> "inputs" or "bias" or "both", in place of "inputs".
        """
        ib, panels, (d, b) = self.ib, self.panels, self.place(task)
        sums = ib.allocate("int32" if self.levels else self.dtype, (panels.each * panels.units,), "sums", scope="local")

        def begin(g: int, unit: Any) -> PrimExpr:
            gate, parts = block * panels.each + g, added.get(g, "inputs")
            found = self.inside(unit, self.x, (t, b, d * panels.blocks * panels.each + gate)) if parts != "bias" else None
            if parts == "inputs":
                assert found is not None
                return found
            assert self.bias is not None
            bias = self.inside(unit, self.bias, (d,))
            return bias if found is None else found + bias

        def gates(body: Callable[[int, Any, Any], None]) -> None:
            for g in range(panels.each):
                for v in range(panels.units // _LANES):
                    with ib.for_range(0, _LANES, "ji", kind="vectorize") as ji:
                        body(g, g * panels.units + v * _LANES + ji, panel * panels.units + v * _LANES + ji)

        gates(lambda g, n, unit: sums.__setitem__(n, const(0, "int32") if self.levels else begin(g, unit)))
        base = ((d * panels.blocks + block) * panels.count + panel) * (self.row * panels.rows)
        with ib.for_range(0, panels.rows, "k") as k:
            if self.levels:
                self.dots(sums, task, k, base + k * self.row)
            else:
                factor = self.kept[state][task, k]
                gates(lambda g, n, unit: sums.__setitem__(n, sums[n] + factor * self.weights[base + k * self.row + n]))

        def store(g: int, n: Any, unit: Any) -> None:
            value = sums[n]
            if self.levels:
                value = begin(g, unit) + self.meant(task, (d, block * panels.each + g), unit, sums[n])
            self.total[task, (block * panels.each + g) * panels.padded + unit] = value

        gates(store)

    def meant(self, task: Any, row: tuple[Any, ...], unit: Any, total: PrimExpr) -> PrimExpr:
        """The number that a sum of products of bytes stands for.

        sum of (a - p)(b - q)  =  sum of a b  -  p sum of (b - q)  -  q sum of a
        """
        assert self.scale is not None and self.whole is not None
        scale, zero, column = (self.inside(unit, one, row) for one in self.levels)
        exact = total - self.whole[task, 0] * column - self.whole[task, 1] * zero
        return cast(exact, self.dtype) * (self.scale[task] * scale)

    def dots(self, sums: BufferVar, task: Any, k: Any, base: Any) -> None:
        """Add the products of a group of bytes and a row of weights."""
        assert self.bytes is not None
        count, dot, lanes = self.panels.each * self.panels.units, *self.instruction
        if dot is None:
            with self.ib.for_range(0, count, "j") as j:
                for n in range(GROUP):
                    sums[j] = sums[j] + cast(self.bytes[task, k * GROUP + n], "int32") * cast(self.weights[base + j * GROUP + n], "int32")
            return
        four = intrin.reinterpret("int32", self.bytes[task, Ramp(k * GROUP, const(1, "int32"), GROUP)])
        for first in range(0, count, lanes):
            at = Ramp(const(first, "int32"), const(1, "int32"), lanes)
            sums[at] = dot(sums[at], four, self.weights[Ramp(base + first * GROUP, const(1, "int32"), lanes * GROUP)])

    def update(self, task: Any, t: Any, phase: int, block: Any, panel: Any) -> None:
        """What a panel's units become in a phase."""
        raise NotImplementedError

    def units(self, panel: Any, body: Callable[[Any], None]) -> None:
        """For each unit of a panel."""
        _each(self.ib, self.panels.units, lambda j: body(panel * self.panels.units + j))


class _LSTM(_Layer):
    def update(self, task: Any, t: Any, phase: int, block: Any, panel: Any) -> None:
        """Cells and the next state of a panel."""
        self.sums(task, t, 0, panel, "state", {})
        cell, cells, d, padded = self.cell, self.kept["cells"], self.place(task)[0], self.panels.padded

        def unit(j: Any) -> None:
            def seen(number: int, of: PrimExpr) -> PrimExpr:
                gate = self.total[task, number * padded + j]
                peep = self.peepholes
                return gate if peep is None else gate + self.inside(j, peep, (d, number)) * of

            # The input and the forget gate see the old cells, the output gate the new ones.
            old = cells[task, j]
            let_in = cell.apply(0, seen(0, old))
            kept = _number(let_in, 1) - let_in if cell.coupled else cell.apply(0, seen(2, old))
            cells[task, j] = kept * old + let_in * cell.apply(1, self.total[task, 3 * padded + j])
            self.kept["next"][task, j] = cell.apply(0, seen(1, cells[task, j])) * cell.apply(2, cells[task, j])

        self.units(panel, unit)


class _GRU(_Layer):
    """The reset gate works on the product of the state, which is one of three then, or on the state itself, which makes it a second one."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.phases = ((0,),) if self.cell.coupled else ((0, 1), (2,))

    def update(self, task: Any, t: Any, phase: int, block: Any, panel: Any) -> None:
        """The next state of a panel, or what the second product reads."""
        state, part = self.kept["state"], self.kept["part"]
        padded, cell, (d, b) = self.panels.padded, self.cell, self.place(task)
        if phase == 0 and not cell.coupled:
            self.sums(task, t, block, panel, "state", {})
            with self.ib.if_scope(block == 1):
                self.units(panel, lambda j: part.__setitem__((task, j), cell.apply(0, self.total[task, padded + j]) * state[task, j]))
            return
        self.sums(task, t, block, panel, "part" if phase else "state", {0: "both"} if phase else {2: "bias"})

        def unit(j: Any) -> None:
            keep, fresh = cell.apply(0, self.total[task, j]), self.total[task, 2 * padded + j]
            if cell.coupled:
                x = self.inside(j, self.x, (t, b, d * 3 + 2))
                fresh = x + cell.apply(0, self.total[task, padded + j]) * fresh
            self.kept["next"][task, j] = keep * state[task, j] + (_number(keep, 1) - keep) * cell.apply(1, fresh)

        self.units(panel, unit)


class _RNN(_Layer):
    def update(self, task: Any, t: Any, phase: int, block: Any, panel: Any) -> None:
        """The next state of a panel."""
        self.sums(task, t, 0, panel, "state", {})
        self.units(panel, lambda j: self.kept["next"].__setitem__((task, j), self.cell.apply(0, self.total[task, j])))


_LAYERS: Mapping[str, type[_Layer]] = {"lstm": _LSTM, "gru": _GRU, "rnn": _RNN}


def in_steps(ib: IRBuilder, cell: Cell, sizes: Sizes, given: Operands, found: Sequence[Buffer]) -> None:
    """The loops of a layer; see `recurrent.recurrent_steps`."""
    layer = _LAYERS[cell.kind](ib, cell, sizes, given, found)
    run = _by_panels if _shares_weights(sizes, parse_dtype(given.weights.dtype).itemsize) else _by_sequences
    run(ib, layer)


def _shares_weights(sizes: Sizes, itemsize: int) -> bool:
    """Whether threads share the weights of each step, in place of sequences."""
    panels, batch = sizes.panels, as_int(sizes.batch)
    read = panels.blocks * panels.each * panels.padded * panels.rows * panels.group * itemsize
    if read < _SHARED or panels.count == 1:
        return False
    # A sequence alone for each core reads no more than it would of the weights of both directions.
    return batch != 1 or sizes.directions < (Target.current(allow_none=True) or Target("llvm")).num_cores


def _by_sequences(ib: IRBuilder, layer: _Layer) -> None:
    """Each sequence by a thread, from its first step to its last."""
    with ib.for_range(0, layer.tasks, "task", kind="parallel") as task:
        layer.start(task)
        count = layer.count(layer.place(task)[1])
        with ib.for_range(0, count, "s") as s:
            t = layer.step(task, s, count)
            for phase, blocks in enumerate(layer.phases):
                for block in blocks:
                    with ib.for_range(0, layer.panels.count, "panel") as panel:
                        layer.update(task, t, phase, block, panel)
            layer.finish(task, t)
        layer.end(task, count)


def _by_panels(ib: IRBuilder, layer: _Layer) -> None:
    """Each step by all threads, which share its weights: each reads its panels once for all sequences."""
    batch, ways, panels = layer.sizes.batch, layer.sizes.directions, layer.panels.count
    with ib.for_range(0, layer.tasks, "task") as task:
        layer.start(task)
    with ib.for_range(0, layer.sizes.time, "s") as s:
        for phase, blocks in enumerate(layer.phases):
            parts = ways * len(blocks) * panels
            with ib.for_range(0, parts, "part", kind="parallel") as part, ib.for_range(0, batch, "b") as b:
                panel, rest = floormod(part, panels), floordiv(part, panels)
                block = blocks[0] + (floormod(rest, len(blocks)) if len(blocks) > 1 else 0)
                own = b if ways == 1 else floordiv(rest, len(blocks)) * batch + b
                count = layer.count(b)
                with _while_running(ib, layer, s, count):
                    layer.update(own, layer.step(own, s, count), phase, block, panel)
        with ib.for_range(0, layer.tasks, "task", kind="parallel") as task:
            count = layer.count(layer.place(task)[1])
            with _while_running(ib, layer, s, count):
                layer.finish(task, layer.step(task, s, count))
    with ib.for_range(0, layer.tasks, "task") as task:
        layer.end(task, layer.count(layer.place(task)[1]))


def _while_running(ib: IRBuilder, layer: _Layer, s: Any, count: Any) -> Any:
    """What a sequence that has this step does in it."""
    return nullcontext() if layer.lengths is None else ib.if_scope(s < count)
