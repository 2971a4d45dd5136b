"""Calls of packed functions and large allocations, in terms of the runtime's own functions.

The arguments of a packed call are stored in arrays on the stack, one pair for all calls of a function (of an iteration,
where loops are parallel); arrays that are made for a call are structures there too. An allocation that is no small one on
the CPU's stack is taken from the runtime's workspace, and given back.
"""

from __future__ import annotations

from ...dataclass import dataclass, field, replace
from ...errors import LoweringError
from ...target import Target
from ...tir.arithmetic import as_int, cast, compare, const, logical_not
from ...tir.buffer import Buffer, decl_buffer
from ...tir.dtype import parse_dtype
from ...tir.expr import NE, BufferLoad, Call, Cast, IntImm, Let, Mul, PrimExpr, StringImm, Var
from ...tir.foreign import ARRAY, SHAPE
from ...tir.function import PrimFunc
from ...tir.rewriting import variables, walk
from ...tir.stmt import Allocate, AttrStmt, BufferStore, DeclBuffer, Evaluate, For, ForKind, IfThenElse, LetStmt, Stmt, While, seq
from ..passes import Pass
from ..rebuild import map_expr, map_stmt, pointer_scope
from .array_fields import ArgCode, Field, get, is_null, null, pointer, put, type_fields

_CPU = 1
_ON_STACK = 1024  # bytes from which on an allocation leaves the stack
_ALIGNMENT = 64  # of what the workspace hands out
_CALLS = {
    "tir.tvm_call_packed": ("tir.tvm_call_packed_lowered", 0),
    "tir.tvm_call_cpacked": ("tir.tvm_call_cpacked_lowered", 1),  # the last argument stays an argument
}


def LowerTVMBuiltin() -> Pass:
    """Packed calls with arguments on the stack, and workspace for large allocations; code of devices stays.

    Raises:
        LoweringError: when it runs, for an allocation or array whose device nothing says (attributes "device_id", "device_type").
    """
    return Pass("tir.LowerTVMBuiltin", lambda func, ctx: _Lowerer().function(func) if _is_of_host(func) else func)


def _is_of_host(func: PrimFunc) -> bool:
    target = func.attrs.get("target")
    return not isinstance(target, Target) or "cpu" in target.keys


@dataclass
class _Stack:
    """What calls need at once, and the most that they needed so far."""

    values: int = 0
    shapes: int = 0
    arrays: int = 0
    most_values: int = 0
    most_shapes: int = 0
    most_arrays: int = 0
    value: Var = field(default_factory=lambda: Var("stack_value", "handle"))
    codes: Buffer = field(default_factory=lambda: _numbers("stack_tcode", "int32"))
    shape: Buffer = field(default_factory=lambda: _numbers("stack_shape", "int64"))
    array: Var = field(default_factory=lambda: Var("stack_array", "handle"))


def _numbers(name: str, dtype: str) -> Buffer:
    return decl_buffer((1,), dtype, name, data=pointer(name, dtype))


