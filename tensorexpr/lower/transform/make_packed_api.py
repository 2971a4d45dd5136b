"""Functions as the runtime calls them: arguments of any kind in an array, with codes that say of which.

    def main(A: Buffer((16,)), n)   ->   def main(args, arg_type_ids, num_args, out_ret_value, out_ret_tcode, resource_handle)

The function checks the number and the kinds of its arguments, takes arrays apart, checks their types, shapes, strides and
devices, and then does what it did. What it returns is stored behind `out_ret_value`; it gives back an error code.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from ...errors import LoweringError
from ...target import Target
from ...tir.analysis import undefined_vars
from ...tir.arithmetic import any as any_of
from ...tir.arithmetic import cast, compare
from ...tir.buffer import decl_buffer
from ...tir.dtype import parse_dtype
from ...tir.expr import EQ, BufferLoad, Call, Cast, IntImm, PrimExpr, StringImm, Var
from ...tir.function import GlobalVar, IRModule, PrimFunc
from ...tir.rewriting import Node, post_order_rewrite
from ...tir.stmt import AssertStmt, AttrStmt, BufferStore, DeclBuffer, Evaluate, LetStmt, Stmt, seq
from ..context import PassContext
from ..passes import ModulePass, Pass
from ..rebuild import map_stmt
from .argument_arrays import ArrayArguments
from .array_fields import ArgCode, Field, get, is_null, null, pointer
from .calling_conventions import C_PACKED_FUNC, device_attribute, for_host, host_of, success, target_of
from .decorators import unused

Around = Callable[[Stmt], Stmt]
_POINTERS = (ArgCode.HANDLE, ArgCode.NDARRAY, ArgCode.ARRAY, ArgCode.NULL)


def MakePackedAPI() -> Pass:
    """Public functions with the runtime's calling convention; calls between them go through it.

    Raises:
        LoweringError: when it runs, for a public function without target, or one that uses a variable that no argument gives.
    """

    def make(mod: IRModule, ctx: PassContext) -> IRModule:
        functions = dict(mod.functions_items())
        hosts = {var: host_of(func, "MakePackedAPI") for var, func in functions.items() if isinstance(func, PrimFunc)}
        symbols = {var: str(functions[var].attrs["global_symbol"]) for var, host in hosts.items() if host is not None}
        if not symbols:
            return mod
        made: dict[str | GlobalVar, PrimFunc] = {}
        for var, func in functions.items():
            host = hosts.get(var)
            if isinstance(func, PrimFunc):
                func = func.with_body(_with_packed_calls(func.body, symbols))
            made[var] = func if host is None else _Packer(func, host).packed()
        return IRModule(made, mod.attrs)

    return ModulePass("tir.MakePackedAPI", unused, module_func=make, by_user=False)


def _with_packed_calls(body: Stmt, symbols: dict[GlobalVar, str]) -> Stmt:
    """Calls of packed functions by their names."""

    def rule(node: Node) -> Node | None:
        if not isinstance(node, Call) or not isinstance(node.op, GlobalVar) or node.op not in symbols:
            return None
        return Call("int32", "tir.tvm_call_cpacked", (StringImm(symbols[node.op]), *node.args, null()))

    return post_order_rewrite(body, rule)


class _Packer:
    def __init__(self, func: PrimFunc, host: Target) -> None:
        self._func, self._host = func, host
        self._name = str(func.attrs["global_symbol"])
        self._args = Var("args", "handle")
        self._codes = pointer("arg_type_ids", "int32")
        self._count = Var("num_args", "int32")
        self._value = pointer("out_ret_value", "void")
        self._value_code = pointer("out_ret_tcode", "int32")
        self._resource = Var("resource_handle", "handle")

    def packed(self) -> PrimFunc:
        """The function in the runtime's convention."""
        func, device = self._func, target_of(self._func, "MakePackedAPI").get_target_device_type()
        arrays = ArrayArguments(self._name, device)
        for param in func.params:
            if param in func.buffer_map:
                arrays.take(param, func.buffer_map[param])
        body: Stmt = AttrStmt(IntImm("int32", 0), "compute_scope", StringImm(f"{self._name}_compute_"), self._returning(func.body))
        if arrays.device_id is not None and device != 1:
            chosen = (StringImm("__tvm_set_device"), IntImm("int32", device), arrays.device_id)
            body = seq(Evaluate(Call("int32", "tir.tvm_call_packed", chosen)), body)
        body = seq(body, success())
        for buffer in reversed([func.buffer_map[param] for param in func.params if param in func.buffer_map]):
            body = DeclBuffer(buffer, body)
        body = arrays.checked(body)
        if arrays.device_id is not None:
            body = device_attribute("device_id", arrays.device_id, device_attribute("device_type", IntImm("int32", device), body))
        # From the inside out: arguments are bound before arrays, whose fields are read through them.
        for around in reversed([*self._arguments(), *arrays.bindings]):
            body = around(body)
        params = (self._args, self._codes, self._count, self._value, self._value_code, self._resource)
        free = [var.name for var in undefined_vars(body, params)]
        if free:
            raise LoweringError(f"MakePackedAPI: function {self._name} uses {', '.join(free)}, which no argument gives")
        return for_host(replace(func, params=params, buffer_map={}, body=body), self._host, calling_conv=C_PACKED_FUNC)

    def _arguments(self) -> list[Around]:
        """What checks the arguments and gives the parameters their values."""
        params, name = self._func.params, self._name
        found: list[Around] = [asserting(compare(EQ, self._count, len(params)), f"{name}: num_args should be {len(params)}")]
        if params:
            found.append(asserting(~is_null(self._args), f"{name}: TVMValue* arg pointer was NULL"))
            found.append(asserting(~is_null(self._codes), f"{name}: int* type_codes was NULL"))
        codes = decl_buffer((len(params),), "int32", "arg_type_ids", data=self._codes)
        found.append(lambda body: DeclBuffer(codes, body))
        for number, param in enumerate(params):
            kinds, words = _kinds(param)
            code = Var(f"{param.name}_code", "int32")
            found.append(letting(code, BufferLoad(codes, (IntImm("int32", number),))))
            is_one = any_of(*(compare(EQ, code, int(kind)) for kind in kinds))
            found.append(asserting(is_one, f"{name}: Expect arg[{number}] to be {words}"))
        for number, param in enumerate(params):
            wide = _wide(param.dtype)
            content = get(self._args, number, Field.CONTENT, wide)
            found.append(letting(param, content if wide == param.dtype else cast(content, param.dtype)))
        return found

    def _returning(self, body: Stmt) -> Stmt:
        """The body with what it returns stored where the caller looks."""

        def rewrite(stmt: Stmt) -> Stmt:
            if not (isinstance(stmt, Evaluate) and isinstance(stmt.value, Call) and stmt.value.op == "tir.ret"):
                return map_stmt(stmt, rewrite)
            value = stmt.value.args[0]
            wide = _wide(value.dtype)
            code = {"handle": ArgCode.HANDLE, "float64": ArgCode.FLOAT}.get(wide, ArgCode.INT)
            there = decl_buffer((1,), wide, "out_ret_value", data=self._value, strides=(1,))
            kind = decl_buffer((1,), "int32", "out_ret_tcode", data=self._value_code, strides=(1,))
            zero = (IntImm("int32", 0),)
            stored = BufferStore(there, value if wide == value.dtype else Cast(wide, value), zero)
            return seq(stored, BufferStore(kind, IntImm("int32", int(code)), zero), success())

        return rewrite(body)


def _wide(dtype: str) -> str:
    """The dtype that a value of an argument is kept as."""
    kind = parse_dtype(dtype)
    if dtype == "handle":
        return dtype
    return "float64" if kind.is_float else "int64"


def _kinds(param: Var) -> tuple[tuple[ArgCode, ...], str]:
    """The codes that an argument may have, and what that is called."""
    if param.dtype == "handle":
        return _POINTERS, "pointer"
    if param.dtype == "bool":
        return (ArgCode.BOOL, ArgCode.INT), "boolean"
    return ((ArgCode.FLOAT,), "float") if parse_dtype(param.dtype).is_float else ((ArgCode.INT, ArgCode.BOOL), "int")


def asserting(condition: PrimExpr, message: str) -> Around:
    """An assertion around what follows."""
    return lambda body: AssertStmt(condition, StringImm(message), body)


def letting(var: Var, value: PrimExpr) -> Around:
    """A binding around what follows."""
    return lambda body: LetStmt(var, value, body)
