"""Indices in fewer bits, where their values show that these are enough.

First every loop variable and constant gets the bits that the expressions around it need: an expression whose bounds fit
the target needs that many, another one as many as it has, and so does everything in it. Then loops, blocks and thread
axes are written anew; where a narrowed variable meets a value that keeps its type, it is cast.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from typing import cast as typing_cast

from ...arith.index_analyzer import Analyzer
from ...tir.arithmetic import cast
from ...tir.block import BlockRealize
from ...tir.buffer import BufferRegion
from ...tir.dtype import int_limits, parse_dtype, with_lanes
from ...tir.expr import BinaryExpr, Broadcast, BufferLoad, Call, Cast, CmpExpr, IntImm, IterVar, PrimExpr, Ramp, Range, Select, Var
from ...tir.function import PrimFunc
from ...tir.stmt import AttrStmt, BufferStore, For, Stmt
from ..passes import Pass
from ..rebuild import map_expr, map_stmt, operands, own_expressions, sub_statements

_THREADS = ("thread_extent", "virtual_thread")


def NarrowDataType(target_bits: int = 32) -> Pass:
    """Loop variables and indices in `target_bits` bits where that is proved to be enough.

    Nothing gets wider, except for a thread axis whose extent is.
    """

    return Pass("tir.NarrowDataType", lambda func, ctx: narrowed(func, Needs(target_bits)))


def narrowed(func: PrimFunc, needs: Needs) -> PrimFunc:
    """`func` with the bits that `needs` finds."""
    needs.stmt(func.body)
    if all(bits == bits_of(expr) for expr, bits in needs.bits.items()):
        return func
    return func.with_body(Narrower(needs).stmt(func.body))


def bits_of(expr: PrimExpr) -> int:
    """Bits of one lane."""
    return parse_dtype(expr.dtype).bits


class Needs:
    """How many bits variables, constants and integer casts need, each kind by what it is."""

    def __init__(self, target_bits: int) -> None:
        self._target = target_bits
        self._analyzer = Analyzer()
        self._extents: dict[Var, int] = {}  # the bits of what bounds a variable
        self.bits: dict[PrimExpr, int] = {}
        self._done: set[tuple[PrimExpr, int]] = set()

    def stmt(self, stmt: Stmt) -> None:
        """Look at everything in a statement."""
        if isinstance(stmt, For):
            self._bind(stmt.loop_var, Range.from_min_extent(stmt.min, stmt.extent))
        elif isinstance(stmt, AttrStmt) and stmt.attr_key in _THREADS and isinstance(stmt.node, IterVar):
            self._bind(stmt.node.var, Range.from_min_extent(IntImm(stmt.value.dtype, 0), stmt.value))
        elif isinstance(stmt, BlockRealize):
            for axis in stmt.block.iter_vars:
                self._bind(axis.var, typing_cast(Range, axis.dom))
        for expr in own_expressions(stmt):
            self.expr(expr, self._target)
        for inner in sub_statements(stmt):
            self.stmt(inner)

    def _bind(self, var: Var, domain: Range) -> None:
        self._extents[var] = bits_of(domain.extent)
        self._analyzer.bind(var, domain, allow_override=True)

    def expr(self, expr: PrimExpr, bits: int) -> None:
        """Note that `expr` stands where `bits` are needed."""
        if (expr, bits) in self._done:
            return
        # By bits, too: a shared expression may stand once more where it needs more of them.
        self._done.add((expr, bits))
        if parse_dtype(expr.dtype).code == "int":
            # Needs go downwards: where i * n overflows 32 bits, i and n are computed in 64, or the product would wrap before it is widened.
            own = self._target if bits_of(expr) <= self._target or self._fits(expr) else 64
            bits = max(bits, own)
        if isinstance(expr, Var) and expr in self._extents:
            self._need(expr, min(self._extents[expr], bits))
        elif _is_int(expr) and (isinstance(expr, IntImm) or (isinstance(expr, Cast) and _is_int(expr.value))):
            self._need(expr, min(bits_of(expr), bits))
        if isinstance(expr, BufferLoad):
            bits = self._target  # where an element stands has nothing to do with what it is used for
        for operand in operands(expr):
            self.expr(operand, bits)

    def _need(self, expr: PrimExpr, bits: int) -> None:
        self.bits[expr] = max(self.bits.get(expr, 0), bits)

    def _fits(self, expr: PrimExpr) -> bool:
        lanes = parse_dtype(expr.dtype).lanes
        low, high = int_limits(f"int{self._target}")
        if lanes > 1:
            if isinstance(expr, Broadcast):
                return self._fits(expr.value)
            if isinstance(expr, Ramp):
                last = expr.base + expr.stride * (lanes - 1)
                return self._fits(expr.base) and self._fits(last)
            return False
        # By constants: a symbolic extent has the bounds of its dtype, so that a product of two stays wide.
        bound = self._analyzer.const_int_bound(expr)
        return bool(low <= bound.min_value and bound.max_value <= high)


def _is_int(expr: PrimExpr) -> bool:
    return parse_dtype(expr.dtype).code == "int"


class ForcedNeeds(Needs):
    """32 bits for everything."""

    def __init__(self) -> None:
        super().__init__(32)

    def _fits(self, expr: PrimExpr) -> bool:
        return True


class Narrower:
    """Writes statements with the bits that are needed. Constants change in indices and bounds alone."""

    def __init__(self, needs: Needs) -> None:
        self._bits = needs.bits
        self._vars: dict[Var, Var] = {}
        self._memo: dict[tuple[PrimExpr, bool], PrimExpr] = {}

    def _narrowed(self, var: Var) -> Var:
        bits = self._bits.get(var, bits_of(var))
        if bits == bits_of(var):
            return self._vars.setdefault(var, var)
        if var not in self._vars:
            self._vars[var] = type(var)(var.name, f"int{bits}")
        return self._vars[var]

    def stmt(self, stmt: Stmt) -> Stmt:
        """The statement with narrower indices."""
        match stmt:
            case For():
                var = self._narrowed(stmt.loop_var)
                low, extent = (cast(self.index(bound), var.dtype) for bound in (stmt.min, stmt.extent))
                return replace(stmt, loop_var=var, min=low, extent=extent, body=self.stmt(stmt.body))
            case AttrStmt() if stmt.attr_key in _THREADS and isinstance(stmt.node, IterVar):
                return self._thread(stmt, stmt.node)
            case BufferStore():
                value = self.expr(stmt.value)
                value = value if value.dtype == stmt.value.dtype else cast(value, stmt.value.dtype)
                predicate = None if stmt.predicate is None else self.expr(stmt.predicate)
                return BufferStore(stmt.buffer, value, tuple(map(self.index, stmt.indices)), predicate)
            case BlockRealize():
                return self._realize(stmt)
        return map_stmt(stmt, self.stmt, self._kept)

    def _kept(self, expr: PrimExpr) -> PrimExpr:
        """A value in the type that it had."""
        new = self.expr(expr)
        return new if new.dtype == expr.dtype else cast(new, expr.dtype)

    def _thread(self, stmt: AttrStmt, axis: IterVar) -> Stmt:
        var = self._narrowed(axis.var)
        value = cast(self.index(stmt.value), var.dtype)
        dom = axis.dom and Range.from_min_extent(cast(axis.dom.min, var.dtype), cast(axis.dom.extent, var.dtype))
        node = axis if var is axis.var else replace(axis, var=var, dom=dom)
        return AttrStmt(node, stmt.attr_key, value, self.stmt(stmt.body))

    def _realize(self, stmt: BlockRealize) -> Stmt:
        axes, values = [], []
        for axis, value in zip(stmt.block.iter_vars, stmt.iter_values, strict=True):
            var, dom = self._narrowed(axis.var), typing_cast(Range, axis.dom)
            bounds = Range.from_min_extent(cast(self.index(dom.min), var.dtype), cast(self.index(dom.extent), var.dtype))
            axes.append(replace(axis, var=var, dom=bounds))
            values.append(cast(self.index(value), var.dtype))
        block = stmt.block
        reads, writes = (tuple(map(self._region, regions)) for regions in (block.reads, block.writes))
        init = None if block.init is None else self.stmt(block.init)
        matches = tuple(replace(match, source=self._region(match.source)) for match in block.match_buffers)
        changed: dict[str, Any] = {"iter_vars": tuple(axes), "reads": reads, "writes": writes, "match_buffers": matches}
        inner = replace(block, **changed, init=init, body=self.stmt(block.body))
        return BlockRealize(tuple(values), self._kept(stmt.predicate), inner)

    def _region(self, region: BufferRegion) -> BufferRegion:
        ranges = []
        for bound in region.region:
            low, extent = self.index(bound.min), self.index(bound.extent)
            # A range adds both, so they have one dtype.
            wide = max(low.dtype, extent.dtype, key=lambda dtype: parse_dtype(dtype).bits)
            ranges.append(Range.from_min_extent(cast(low, wide), cast(extent, wide)))
        return BufferRegion(region.buffer, tuple(ranges))

    def index(self, expr: PrimExpr) -> PrimExpr:
        """An index: constants in it may change their type as well."""
        return self._rewritten(expr, True)

    def expr(self, expr: PrimExpr) -> PrimExpr:
        """A value: its own constants stay, indices in it don't."""
        return self._rewritten(expr, False)

    def _rewritten(self, expr: PrimExpr, narrow: bool) -> PrimExpr:
        known = self._memo.get((expr, narrow))
        if known is None:
            known = self._memo[expr, narrow] = self._made(expr, narrow)
        return known

    def _made(self, expr: PrimExpr, narrow: bool) -> PrimExpr:
        match expr:
            case Var():
                return self._vars.get(expr, expr)
            case IntImm():
                bits = self._bits.get(expr)
                return cast(expr, f"int{bits}") if narrow and bits is not None and bits < bits_of(expr) else expr
            case Cast():
                return self._cast(expr, narrow)
            case BinaryExpr() | CmpExpr():
                # A comparison's result is a bool whatever its operands are, so that these may be narrowed even where a value is kept.
                inside = narrow or isinstance(expr, CmpExpr)
                a, b = _matched(self._rewritten(expr.a, inside), self._rewritten(expr.b, inside))
                return expr if a is expr.a and b is expr.b else type(expr)(a, b)
            case Select():
                a, b = _matched(self._rewritten(expr.true_value, narrow), self._rewritten(expr.false_value, narrow))
                return Select(self.expr(expr.condition), a, b)
            case Ramp():
                base, stride = _matched(self._rewritten(expr.base, narrow), self._rewritten(expr.stride, narrow))
                return Ramp(base, stride, expr.lanes)
            case BufferLoad():
                predicate = None if expr.predicate is None else self.expr(expr.predicate)
                return BufferLoad(expr.buffer, tuple(map(self.index, expr.indices)), predicate)
            case Call():
                return self._call(expr, narrow)
        return map_expr(expr, lambda operand: self._rewritten(operand, narrow))

    def _cast(self, expr: Cast, narrow: bool) -> PrimExpr:
        value = self._rewritten(expr.value, narrow)
        bits = self._bits.get(expr)
        if narrow and bits is not None and bits < bits_of(expr):
            return cast(value, with_lanes(f"int{bits}", parse_dtype(expr.dtype).lanes))
        return value if value.dtype == expr.dtype else Cast(expr.dtype, value)

    def _call(self, call: Call, narrow: bool) -> PrimExpr:
        if call.op == "tir.if_then_else":
            a, b = _matched(*(self._rewritten(arm, narrow) for arm in call.args[1:]))
            return Call(a.dtype, call.op, (self.expr(call.args[0]), a, b))
        args = tuple(map(self._kept, call.args))
        return Call(call.dtype, call.op, args) if any(a is not b for a, b in zip(args, call.args, strict=True)) else call


def _matched(a: PrimExpr, b: PrimExpr) -> tuple[PrimExpr, PrimExpr]:
    """Both in the wider of their types."""
    if a.dtype == b.dtype:
        return a, b
    if bits_of(a) < bits_of(b):
        return cast(a, with_lanes(b.dtype, parse_dtype(a.dtype).lanes)), b
    return a, cast(b, with_lanes(a.dtype, parse_dtype(b.dtype).lanes))
