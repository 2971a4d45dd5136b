"""Arrays as arguments: what binds a buffer's pointer, sizes and offset to an array's fields, and what checks the rest."""

from __future__ import annotations

from collections.abc import Callable

from ...arith.index_analyzer import Analyzer
from ...tir.arithmetic import all as all_of
from ...tir.arithmetic import cast, compare, const, logical_or, truncdiv, truncmod
from ...tir.buffer import Buffer, decl_buffer
from ...tir.dtype import parse_dtype
from ...tir.expr import EQ, BufferLoad, IntImm, PrimExpr, StringImm, Var
from ...tir.intrin import if_then_else
from ...tir.stmt import NOP, AssertStmt, AttrStmt, DeclBuffer, IfThenElse, LetStmt, SeqStmt, Stmt
from .array_fields import Field, get, is_null, pointer, type_fields

Around = Callable[[Stmt], Stmt]


class ArrayArguments:
    """Takes arrays one by one. `bindings` go around everything, what `checked` adds between them and the function's own body.

    device_id: the variable that all arrays' device has to be; None before the first.
    """

    def __init__(self, function: str, device_type: int) -> None:
        self._function, self._device_type = function, device_type
        self.bindings: list[Around] = []
        self.device_id: Var | None = None
        self._checks: list[Around] = []
        self._bound: set[Var] = set()
        self._analyzer = Analyzer()

    def checked(self, body: Stmt) -> Stmt:
        """`body` behind all checks."""
        for check in reversed(self._checks):
            body = check(body)
        return body

    def take(self, handle: Var, buffer: Buffer) -> None:
        """Bind and check the array behind `handle`."""
        name = f"{self._function}.{handle.name}"
        self._bindings_assert(~is_null(handle), f"{name} is expected to have non-NULL DLTensor* pointer")
        ndim = compare(EQ, const(len(buffer.shape), "int32"), get(handle, 0, Field.NDIM, "int32"))
        self._bindings_assert(ndim, f"{name}.ndim is expected to equal {len(buffer.shape)}")
        fields = zip((Field.TYPE_CODE, Field.TYPE_BITS, Field.TYPE_LANES), type_fields(buffer.dtype), strict=True)
        same = [compare(EQ, get(handle, 0, field, value.dtype), value) for field, value in fields]
        self._check(all_of(*same), f"{name}.dtype is expected to be {buffer.dtype}")
        shape = self._numbers(handle, Field.SHAPE, f"{name}.shape", len(buffer.shape))
        for number, size in enumerate(buffer.shape):
            self._bind(size, cast(_element(shape, number), size.dtype), f"{name}.shape[{number}]")
        self._strides(handle, buffer, name, shape)
        self._offset(handle, buffer, name)
        device = get(handle, 0, Field.DEVICE_TYPE, "int32")
        if self.device_id is None:
            self.device_id = Var("dev_id", "int32")
        self._bind(self.device_id, get(handle, 0, Field.DEVICE_ID, "int32"), f"{name}.device_id", later=True)
        self._check_equal(const(self._device_type, "int32"), device, f"{name}.device_type")
        self._flush()
        self._data(handle, buffer, name)

    def _data(self, handle: Var, buffer: Buffer, name: str) -> None:
        if buffer.data not in self._bound:
            self._bind(buffer.data, get(handle, 0, Field.DATA, "handle"), f"{name}.data")
            data, alignment = buffer.data, const(buffer.data_alignment, "int32")
            self.bindings.append(lambda body: AttrStmt(data, "storage_alignment", alignment, body))
        size: PrimExpr = const(1, "int32" if not buffer.shape else buffer.shape[0].dtype)
        for extent in buffer.shape:
            size = size * extent
        # An array without elements needs no memory.
        known = logical_or(compare(EQ, size, const(0, size.dtype)), ~is_null(buffer.data))
        self._check(known, f"{name} is expected to have non-NULL data pointer")

    def _numbers(self, handle: Var, field: Field, name: str, count: int) -> Buffer:
        """An array's shape or strides as a buffer."""
        data = pointer(name, "int64")
        numbers = decl_buffer((count,), "int64", name, data=data)
        self.bindings.append(lambda body: LetStmt(data, get(handle, 0, field, "handle"), body))
        self.bindings.append(lambda body: DeclBuffer(numbers, body))
        return numbers

    def _strides(self, handle: Var, buffer: Buffer, name: str, shape: Buffer) -> None:
        strides = self._numbers(handle, Field.STRIDES, f"{name}.strides", len(buffer.strides))
        missing = is_null(strides.data)
        expected: PrimExpr = const(1, "int32" if not buffer.shape else buffer.shape[-1].dtype)
        if not buffer.strides:
            compact: list[PrimExpr] = []
            for number in reversed(range(len(buffer.shape))):
                size = buffer.shape[number]
                found = compare(EQ, expected, cast(_element(strides, number), expected.dtype))
                # Along an extent of 1 no step is ever taken, so any stride is compact.
                compact.append(logical_or(compare(EQ, size, const(1, size.dtype)), found))
                expected = expected * size
            if compact:
                inside = AssertStmt(all_of(*compact), StringImm(f"{name}.strides: expected to be compact array"), NOP)
                self._checks.append(lambda body: _first(IfThenElse(~missing, inside), body))
            return
        broadcast = buffer.buffer_type == 2
        for number in reversed(range(len(buffer.strides))):
            wanted, size = buffer.strides[number], buffer.shape[number]
            stated = cast(_element(strides, number), size.dtype)
            value = if_then_else(missing, expected, stated)
            # Stride 0: the one element stands for all along this dimension.
            if broadcast and not isinstance(size, IntImm):
                value = if_then_else(compare(EQ, size, const(1, size.dtype)), const(0, value.dtype), value)
            self._bind(wanted, cast(value, wanted.dtype), f"{name}.strides[{number}]")
            known = size if broadcast else cast(_element(shape, number), size.dtype)
            expected = self._analyzer.simplify(expected * known)

    def _offset(self, handle: Var, buffer: Buffer, name: str) -> None:
        size = _bytes(buffer.dtype)
        offset, stated = buffer.elem_offset, get(handle, 0, Field.BYTE_OFFSET, "uint64")
        if isinstance(offset, IntImm):
            self._check_equal(const(offset.value * size, "uint64"), stated, f"{name}.byte_offset")
            return
        self._bind(offset, cast(truncdiv(stated, const(size, "uint64")), offset.dtype), f"{name}.elem_offset")
        if buffer.offset_factor > 1:
            rest = truncmod(offset, const(buffer.offset_factor, offset.dtype))
            self._check_equal(rest, const(0, offset.dtype), f"{name}.elem_offset")

    def _bind(self, wanted: PrimExpr, value: PrimExpr, name: str, later: bool = False) -> None:
        """A variable that is met first gets the value, anything else is checked to be it; `later` keeps that check back."""
        if isinstance(wanted, Var) and wanted not in self._bound:
            self._bound.add(wanted)
            self.bindings.append(lambda body: LetStmt(wanted, value, body))
        elif later:
            self._kept = (wanted, value, name)
        else:
            self._check_equal(wanted, value, name)

    _kept: tuple[PrimExpr, PrimExpr, str] | None = None

    def _flush(self) -> None:
        if self._kept is not None:
            self._check_equal(*self._kept)
            self._kept = None

    def _check_equal(self, wanted: PrimExpr, value: PrimExpr, name: str) -> None:
        same = compare(EQ, wanted, value)
        simple = self._analyzer.simplify(same)
        if not (isinstance(simple, IntImm) and simple.value):
            self._check(simple, f"Argument {name} has an unsatisfied constraint: {same}")

    def _check(self, condition: PrimExpr, message: str) -> None:
        self._checks.append(lambda body: AssertStmt(condition, StringImm(message), body))

    def _bindings_assert(self, condition: PrimExpr, message: str) -> None:
        self.bindings.append(lambda body: AssertStmt(condition, StringImm(message), body))


def _first(stmt: Stmt, rest: Stmt) -> Stmt:
    return SeqStmt((stmt, *(rest.seq if isinstance(rest, SeqStmt) else (rest,))))


def _element(numbers: Buffer, number: int) -> PrimExpr:
    return BufferLoad(numbers, (IntImm("int32", number),))


def _bytes(dtype: str) -> int:
    kind = parse_dtype(dtype)
    return (kind.bits * kind.lanes + 7) // 8
