"""The per-store features, slowly: one lowered program at a time, written from their definitions and sharing no code with the fast ones."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from tensorexpr.tir import stmt as st
from tensorexpr.tir.buffer import Buffer
from tensorexpr.tir.expr import (
    Add,
    And,
    BufferLoad,
    Call,
    Cast,
    CmpExpr,
    Div,
    FloorDiv,
    FloorMod,
    IntImm,
    Max,
    Min,
    Mod,
    Mul,
    Not,
    Or,
    PrimExpr,
    Select,
    Sub,
    Var,
)  # fmt: skip
from tensorexpr.tir.function import PrimFunc
from tensorexpr.tir.rewriting import children, walk

LINE = 64
KINDS = {"vec": st.ForKind.VECTORIZED, "unroll": st.ForKind.UNROLLED, "parallel": st.ForKind.PARALLEL}
POSITIONS = ["None", "InnerSpatial", "MiddleSpatial", "OuterSpatial", "InnerReduce", "MiddleReduce", "OuterReduce", "Mixed"]
OPERATORS: dict[type[PrimExpr], str] = dict.fromkeys((Div, Mod, FloorDiv, FloorMod), "divmod")
OPERATORS.update({Add: "addsub", Sub: "addsub", Mul: "mul"})


def slog(x: float) -> float:
    """The scale of sizes."""
    return math.log2(x + 1) if x >= 0 else -math.log2(1 - x)


def item_bytes(dtype: str) -> int:
    """Bytes of an element."""
    return 1 if dtype == "bool" else int("".join(c for c in dtype if c.isdigit())) // 8


@dataclass
class Access:
    """What a store does with one buffer."""

    buffer: Buffer
    indices: list[tuple[PrimExpr, ...]] = field(default_factory=list)
    read: bool = False
    written: bool = False


@dataclass
class Extractor:
    """Walks over a program of phase 0."""

    loops: list[st.For] = field(default_factory=list)
    unroll: list[float] = field(default_factory=lambda: [0.0])
    touched: dict[int, list[tuple[Buffer, float, int]]] = field(default_factory=dict)
    stores: dict[Buffer, dict[str, float]] = field(default_factory=dict)
    counts: dict[Buffer, dict[str, float]] = field(default_factory=dict)
    storage: dict[Buffer, tuple[float, float]] = field(default_factory=dict)

    def visit(self, node: Any) -> None:
        """A statement."""
        match node:
            case st.For():
                step = node.annotations.get("pragma_auto_unroll_max_step")
                self.unroll.append(self.unroll[-1] if step is None else float(step))
                if number(node.extent) > 1:
                    self.loops.append(node)
                    self.visit(node.body)
                    self.loops.pop()
                else:
                    self.visit(node.body)
                self.unroll.pop()
            case st.BufferRealize():
                size = math.prod(number(bound.extent) for bound in node.bounds)
                self.storage[node.buffer] = (size, math.prod(number(loop.extent) for loop in self.loops))
                self.visit(node.body)
            case st.BufferStore():
                self.store(node)
            case _:
                for child in children(node):
                    if isinstance(child, st.Stmt):
                        self.visit(child)

    def store(self, node: st.BufferStore) -> None:
        """A store: everything but the counts of operations overwrites what an earlier one to the same buffer left."""
        executions = math.prod(number(loop.extent) for loop in self.loops)
        counts = self.counts.setdefault(node.buffer, {})
        per_execution: dict[str, float] = {}
        count(node.value, per_execution)
        for name, times in per_execution.items():
            counts[name] = counts.get(name, 0) + times * executions
        accesses = list(self.accesses(node))
        floats = sum(times for name, times in per_execution.items() if name.startswith("float_"))
        curve = self.touch(accesses, floats)
        found = {"outer_prod": slog(executions), "num_loops": slog(len(self.loops)), "auto_unroll_max_step": slog(self.unroll[-1])}
        for sample in range(10):
            found[f"arith_intensity_curve_{sample}"] = slog(on_curve(curve, (sample + 1) / 10))
        found.update(self.annotations())
        described = [self.access(access, executions) for access in accesses]
        described.sort(key=lambda d: (-d["lines"], -d["bytes"], d["name"]))
        for place, values in enumerate(described[:5]):
            found.update({f"B{place}.{name}": value for name, value in values.items() if name != "name"})
        self.stores.pop(node.buffer, None)
        self.stores[node.buffer] = found

    def accesses(self, node: st.BufferStore) -> Iterator[Access]:
        made = {node.buffer: Access(node.buffer, [tuple(node.indices)], written=True)}
        for part in walk(node.value):
            if isinstance(part, BufferLoad):
                access = made.setdefault(part.buffer, Access(part.buffer))
                access.read = True
                access.indices.append(tuple(part.indices))
        yield from made.values()

    def touch(self, accesses: list[Access], floats: float) -> list[tuple[float, float]]:
        """Note what the loops touch, from within; the points (operations, operations per byte)."""
        curve = []
        for level in reversed(range(len(self.loops))):
            floats *= number(self.loops[level].extent)
            moved = 0.0
            for access in accesses:
                size = math.prod(self.box(access, level))
                self.touched.setdefault(id(self.loops[level]), []).append((access.buffer, size, item_bytes(access.buffer.dtype)))
                moved += size * item_bytes(access.buffer.dtype)
            curve.append((floats, floats / moved))
        return curve

    def box(self, access: Access, level: int) -> list[float]:
        """What is touched while the loops from `level` on run."""
        ranges = {loop.loop_var: (0.0, number(loop.extent) - 1.0 if n >= level else 0.0) for n, loop in enumerate(self.loops)}
        extents = []
        for dim, size in enumerate(access.buffer.shape):
            parts = [interval(indices[dim], ranges) for indices in access.indices]
            if any(part is None for part in parts):
                extents.append(float(number(size)))
            else:
                known = [part for part in parts if part is not None]
                extents.append(min(max(b for _, b in known) - min(a for a, _ in known) + 1, float(number(size))))
        return extents

    def annotations(self) -> dict[str, float]:
        found = {}
        for word, kind in KINDS.items():
            extents = [number(loop.extent) for loop in self.loops if loop.kind is kind]
            found[f"{word}_num"] = slog(len(extents))
            found[f"{word}_prod"] = slog(math.prod(extents) if extents else 0)
            found[f"{word}_len"] = slog(extents[-1] if extents else 0)
            for position in POSITIONS:
                found[f"{word}_type.kPos{position}"] = float(position == ("Mixed" if extents else "None"))
        return found

    def access(self, access: Access, executions: float) -> dict[str, Any]:
        """The 18 features of one buffer, with its name."""
        item = item_bytes(access.buffer.dtype)
        whole = self.box(access, 0)
        unique = math.prod(whole) * item
        run = 1.0
        for extent, size in zip(reversed(whole), reversed(access.buffer.shape), strict=True):
            run *= extent
            if extent < number(size):
                break
        stride, fewer, innermost = 0.0, 1.0, 0.0
        for level in reversed(range(len(self.loops))):
            stride = self.stride(access, self.loops[level].loop_var)
            innermost = stride if level == len(self.loops) - 1 else innermost
            if stride:
                break
            fewer *= number(self.loops[level].extent)
        lines = max(1.0, executions / fewer * min(1.0, stride * item / LINE))
        values = {"bytes": executions * item, "unique_bytes": unique, "lines": lines}
        values["unique_lines"] = max(1.0, unique / min(run * item, LINE))
        kind, iterations, distance, times = self.reuse(access)
        found: dict[str, Any] = {name: slog(value) for name, value in values.items()}
        for name, value in values.items():
            found[f"{name}_d_reuse_ct"] = slog(value / times if times else 2 * value)
        how = "ReadWrite" if access.read and access.written else "Read" if access.read else "Write"
        found.update({f"acc_type.k{name}": float(name == how) for name in ("Read", "Write", "ReadWrite")})
        kinds = ("LoopMultipleRead", "SerialMultipleReadWrite", "NoReuse")
        found.update({f"reuse_type.k{name}": float(name == kind) for name in kinds})
        found.update(reuse_dis_iter=slog(iterations), reuse_dis_bytes=slog(distance), reuse_ct=slog(times), stride=slog(innermost))
        return {**found, "name": access.buffer.name}

    def stride(self, access: Access, var: Var) -> float:
        """Elements between the first two iterations of a loop."""
        found = []
        for indices in access.indices:
            apart, row = 0.0, 1
            for index, size in zip(reversed(indices), reversed(access.buffer.shape), strict=True):
                zero = {loop.loop_var: (0.0, 0.0) for loop in self.loops}
                first, second = interval(index, zero), interval(index, {**zero, var: (1.0, 1.0)})
                if first is not None and second is not None:
                    apart += row * (second[0] - first[0])
                row *= number(size)
            if apart:
                found.append(abs(apart))
        return min(found, default=0.0)

    def moves(self, access: Access, loop: st.For) -> bool:
        """Whether what is accessed depends on a loop."""
        ranges = {other.loop_var: (0.0, number(loop.extent) - 1.0 if other is loop else 0.0) for other in self.loops}
        for index in (index for indices in access.indices for index in indices):
            values = interval(index, ranges)
            if values is None and any(node is loop.loop_var for node in walk(index)):
                return True
            if values is not None and values[0] < values[1]:
                return True
        return False

    def reuse(self, access: Access) -> tuple[str, float, float, float]:
        iterations, distance = 1.0, -1.0
        for loop in reversed(self.loops):
            extent, there = number(loop.extent), self.touched[id(loop)]
            if not self.moves(access, loop):
                return "LoopMultipleRead", iterations, sum(item for _, _, item in there) if distance < 0 else distance, extent
            iterations *= extent
            distance = sum(size * item for _, size, item in there)
            same = [size for buffer, size, _ in there if buffer is access.buffer]
            if len(same) > 1:
                return "SerialMultipleReadWrite", min(same) / extent, distance / extent, len(same) - 1
        return "NoReuse", 0.0, 0.0, 0.0


def number(extent: Any) -> int:
    """A constant."""
    assert isinstance(extent, IntImm), f"{extent} is no constant"
    return extent.value


def on_curve(points: list[tuple[float, float]], share: float) -> float:
    """The height of a curve of straight pieces at a share of its last place; before its first point it is level."""
    if not points or points[-1][0] <= 0:
        return 0.0
    wanted = points[-1][0] * share
    before = points[0]
    for point in points:
        if point[0] >= wanted * (1 - 1e-12):
            if point is points[0]:
                return point[1]
            return before[1] + (wanted - before[0]) / (point[0] - before[0]) * (point[1] - before[1])
        before = point
    return points[-1][1]


def interval(index: PrimExpr, ranges: dict[Var, tuple[float, float]]) -> tuple[float, float] | None:
    """The least and the largest value of an index; None if it depends on more than loops."""
    if isinstance(index, IntImm):
        return float(index.value), float(index.value)
    if isinstance(index, Var):
        return ranges.get(index)
    if isinstance(index, Cast):
        return interval(index.value, ranges)
    if not isinstance(index, (Add, Sub, Mul, Min, Max, FloorDiv, FloorMod)):
        return None
    left, right = interval(index.a, ranges), interval(index.b, ranges)
    if left is None or right is None:
        return None
    corners = [(a, b) for a in left for b in right]
    match index:
        case Add():
            values = [a + b for a, b in corners]
        case Sub():
            values = [a - b for a, b in corners]
        case Mul():
            values = [a * b for a, b in corners]
        case Min():
            values = [min(left[0], right[0]), min(left[1], right[1])]
        case Max():
            values = [max(left[0], right[0]), max(left[1], right[1])]
        case FloorDiv():
            values = [a // right[0] for a in left]
        case FloorMod():
            same = left[0] // right[0] == left[1] // right[0]
            values = [left[0] % right[0], left[1] % right[0]] if same else [0.0, right[0] - 1]
    return min(values), max(values)


def count(node: PrimExpr, counts: dict[str, float]) -> bool:
    """Count the operations of a value, without those on addresses; True if there is a load in it."""
    if isinstance(node, BufferLoad):
        return True
    loads = any([count(child, counts) for child in children(node) if isinstance(child, PrimExpr)])
    of = node.a.dtype if isinstance(node, CmpExpr) else node.dtype
    word = "float" if "float" in of else "int"
    name = ""
    if isinstance(node, (Min, Max, CmpExpr)):
        name = f"{word}_cmp"
    elif type(node) in OPERATORS and (loads or word == "float"):
        name = f"{word}_{OPERATORS[type(node)]}"
    elif isinstance(node, (And, Or, Not)):
        name = "bool_op"
    elif isinstance(node, Select) or (isinstance(node, Call) and node.op == "tir.if_then_else"):
        name = "select_op"
    elif isinstance(node, Call) and node.op != "tir.likely":
        name = f"{word}_mathfunc"
    if name:
        counts[name] = counts.get(name, 0) + 1
    return loads


def slow_features(func: PrimFunc) -> dict[str, dict[str, float]]:
    """The features of every store of a program of phase 0, by the name of its buffer; what is 0 may be left out."""
    extractor = Extractor()
    extractor.visit(func.body)
    found = {}
    for buffer, features in extractor.stores.items():
        executions = 2 ** features["outer_prod"] - 1
        size, times = extractor.storage.get(buffer, (math.prod(map(number, buffer.shape)), 1.0))
        made = {name: slog(value) for name, value in extractor.counts[buffer].items()}
        made.update(alloc_size=slog(size * item_bytes(buffer.dtype)), alloc_prod=slog(size * times))
        made.update(alloc_outer_prod=slog(times), alloc_inner_prod=slog(executions / times))
        made.update({f"{name}_len": 1.0 for name in ("blockIdx_x", "blockIdx_y", "blockIdx_z", "threadIdx_x", "threadIdx_y")})
        made.update({f"{name}_len": 1.0 for name in ("threadIdx_z", "vthread")})
        found[buffer.name] = {**made, **features}
    return found
