"""Vectors as scalars: stores of vectors become loops over lanes, so that C needs no vector types.

    C[ramp(i * 8, 1, 8)] = A[ramp(i * 8, 1, 8)] + broadcast(b, 8)
    ->
    for lane in range(8):
        C[i * 8 + lane] = A[i * 8 + lane] + b

Where lanes are picked one by one (`Shuffle`) there is a statement for each lane in place of the loop. A store whose value reads
what it writes at other places has its lanes computed first.
"""

from __future__ import annotations

from ..dataclass import replace
from ..errors import CodegenError
from ..lower.rebuild import loads_in, map_expr, map_stmt
from ..tir.arithmetic import cast, const, fold
from ..tir.buffer import Buffer, decl_buffer
from ..tir.dtype import parse_dtype, scalar_dtype
from ..tir.expr import Add, BinaryExpr, Broadcast, BufferLoad, Call, Cast, FloorDiv, IntImm, Let, Mul, PrimExpr, Ramp, Shuffle, Var
from ..tir.function import PrimFunc
from ..tir.intrin import intrinsic_of
from ..tir.rewriting import walk
from ..tir.stmt import Allocate, BufferStore, For, ForKind, IfThenElse, LetStmt, Stmt, seq

_TRUE = IntImm("bool", 1)
# Beside the functions of numbers: what does the same in each lane.
_BY_LANE = {f"tir.{name}" for name in ("if_then_else", "likely", "ldexp", "undef", "fabs")}
_BITS = "tir.reinterpret"


def without_vectors(func: PrimFunc) -> PrimFunc:
    """The function with scalars alone.

    Raises:
        CodegenError: for calls on vectors that mean nothing lane by lane.
    """
    return func.with_body(_Scalars(bool(func.attrs.get("tir.noalias", False))).stmt(func.body))


def _lanes(expr: PrimExpr) -> int:
    return parse_dtype(expr.dtype).lanes


def _made(op: type[BinaryExpr], a: PrimExpr, b: PrimExpr) -> PrimExpr:
    made = op(a, b)
    folded = fold(made)
    return made if folded is None else folded


