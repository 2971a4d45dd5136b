"""Functions of graphs made by calls: `bb.function`, `bb.dataflow`, `bb.emit`."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partialmethod
from typing import Any

from ..errors import DeclarationError
from ..tir.attrs import FrozenMap
from ..tir.function import GlobalVar, IRModule, PrimFunc
from ..tir.op_registry import Op
from ..tir.returned import returned_dtype
from ..tir.structural import structural_equal
from .expr import (
    Binding,
    BindingBlock,
    Call,
    Constant,
    DataflowBlock,
    DataflowVar,
    Function,
    If,
    MatchCast,
    PrimValue,
    RelaxExpr,
    SeqExpr,
    Tuple,
    TupleGetItem,
    Var,
    VarBinding,
    convert_to_expr,
)
from .relations import returned, without_symbols
from .struct_info import (
    FuncStructInfo,
    ObjectStructInfo,
    PrimStructInfo,
    ShapeExpr,
    StructInfo,
    TupleStructInfo,
    symbols_of,
)
from .tensor_function import outline, tensor_function

_LEAVES = (Var, Constant, ShapeExpr, PrimValue, GlobalVar)


class _Current(threading.local):
    """The builders whose functions are open in a thread, innermost last."""

    def __init__(self) -> None:
        self.builders: list[BlockBuilder] = []


_CURRENT = _Current()


class BlockBuilder:
    """Makes a module. In `with bb.function("main", [x]):` values are emitted, and `bb.emit_func_output` ends it.

    Args:
        mod: functions that are there already.
    """

    def __init__(self, mod: IRModule | None = None) -> None:
        self._module = IRModule() if mod is None else mod.clone()
        self._blocks: list[BindingBlock] = []
        self._open: list[list[Binding]] = []
        self._is_dataflow: list[bool] = []
        self._names: set[str] = {var.name_hint for var in self._module.get_global_vars()}
        self._values: dict[Var, Any] = {}
        self._function: dict[str, Any] | None = None
        self._shared: dict[int, Var] | None = None

    @staticmethod
    def over(mod: IRModule) -> BlockBuilder:
        """A builder that adds functions to a module itself, as passes do."""
        made = BlockBuilder()
        made._module, made._names = mod, {var.name_hint for var in mod.get_global_vars()}
        return made

    @staticmethod
    def current() -> BlockBuilder | None:
        """The builder whose function is open."""
        return _CURRENT.builders[-1] if _CURRENT.builders else None

    def get_unique_name(self, name_prefix: str) -> str:
        """A name that none was given yet: the prefix, or with a number behind it."""
        base = re.sub(r"\W", "_", name_prefix) or "v"
        name, number = base, 0
        while name in self._names:
            number += 1
            name = f"{base}{number}"
        self._names.add(name)
        return name

    @contextmanager
    def function(
        self,
        name: str,
        params: Var | Sequence[Var] | None = None,
        attrs: Mapping[str, Any] | None = None,
        pure: bool = True,
        private: bool = False,
    ) -> Iterator[None]:
        """The function that is made inside. One inside of another is a function of its own, and the other one goes on behind it.

        Args:
            name: of it.
            params: its parameters; may be stated by `emit_func_output` instead.
            attrs: such as {"num_input": 1}.
            pure: whether calls of it have no effect but their value.
            private: not visible outside of the module.

        Raises:
            DeclarationError: without an output at its end.
        """
        outer = self._function, self._blocks, self._open, self._is_dataflow
        # From the beginning on: a tensor function that is made inside, of topi.add in "add", would be replaced by this one at its end.
        self._names.add(name)
        listed = [params] if isinstance(params, Var) else list(params) if params is not None else None
        self._function = {"name": name, "params": listed, "attrs": dict(attrs or {}), "pure": pure, "private": private, "done": False}
        self._blocks, self._open, self._is_dataflow = [], [[]], [False]
        _CURRENT.builders.append(self)
        try:
            yield
            if not self._function["done"]:
                raise DeclarationError(f"function {name!r} has no result: end it with bb.emit_func_output(value)")
        finally:
            _CURRENT.builders.pop()
            self._function, self._blocks, self._open, self._is_dataflow = outer

    def testing_scope(self, def_vars: Sequence[Any]) -> Any:
        """A function for tests, whose variables and symbols are `def_vars`."""
        return self.function("main", [var for var in def_vars if isinstance(var, Var)])

    @contextmanager
    def dataflow(self) -> Iterator[None]:
        """A dataflow block: what is emitted inside has no effect, and ends with it unless `emit_output` says otherwise."""
        self._scope()
        self._close()
        self._open.append([])
        self._is_dataflow.append(True)
        yield
        bindings = self._open.pop()
        self._is_dataflow.pop()
        if bindings:
            self._blocks.append(DataflowBlock(tuple(bindings)))

    def current_block_is_dataflow(self) -> bool:
        """Whether a dataflow block is open."""
        return bool(self._is_dataflow) and self._is_dataflow[-1]

    def _scope(self) -> None:
        if not self._open:
            raise DeclarationError("no function is open: values are emitted in `with bb.function(name, params):`")

    def _close(self) -> None:
        """End the block of bindings that is open."""
        if self._open[-1]:
            self._blocks.append(BindingBlock(tuple(self._open[-1])))
            self._open[-1] = []

    def emit(self, expr: Any, name_hint: str = "") -> Var:
        """A variable for the value of an expression; the bindings of a sequence come before it.

        Raises:
            DeclarationError: outside of functions, or for operands that don't fit.
        """
        return self.bind(self.normalize(self._spliced(convert_to_expr(expr))), name_hint, self.current_block_is_dataflow())

    def emit_output(self, output: Any, name_hint: str = "") -> Var:
        """A variable that outlives its dataflow block.

        Raises:
            DeclarationError: outside of dataflow blocks.
        """
        if not self.current_block_is_dataflow():
            raise DeclarationError("emit_output stands in `with bb.dataflow():`")
        return self.bind(self.normalize(self._spliced(convert_to_expr(output))), name_hint or "gv", False)

    def bind(self, value: Any, name_hint: str, in_dataflow: bool, info: StructInfo | None = None, var: Var | None = None) -> Var:
        """A variable for a normalized value: of its own, or `var`; of which `info` is known, or what is known of the value."""
        self._scope()
        if var is None:
            name = self.get_unique_name(name_hint or ("lv" if in_dataflow else "gv"))
            var = (DataflowVar if in_dataflow else Var)(name, info or value.struct_info)
        self._open[-1].append(VarBinding(var, value))
        self._values[var] = value
        return var

    def free_name(self, name: str) -> None:
        """Let a name be given again: two variables may have one, as none is known by it."""
        self._names.discard(name)

    def begin_scope(self, params: Sequence[Var] | None = None) -> Any:
        """Begin a sequence of bindings, as of a branch; `end_scope` takes what is returned."""
        outer = self._blocks, self._open, self._is_dataflow
        self._blocks, self._open, self._is_dataflow = [], [[]], [False]
        return outer

    def end_scope(self, outer: Any) -> tuple[BindingBlock, ...]:
        """The blocks of the sequence, which ends."""
        self._close()
        found = tuple(self._blocks)
        self._blocks, self._open, self._is_dataflow = outer
        return found

    def emit_normalized(self, binding: Binding) -> None:
        """Take over a binding."""
        self._scope()
        self._open[-1].append(binding)
        # A cast is more than its value: nobody may look behind it.
        if not isinstance(binding, MatchCast):
            self._values[binding.var] = binding.value

    def begin_block(self, is_dataflow: bool) -> None:
        """Begin a block by itself, of no function; `end_block` gives it."""
        self._open.append([])
        self._is_dataflow.append(is_dataflow)

    def end_block(self) -> BindingBlock:
        """The block that `begin_block` has begun."""
        return (DataflowBlock if self._is_dataflow.pop() else BindingBlock)(tuple(self._open.pop()))

    # The names by which programs for TVM make single blocks.
    _begin_binding_block = partialmethod(begin_block, False)
    _begin_dataflow_block = partialmethod(begin_block, True)
    _end_block = end_block

    @property
    def values(self) -> Mapping[Var, Any]:
        """What variables are bound to."""
        return self._values

    def match_cast(self, value: Any, struct_info: StructInfo, name_hint: str = "", *, outlives: bool = False) -> Var:
        """A variable for a value that is checked when it runs; symbols that aren't known yet get their values.

        Args:
            value: of any struct info.
            struct_info: what it shall be.
            name_hint: what the variable is called.
            outlives: whether it outlives its dataflow block.
        """
        self._scope()
        in_dataflow = self.current_block_is_dataflow() and not outlives
        name = self.get_unique_name(name_hint or ("lv" if in_dataflow else "gv"))
        var = (DataflowVar if in_dataflow else Var)(name, struct_info)
        self._open[-1].append(MatchCast(var, self.normalize(convert_to_expr(value)), struct_info))
        return var

    def emit_te(self, func: Callable[..., Any], *args: Any, **kwargs: Any) -> Var:
        """A variable for the result of a function on tensors (`te`), which becomes a tensor function of the module.

        Args:
            func: such as `topi.add`: it gets placeholders for tensors, also in lists and dicts, and other arguments as they are.
            args, kwargs: of it. `primfunc_name_hint` names the tensor function, `primfunc_attrs` are attributes of it.

        Raises:
            DeclarationError: if the shape of a tensor isn't known, or it returns no tensor.
        """
        hint = kwargs.pop("name_hint", "")
        return self.emit(self.call_te(func, *args, **kwargs), hint)

    def call_te(self, func: Callable[..., Any], *args: Any, **kwargs: Any) -> Call:
        """As `emit_te`, without a variable for the result."""
        name = kwargs.pop("primfunc_name_hint", None) or getattr(func, "__name__", "fused").strip("<>_")
        attrs = kwargs.pop("primfunc_attrs", None)
        found = tensor_function(func, args, kwargs)
        made = found.func.with_attr(attrs) if attrs else found.func
        callee = self.add_func(made, name)
        extra = (ShapeExpr(found.symbols),) if found.symbols else ()
        return Call(Op.of("relax.call_tir"), (callee, Tuple(tuple(found.args)), *extra), None, found.result)

    def call_te_with_grad(
        self,
        func: Callable[..., Any],
        *args: Any,
        te_grad_name: str,
        te_grad_kwargs: Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> Call:
        """As `call_te`, with the name of a derivative: see `relax.op.call_tir_with_grad`."""
        made = self.call_te(func, *args, **kwargs)
        attrs = {"te_grad_name": te_grad_name, "te_grad_kwargs": FrozenMap(te_grad_kwargs)}
        return Call(Op.of("relax.call_tir_with_grad"), made.args, attrs, made.sinfo_args)

    def emit_func_output(self, output: Any, params: Any = None) -> GlobalVar:
        """End the function with its result.

        Args:
            output: a value, or a tuple or list of values.
            params: the parameters, if `function` wasn't told.

        Raises:
            DeclarationError: outside of functions, without parameters, or with parameters where `function` was told them.
        """
        self._scope()
        state = self._function
        if state is None or state["done"]:
            raise DeclarationError(
                "the function has its result already" if state else "emit_func_output stands in `with bb.function(...):`"
            )
        given = [params] if isinstance(params, Var) else list(params) if params is not None else state["params"]
        if params is not None and state["params"] is not None:
            raise DeclarationError(f"function {state['name']!r} has its parameters already: state them once")
        if given is None:
            raise DeclarationError(f"function {state['name']!r} has no parameters: state them, an empty list for none")
        result = self._outliving(convert_to_expr(output))
        if not isinstance(result, (Var, Tuple, *_LEAVES)):
            result = self.bind(self.normalize(result), "", False)
        self._close()
        attrs = state["attrs"] if state["private"] else {"global_symbol": state["name"], **state["attrs"]}
        state["done"] = True
        body = SeqExpr(tuple(self._blocks), result)
        # Symbols of its inside mean nothing to those who call it.
        info = without_symbols(body.struct_info, {symbol for param in given for symbol in symbols_of(param.struct_info)})
        func = Function(tuple(given), body, info, state["pure"], FrozenMap(attrs))
        self._names.add(state["name"])
        self._module.update_func(state["name"], func)  # type: ignore[arg-type]
        return GlobalVar(state["name"])

    def _outliving(self, result: Any) -> Any:
        """A result in which variables that end with their dataflow block are those that `emit_output` made of them."""
        if isinstance(result, Tuple):
            return Tuple(tuple(map(self._outliving, result.fields)))
        if not isinstance(result, DataflowVar):
            return result
        made = (var for var, value in self._values.items() if value is result and not isinstance(var, DataflowVar))
        return next(made, result)

    def add_func(self, func: Any, func_name: str) -> GlobalVar:
        """Add a function under a free name; the same one twice is one.

        Returns:
            its variable.
        """
        for var, other in self._module.functions_items():
            # The cheap tests first: each new function is compared with all that are there.
            if type(other) is type(func) and var.name_hint.rstrip("0123456789") == re.sub(r"\W", "_", func_name) and _alike(other, func):
                return var
        name = self.get_unique_name(func_name)
        self._module.update_func(name, func)
        return GlobalVar(name)

    def update_func(self, gv: GlobalVar, updated_func: Any) -> None:
        """Replace a function, or add one under a name."""
        self._names.add(gv.name_hint)
        self._module.update_func(gv, updated_func)

    def get(self) -> IRModule:
        """The module as it is now."""
        return self._module

    def finalize(self) -> IRModule:
        """The module."""
        return self._module

    def lookup_binding(self, var: Var) -> Any:
        """What a variable is bound to, or None."""
        return self._values.get(var)

    def normalize(self, expr: Any) -> Any:
        """An expression whose operands are variables, constants or tuples of these, with what is known of its result.

        An operand that stands in it several times is computed once.
        """
        if self._shared is not None:
            return self._normalized(expr)
        with self.sharing():
            return self._normalized(expr)

    @contextmanager
    def sharing(self) -> Iterator[None]:
        """Inside of the `with` block an operand that several values have as one object is computed once. All have to live as long."""
        outer, self._shared = self._shared, {}
        try:
            yield
        finally:
            self._shared = outer

    def _normalized(self, expr: Any) -> Any:
        match expr:
            case Call():
                args = tuple(self._leaf(arg) for arg in expr.args)
                changed = any(a is not b for a, b in zip(args, expr.args, strict=True))
                call = Call(expr.op, args, expr.attrs, expr.sinfo_args) if changed else expr
                return resolved(call, self._module)
            case Tuple(fields):
                leaves = tuple(self._leaf(one) for one in fields)
                return expr if all(a is b for a, b in zip(leaves, fields, strict=True)) else Tuple(leaves)
            case TupleGetItem(value, index):
                leaf = self._leaf(value)
                return expr if leaf is value else TupleGetItem(leaf, index)
            case If(cond, yes, no):
                parts = self._leaf(cond), _sequence(yes), _sequence(no)
                return expr if all(a is b for a, b in zip(parts, (cond, yes, no), strict=True)) else If(*parts)
        return expr

    def _spliced(self, expr: Any) -> Any:
        """The value of a sequence, whose bindings are taken over; those outside of dataflow blocks end the one that is open."""
        # A block by itself has no place for blocks of the other kind: there a sequence stays a value.
        if not isinstance(expr, SeqExpr) or self._function is None:
            return expr
        for block in expr.blocks:
            is_dataflow, inside = isinstance(block, DataflowBlock), self._is_dataflow[-1]
            if is_dataflow is inside:
                for binding in block.bindings:
                    self.emit_normalized(binding)
                continue
            if self._open[-1]:
                self._blocks.append((DataflowBlock if inside else BindingBlock)(tuple(self._open[-1])))
            self._blocks.append(block)
            self._open[-1] = []
            self._values.update((one.var, one.value) for one in block.bindings if not isinstance(one, MatchCast))
        return expr.body

    def _leaf(self, expr: Any) -> Any:
        """An operand that is none of its own."""
        if isinstance(expr, (Call, If, TupleGetItem, SeqExpr)):
            # By identity: the whole expression, which is looked at, holds them all.
            shared = self._shared if self._shared is not None else {}
            if id(expr) not in shared:
                shared[id(expr)] = self.emit(expr)
            return shared[id(expr)]
        return self.normalize(expr) if isinstance(expr, Tuple) else expr


def _alike(a: Any, b: Any) -> bool:
    if isinstance(a, PrimFunc) and outline(a) != outline(b):
        return False
    # A name says nothing of what is computed.
    strip = ("global_symbol",)
    return structural_equal(*(func.with_attrs({k: v for k, v in func.attrs.items() if k not in strip}) for func in (a, b)))


def _sequence(expr: Any) -> SeqExpr:
    return expr if isinstance(expr, SeqExpr) else SeqExpr((), expr)


def resolved(call: Call, mod: IRModule) -> Call:
    """A call of a function of the module, with what that function says of its result.

    Raises:
        DeclarationError: if the module has no such function, or arguments don't fit.
    """
    # A rewriter may have no module: then what a call says of its result stays.
    if not isinstance(call.op, GlobalVar) or call.sinfo_args or (call.op not in mod and "struct_info" in call.__dict__):
        return call
    func: Any = mod[call.op]
    info = func.struct_info if isinstance(func, RelaxExpr) else ObjectStructInfo()
    if isinstance(func, PrimFunc) and len(call.args) == len(func.params):
        # A number, or none: with its results among the arguments, as CallTIRRewrite has it.
        dtype = returned_dtype(func)
        return call.with_struct_info(TupleStructInfo(()) if dtype is None else PrimStructInfo(dtype))
    if not isinstance(info, FuncStructInfo):
        raise DeclarationError(
            f"{call.op.name_hint} is a tensor function: call it by R.call_tir(cls.{call.op.name_hint}, args, out_sinfo=...)"
        )
    return call.with_struct_info(returned(info, [arg.struct_info for arg in call.args], call.op.name_hint))


__all__ = ["BlockBuilder", "resolved"]