class _Lowerer:
    def __init__(self) -> None:
        self._stack = _Stack()
        self._before: list[Stmt] = []
        self._device_id: PrimExpr | None = None
        self._device_type: PrimExpr | None = None

    def function(self, func: PrimFunc) -> PrimFunc:
        """The function without packed calls and large allocations."""
        return func.with_body(self._with_stack(func.body))

    def _with_stack(self, body: Stmt) -> Stmt:
        """`body` with the stack that its calls need."""
        outer, self._stack = self._stack, _Stack()
        body, used = self._stmt(body), self._stack
        self._stack = outer
        if used.most_shapes:
            body = _alloca(used.shape.data, "shape", used.most_shapes, _declared(used.shape, const(used.most_shapes, "int64"), body))
        if used.most_arrays:
            body = _alloca(used.array, "array", used.most_arrays, body)
        if used.most_values:
            body = _alloca(used.value, "arg_value", used.most_values, body)
            body = _alloca(used.codes.data, "arg_tcode", used.most_values, _declared(used.codes, const(used.most_values, "uint64"), body))
        return body

    def _stmt(self, stmt: Stmt) -> Stmt:
        # What calls in this statement store stands right in front of it, not in front of what is around.
        before, self._before = self._before, []
        # Whatever stands around has made its calls when this one runs, so all places are free.
        stack = self._stack
        held, (stack.values, stack.shapes, stack.arrays) = (stack.values, stack.shapes, stack.arrays), (0, 0, 0)
        result = self._lowered(stmt)
        stack.values, stack.shapes, stack.arrays = held
        result, self._before = seq(*self._before, result), before
        return result

    def _lowered(self, stmt: Stmt) -> Stmt:
        match stmt:
            case AttrStmt(attr_key="device_id"):
                return self._under("_device_id", stmt)
            case AttrStmt(attr_key="device_type"):
                return self._under("_device_type", stmt)
            case Allocate():
                return self._allocate(stmt)
            case For() if stmt.kind is ForKind.PARALLEL:
                # Iterations of a parallel loop run at once: their calls can't share a stack.
                return replace(stmt, min=self._expr(stmt.min), extent=self._expr(stmt.extent), body=self._with_stack(stmt.body))
            case While():
                condition = self._expr(stmt.condition)
                # What its calls take is stored again for each time that the condition is asked.
                return While(condition, seq(self._stmt(stmt.body), *self._before))
        return map_stmt(stmt, self._stmt, self._expr)

    def _under(self, name: str, stmt: AttrStmt) -> Stmt:
        outer = getattr(self, name)
        setattr(self, name, stmt.value)
        body = self._stmt(stmt.body)
        setattr(self, name, outer)
        return body

    def _device(self) -> tuple[PrimExpr, PrimExpr]:
        for what, value in (("id", self._device_id), ("type", self._device_type)):
            if value is None:
                raise LoweringError(f'LowerTVMBuiltin: unknown device {what}; an attribute "device_{what}" around says it (MakePackedAPI)')
        assert self._device_id is not None and self._device_type is not None
        return cast(self._device_id, "int32"), cast(self._device_type, "int32")

    def _allocate(self, stmt: Allocate) -> Stmt:
        body, extents = self._stmt(stmt.body), [self._expr(extent) for extent in stmt.extents]
        kind = parse_dtype(stmt.dtype)
        size: PrimExpr = const((kind.bits * kind.lanes + 7) // 8, "uint64")
        for extent in extents:
            factor = cast(extent, "uint64")
            both = isinstance(size, IntImm) and isinstance(factor, IntImm)
            size = size * factor if both else Mul(size, factor)  # the element's size stays in front
        on_cpu = self._device_type is None or as_int(self._device_type) == _CPU
        count = as_int(size)
        if on_cpu and pointer_scope(stmt.buffer_var) == "global" and count is not None and 0 < count < _ON_STACK:
            return stmt if body is stmt.body else replace(stmt, body=body)
        number, device = self._device()
        code, bits, _ = (IntImm("int32", value.value) for value in type_fields(stmt.dtype))
        data = stmt.buffer_var
        failed = Evaluate(Call("handle", "tir.tvm_throw_last_error", ()))
        given_back = Call("int32", "tir.TVMBackendFreeWorkspace", (device, number, data))
        body = seq(IfThenElse(is_null(data), failed), body, IfThenElse(compare(NE, given_back, const(0, "int32")), failed))
        taken = Call("handle", "tir.TVMBackendAllocWorkspace", (device, number, size, code, bits))
        return LetStmt(data, taken, AttrStmt(data, "storage_alignment", const(_ALIGNMENT, "int32"), body))

    def _expr(self, expr: PrimExpr) -> PrimExpr:
        if isinstance(expr, Call):
            if expr.op in _CALLS:
                return self._packed(expr)
            if expr.op == SHAPE:
                return self._shape(expr)
            if expr.op == ARRAY:
                return self._array(expr)
            if expr.op == "tir.if_then_else":
                return self._choice(expr)
        if isinstance(expr, Let) and any(expr.var in variables(call) for call in walk(expr.body) if _needs_stack(call)):
            # Arguments are stored in front of the statement, where the variable has no value yet.
            raise LoweringError(f"LowerTVMBuiltin: {expr.var.name} of a Let stands in a packed call; bind it by a statement (LetStmt)")
        return map_expr(expr, self._expr)

    def _choice(self, call: Call) -> PrimExpr:
        """Arguments of a call that may not be made are not computed either: `if_then_else(i < 4, f(A[i]), 0)`."""
        condition, *cases = call.args
        chosen = [self._expr(condition)]
        for case, holds in zip(cases, (chosen[0], logical_not(chosen[0])), strict=True):
            outer, self._before = self._before, []
            chosen.append(self._expr(case))
            stored, self._before = self._before, outer
            if stored and any(_needs_stack(node) for node in walk(condition)):
                raise LoweringError("LowerTVMBuiltin: packed calls decide on packed calls in one expression; use a statement (if)")
            if stored:
                self._before.append(IfThenElse(holds, seq(*stored)))
        return call if all(a is b for a, b in zip(chosen, call.args, strict=True)) else Call(call.dtype, call.op, tuple(chosen))

    def _packed(self, call: Call) -> PrimExpr:
        lowered, kept = _CALLS[str(call.op)]
        end = len(call.args) - kept
        values, stack = call.args[1:end], self._stack
        begin = stack.values
        stack.values += len(values) + 1  # one for the result
        stack.most_values = max(stack.most_values, stack.values)
        for number, value in enumerate(values, begin):
            held = stack.values, stack.shapes, stack.arrays
            self._argument(number, value, self._expr(value))
            if isinstance(value, Call) and value.op in _CALLS:  # it is over when its result is stored here; arrays are used later
                stack.values, stack.shapes, stack.arrays = held
        # `f(1) + g(2)`: both are called when all arguments are stored, so these places are taken until the end of the statement.
        bounds = (const(begin, "int32"), const(begin + len(values), "int32"))
        rest = tuple(map(self._expr, call.args[end:]))
        return Call(call.dtype, lowered, (call.args[0], stack.value, stack.codes.data, *bounds, *rest))

    def _argument(self, number: int, asked: PrimExpr, value: PrimExpr) -> None:
        """Store one argument and what it is."""
        kind = parse_dtype(value.dtype)
        if value.dtype != "handle" and not isinstance(value, StringImm):
            wide = "float64" if kind.is_float else "int64"
            value = value if value.dtype == wide else Cast(wide, value)
        self._before.append(put(self._stack.value, number, Field.CONTENT, value))

        def code(which: ArgCode) -> Stmt:
            return BufferStore(self._stack.codes, const(int(which), "int32"), (const(number, "int32"),))

        if isinstance(asked, Call) and asked.op == ARRAY:
            self._before.append(code(ArgCode.ARRAY))
        elif isinstance(value, StringImm):
            self._before.append(code(ArgCode.STRING))
        elif value.dtype == "handle":
            self._before.append(IfThenElse(is_null(value), code(ArgCode.NULL), code(ArgCode.HANDLE)))
        else:
            self._before.append(code(ArgCode.FLOAT if value.dtype == "float64" else ArgCode.INT))

    def _shape(self, call: Call) -> PrimExpr:
        stack = self._stack
        begin = stack.shapes
        stack.shapes += len(call.args)
        stack.most_shapes = max(stack.most_shapes, stack.shapes)
        for number, size in enumerate(call.args, begin):
            self._before.append(BufferStore(stack.shape, cast(self._expr(size), "int64"), (const(number, "int32"),)))
        first = decl_buffer((1,), "int64", stack.shape.name, data=stack.shape.data)
        return Call("handle", "tir.address_of", (BufferLoad(first, (const(begin, "int32"),)),))

    def _array(self, call: Call) -> PrimExpr:
        stack = self._stack
        index = stack.arrays
        stack.arrays += 1
        stack.most_arrays = max(stack.most_arrays, stack.arrays)
        data, shape, strides, ndim, kind, offset = call.args
        code, bits, lanes = type_fields(kind.dtype)
        size = const((bits.value * lanes.value + 7) // 8, "uint64")
        number, device = self._device()
        fields = (
            (Field.DATA, self._expr(data)),
            (Field.SHAPE, self._expr(shape)),
            (Field.STRIDES, null() if as_int(strides) == 0 else self._expr(strides)),
            (Field.NDIM, ndim),
            (Field.TYPE_CODE, code),
            (Field.TYPE_BITS, bits),
            (Field.TYPE_LANES, lanes),
            (Field.BYTE_OFFSET, cast(self._expr(offset), "uint64") * size),
            (Field.DEVICE_ID, number),
            (Field.DEVICE_TYPE, device),
        )
        self._before += [put(stack.array, index, which, value) for which, value in fields]
        return get(stack.array, index, Field.ADDRESS, "handle")


def _needs_stack(node: object) -> bool:
    return isinstance(node, Call) and (node.op in _CALLS or node.op in (SHAPE, ARRAY))


def _alloca(var: Var, kind: str, count: int, body: Stmt) -> Stmt:
    return LetStmt(var, Call("handle", "tir.tvm_stack_alloca", (StringImm(kind), const(count, "int32"))), body)


def _declared(buffer: Buffer, count: PrimExpr, body: Stmt) -> Stmt:
    """`body` with the buffer of the final size declared in place of the one that its accesses were built with."""
    whole = replace(buffer, shape=(count,))

    def expr(e: PrimExpr) -> PrimExpr:
        result = map_expr(e, expr)
        return BufferLoad(whole, result.indices) if isinstance(result, BufferLoad) and result.buffer is buffer else result

    def stmt(s: Stmt) -> Stmt:
        result = map_stmt(s, stmt, expr)
        return replace(result, buffer=whole) if isinstance(result, BufferStore) and result.buffer is buffer else result

    return DeclBuffer(whole, stmt(body))