class _Scalars:
    """One function's rewriting; `_values` are what vector variables of expressions stand for, `_arrays` where those of statements are."""

    def __init__(self, noalias: bool) -> None:
        self._noalias = noalias
        self._values: dict[Var, PrimExpr] = {}
        self._arrays: dict[Var, Buffer] = {}
        self._buffers: dict[Buffer, Buffer] = {}
        self._memo: dict[tuple[PrimExpr, PrimExpr | None], PrimExpr] = {}
        self._given: PrimExpr | None = None  # the predicate of the store that is being written, which its value may count on

    # Statements

    def stmt(self, stmt: Stmt) -> Stmt:
        """A statement with scalars alone."""
        match stmt:
            case BufferStore():
                return self._store(stmt.buffer, stmt.indices[-1], stmt.value, stmt.predicate)
            case LetStmt(var, value, body) if _lanes(value) > 1:
                array = self._arrays[var] = _array(var.name, value)
                return _allocated(
                    array,
                    seq(self._store(array, Ramp(IntImm("int32", 0), IntImm("int32", 1), _lanes(value)), value, None), self.stmt(body)),
                )
            case Allocate():
                lanes = parse_dtype(stmt.dtype).lanes
                made = map_stmt(stmt, self.stmt, self.scalar)
                if lanes == 1:
                    return made
                assert isinstance(made, Allocate)
                extents = (*made.extents[:-1], _made(Mul, made.extents[-1], IntImm(made.extents[-1].dtype, lanes)))
                return replace(made, dtype=scalar_dtype(stmt.dtype), extents=extents)
        return map_stmt(stmt, self.stmt, self.scalar)

    def _store(self, buffer: Buffer, index: PrimExpr, value: PrimExpr, predicate: PrimExpr | None) -> Stmt:
        lanes, target = _lanes(value), self._buffer(buffer)
        whole = [value, index, *(() if predicate is None else (predicate,))]
        if lanes == 1:
            return _stored(target, self._place(buffer, index, None), self.scalar(value), predicate and self.scalar(predicate))
        loop = None if any(map(_picks_lanes, whole)) else Var("lane", "int32")
        chosen = [IntImm("int32", lane) for lane in range(lanes)] if loop is None else [loop]
        self._given, self._memo = predicate, {}
        stores = [
            (self._place(buffer, index, lane), self.at(value, lane), None if predicate is None else self.at(predicate, lane))
            for lane in chosen
        ]
        self._given, self._memo = None, {}

        def each(made: list[Stmt]) -> Stmt:
            return seq(*made) if loop is None else For(loop, IntImm("int32", 0), IntImm("int32", lanes), ForKind.SERIAL, made[0])

        if predicate is not None and self._meets(target, stores):  # lanes that aren't stored are computed, too
            stores = [(place, self.at(value, lane), condition) for lane, (place, _, condition) in zip(chosen, stores, strict=True)]
        if not self._meets(target, stores):
            return each([_stored(target, *parts) for parts in stores])
        array = _array(buffer.name, value)
        ready = each([BufferStore(array, value, (lane,)) for lane, (_, value, _) in zip(chosen, stores, strict=True)])
        written = [
            _stored(target, place, BufferLoad(array, (lane,)), condition)
            for lane, (place, _, condition) in zip(chosen, stores, strict=True)
        ]
        return _allocated(array, seq(ready, each(written)))

    def _meets(self, target: Buffer, stores: list[tuple[PrimExpr, PrimExpr, PrimExpr | None]]) -> bool:
        """Whether a lane may read what another one has written."""
        for place, value, condition in stores:
            for load in loads_in([place, value, *(() if condition is None else (condition,))]):
                if load.buffer.data is target.data:
                    # Of one lane that is written and read nothing is wrong, in a loop and in statements one after the other.
                    if load.indices[-1] is not place or load.buffer.dtype != target.dtype:
                        return True
                elif not self._noalias and load.buffer.scope() == target.scope() == "global":
                    return True
        return False

    # Expressions

    def scalar(self, expr: PrimExpr) -> PrimExpr:
        """A scalar expression without vectors inside."""
        found = self._memo.get((expr, None))
        if found is None:
            found = self._memo[expr, None] = self._scalar(expr)
        return found

    def _scalar(self, expr: PrimExpr) -> PrimExpr:
        match expr:
            case Shuffle():
                return self._picked(expr, expr.indices[0])
            case BufferLoad(buffer, indices, predicate):
                return self._load(buffer, indices[-1], predicate, None)
            case Call(dtype, op, (operand,)) if op == _BITS and _lanes(operand) > 1:
                return self._joined(dtype, [self.at(operand, IntImm("int32", lane)) for lane in range(_lanes(operand))])
            case Let(var, value, body) if _lanes(value) > 1:
                self._values[var] = value
                return self.scalar(body)
            case Call() if any(_lanes(arg) > 1 for arg in expr.args):
                raise self._no_lanes(expr)
        return map_expr(expr, self.scalar)

    def at(self, expr: PrimExpr, lane: PrimExpr) -> PrimExpr:
        """One lane of a vector; of a scalar itself."""
        if _lanes(expr) == 1:
            return self.scalar(expr)
        found = self._memo.get((expr, lane))
        if found is None:
            found = self._memo[expr, lane] = self._at(expr, lane)
        return found

    def _at(self, expr: PrimExpr, lane: PrimExpr) -> PrimExpr:
        match expr:
            case Broadcast(value, _):
                return self.scalar(value)
            case Ramp(base, stride, _):
                return _made(Add, self.scalar(base), _made(Mul, cast(lane, base.dtype), self.scalar(stride)))
            case Shuffle():
                assert isinstance(lane, IntImm)
                return self._picked(expr, expr.indices[lane.value])
            case Var():
                if expr in self._arrays:
                    return BufferLoad(self._arrays[expr], (lane,))
                return self.at(self._values[expr], lane)
            case BufferLoad(buffer, indices, predicate):
                return self._load(buffer, indices[-1], predicate, lane)
            case Let(var, value, body):
                if _lanes(value) == 1:
                    return Let(var, self.scalar(value), self.at(body, lane))
                self._values[var] = value
                return self.at(body, lane)
            case Cast(dtype, value):
                return cast(self.at(value, lane), scalar_dtype(dtype))
            case Call():
                return self._call(expr, lane)
            case BinaryExpr():
                return _made(type(expr), self.at(expr.a, lane), self.at(expr.b, lane))
        return map_expr(expr, lambda part: self.at(part, lane))

    def _call(self, call: Call, lane: PrimExpr) -> PrimExpr:
        dtype = scalar_dtype(call.dtype)
        if call.op == _BITS:
            [operand] = call.args
            have, want = _lanes(operand), _lanes(call)
            if have == want:
                return Call(dtype, call.op, (self.at(operand, lane),))
            assert isinstance(lane, IntImm)
            if have > want:
                parts = have // want
                return self._joined(dtype, [self.at(operand, IntImm("int32", lane.value * parts + part)) for part in range(parts)])
            parts = want // have
            return self._part(dtype, self.at(operand, IntImm("int32", lane.value // parts)), lane.value % parts)
        if intrinsic_of(call).kind == "special" and call.op not in _BY_LANE:
            raise self._no_lanes(call)
        return Call(dtype, call.op, tuple(self.at(arg, lane) for arg in call.args))

    def _no_lanes(self, call: Call) -> CodegenError:
        return CodegenError(
            f"{call.op.removeprefix('tir.')} of vectors has no C: {call}; leave the loop around it a plain one, or build for target llvm"
        )

    def _picked(self, expr: Shuffle, index: int) -> PrimExpr:
        for vector in expr.vectors:
            if index < _lanes(vector):
                return self.at(vector, IntImm("int32", index))
            index -= _lanes(vector)
        raise CodegenError(f"{expr} picks a lane that its vectors haven't")

    def _joined(self, dtype: str, parts: list[PrimExpr]) -> PrimExpr:
        """Parts from the lowest on as one value: lanes lie in memory as they do on machines whose low bytes come first."""
        bits = parse_dtype(parts[0].dtype).bits
        wide = f"uint{bits * len(parts)}"
        total: PrimExpr = const(0, wide)
        for number, part in enumerate(parts):
            word = cast(_as_bits(part), wide)
            total = Call(wide, "tir.bitwise_or", (total, Call(wide, "tir.shift_left", (word, const(number * bits, wide)))))
        return Call(dtype, _BITS, (total,))

    def _part(self, dtype: str, value: PrimExpr, number: int) -> PrimExpr:
        bits, word = parse_dtype(dtype).bits, _as_bits(value)
        shifted = Call(word.dtype, "tir.shift_right", (word, const(number * bits, word.dtype)))
        return Call(dtype, _BITS, (cast(shifted, f"uint{bits}"),))

    # Memory

    def _buffer(self, buffer: Buffer) -> Buffer:
        lanes = parse_dtype(buffer.dtype).lanes
        if lanes == 1:
            return buffer
        if buffer not in self._buffers:
            size = _made(Mul, buffer.shape[-1], IntImm(buffer.shape[-1].dtype, lanes))
            self._buffers[buffer] = replace(buffer, dtype=scalar_dtype(buffer.dtype), shape=(size,))
        return self._buffers[buffer]

    def _place(self, buffer: Buffer, index: PrimExpr, lane: PrimExpr | None) -> PrimExpr:
        """The index of one lane of an access; the lanes of elements that are vectors lie side by side."""
        own = parse_dtype(buffer.dtype).lanes
        if own == 1 or lane is None:
            return self.scalar(index) if lane is None else self.at(index, lane)
        each, lane = IntImm(index.dtype, own), cast(lane, index.dtype)
        if _lanes(index) == 1:
            return _made(Add, _made(Mul, self.scalar(index), IntImm(index.dtype, own)), lane)
        assert isinstance(lane, IntImm)
        each, within = IntImm(scalar_dtype(index.dtype), own), IntImm(scalar_dtype(index.dtype), lane.value % own)
        return _made(Add, _made(Mul, self.at(index, _made(FloorDiv, lane, each)), each), within)

    def _load(self, buffer: Buffer, index: PrimExpr, predicate: PrimExpr | None, lane: PrimExpr | None) -> PrimExpr:
        load = BufferLoad(self._buffer(buffer), (self._place(buffer, index, lane),))
        if predicate is None or predicate is self._given:
            return load
        condition = self.scalar(predicate) if lane is None else self.at(predicate, lane)
        return Call(load.dtype, "tir.if_then_else", (condition, load, const(0, load.dtype)))


def _picks_lanes(expr: PrimExpr) -> bool:
    """Whether lanes of an expression are told apart by their numbers."""
    for node in walk(expr):
        if not isinstance(node, PrimExpr) or _lanes(node) == 1:
            continue
        if isinstance(node, Shuffle) or (isinstance(node, Call) and node.op == _BITS and _lanes(node.args[0]) != _lanes(node)):
            return True
        if isinstance(node, BufferLoad) and _lanes(node.indices[-1]) > 1 and parse_dtype(node.buffer.dtype).lanes > 1:
            return True
    return False


def _as_bits(value: PrimExpr) -> PrimExpr:
    parsed = parse_dtype(value.dtype)
    bits = f"uint{parsed.bits}"
    return value if value.dtype == bits else Call(bits, _BITS, (value,))


def _array(name: str, value: PrimExpr) -> Buffer:
    dtype = scalar_dtype(value.dtype)
    return decl_buffer((_lanes(value),), dtype, name)


def _allocated(array: Buffer, body: Stmt) -> Stmt:
    return Allocate(array.data, array.dtype, array.shape, _TRUE, body)


def _stored(buffer: Buffer, place: PrimExpr, value: PrimExpr, condition: PrimExpr | None) -> Stmt:
    store = BufferStore(buffer, value, (place,))
    return store if condition is None else IfThenElse(condition, store, None)
