"""Functions of graphs built by calls, with the words of R: `tensorexpr.script.ir_builder.relax`.

with IRBuilder() as ib:
    with R.function():
        R.func_name("main")
        x = R.arg("x", R.Tensor((16,), "float32"))
        with R.dataflow() as block:
            y = R.emit(R.add(x, x))
            R.output(y)
        R.func_ret_value(block.output_vars[0])
func = ib.get()
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from ..errors import DeclarationError
from ..script.ir_builder.builder import IRBuilder
from ..script.ir_builder.frame import IRBuilderFrame, IRModuleFrame
from ..tir.attrs import FrozenMap
from ..tir.function import IRModule
from . import script
from .block_builder import BlockBuilder
from .expr import BindingBlock, Call, Function, SeqExpr, TupleGetItem, Var, VarBinding, convert_to_expr
from .expr import If as Condition
from .struct_info import StructInfo
from .visitor import Mutator

_Frame = TypeVar("_Frame", bound=IRBuilderFrame)


class _Outliving(Mutator):
    """Variables that outlive their dataflow blocks."""

    def define(self, var: Var, info: StructInfo) -> Var:
        """The variable in place of one that was made in a block."""
        return self._variables.setdefault(var, var)  # type: ignore[no-any-return]


class FunctionFrame(IRBuilderFrame):
    """A function of a graph.

    Args:
        builder: whose frame it is.
        is_pure: whether calls of it have no effect but their value.
        is_private: not visible outside of its module.
    """

    def __init__(self, builder: IRBuilder, is_pure: bool = True, is_private: bool = False) -> None:
        super().__init__(builder)
        self.is_pure, self.is_private = is_pure, is_private
        self.name = ""
        self.params: list[Var] = []
        self.func_attrs: dict[str, Any] = {}
        self.ret_struct_info: StructInfo | None = None
        self.result: Any = None
        self.outputs: dict[Var, Var] = {}
        self.blocks = BlockBuilder()
        self._outer: Any = None

    def opened(self) -> FunctionFrame:
        """The frame; calls in it may name functions that the module has by now."""
        modules = [frame for frame in self.builder.frames if isinstance(frame, IRModuleFrame)]
        known: Any = {name: func for one in modules for name, func in one.functions.items() if func is not None}
        self.blocks = BlockBuilder.over(IRModule(known))
        self._outer = self.blocks.begin_scope()
        return self

    def add(self, item: Any) -> None:
        """Refuse what isn't emitted.

        Raises:
            DeclarationError: always.
        """
        raise DeclarationError(f"a {type(item).__name__} is no part of a function of a graph; R.emit(value) binds a value")

    def closed(self) -> Function:
        """The function.

        Raises:
            DeclarationError: if it has no result.
        """
        if self.result is None:
            raise DeclarationError(f"function {self.name!r} has no result: end it with R.func_ret_value(value)")
        outliving = _Outliving(self.outputs)
        blocks = tuple(map(outliving.block, self.blocks.end_scope(self._outer)))
        self.builder.function_name = self.name
        attrs = {} if self.is_private or not self.name else {"global_symbol": self.name}
        body = SeqExpr(blocks, outliving.visit(self.result))
        return Function(tuple(self.params), body, self.ret_struct_info, self.is_pure, FrozenMap({**attrs, **self.func_attrs}))  # type: ignore[arg-type]


class DataflowFrame(IRBuilderFrame):
    """A dataflow block: `output_vars` are those of its variables that outlive it, once it is left."""

    def __init__(self, builder: IRBuilder) -> None:
        super().__init__(builder)
        self.output_vars: tuple[Var, ...] = ()
        self._open = _frame(FunctionFrame, "R.dataflow").blocks.dataflow()

    def opened(self) -> DataflowFrame:
        """The frame."""
        self._open.__enter__()
        return self

    def closed(self) -> None:
        """Nothing: the block stands in its function."""
        self._open.__exit__(None, None, None)
        outputs = {var: Var(var.name_hint, var.struct_info) for var in self.output_vars}
        _frame(FunctionFrame, "R.dataflow").outputs.update(outputs)
        self.output_vars = tuple(outputs.values())


class BranchFrame(IRBuilderFrame):
    """One branch of a condition, whose value is that of its last binding."""

    def __init__(self, builder: IRBuilder, place: int) -> None:
        super().__init__(builder)
        self._place = place
        self._outer: Any = None

    def opened(self) -> BranchFrame:
        """The frame."""
        self._outer = _frame(FunctionFrame, "R.Then and R.Else").blocks.begin_scope()
        return self

    def closed(self) -> None:
        """Nothing: the branch stands in its condition.

        Raises:
            DeclarationError: for an empty branch.
        """
        blocks: tuple[BindingBlock, ...] = _frame(FunctionFrame, "R.Then and R.Else").blocks.end_scope(self._outer)
        if not blocks:
            raise DeclarationError("a branch has a value, that of its last R.emit, and this one emits nothing")
        _frame(IfFrame, "R.Then and R.Else").branches[self._place] = SeqExpr(blocks, blocks[-1].bindings[-1].var)


class IfFrame(IRBuilderFrame):
    """A condition with its branches; `var` is its value once it is left."""

    def __init__(self, builder: IRBuilder, condition: Any) -> None:
        super().__init__(builder)
        self.condition = convert_to_expr(condition)
        self.branches: dict[int, SeqExpr] = {}
        self.var: Var | None = None

    def opened(self) -> IfFrame:
        """The frame."""
        return self

    def closed(self) -> None:
        """Nothing: the value is bound.

        Raises:
            DeclarationError: without both branches.
        """
        if len(self.branches) != 2:
            raise DeclarationError("R.If has two branches, with R.Then() and with R.Else()")
        taken, other = self.branches[0], self.branches[1]
        self.var = _frame(FunctionFrame, "R.If").blocks.emit(Condition(self.condition, taken, other))


def _frame(kind: type[_Frame], what: str) -> _Frame:
    """The innermost frame of a kind that is open."""
    found = next((one for one in reversed(IRBuilder.current().frames) if isinstance(one, kind)), None)
    if found is None:
        around = "R.If(condition)" if kind is IfFrame else "R.dataflow()" if kind is DataflowFrame else "R.function()"
        raise DeclarationError(f"{what} stands outside of `with {around}:`")
    return found


def function(is_pure: bool = True, is_private: bool = False) -> FunctionFrame:
    """The frame of a function."""
    return FunctionFrame(IRBuilder.current(), is_pure, is_private)


def func_name(name: str) -> None:
    """Name the function, which is its "global_symbol" unless it is private."""
    _frame(FunctionFrame, "R.func_name").name = name


def func_attr(attrs: Mapping[str, Any]) -> None:
    """Add attributes to the function."""
    _frame(FunctionFrame, "R.func_attr").func_attrs.update(attrs)


def func_ret_struct_info(ret_sinfo: StructInfo) -> None:
    """State what the function returns."""
    _frame(FunctionFrame, "R.func_ret_struct_info").ret_struct_info = ret_sinfo


def func_ret_value(value: Any) -> None:
    """End the function with its value.

    Raises:
        DeclarationError: if it has one already.
    """
    frame = _frame(FunctionFrame, "R.func_ret_value")
    if frame.result is not None:
        raise DeclarationError(f"function {frame.name!r} has its result already")
    result = frame.blocks.normalize(convert_to_expr(value))
    frame.result = frame.blocks.bind(result, "", False) if isinstance(result, (Call, TupleGetItem, Condition)) else result


def arg(name: str, struct_info: StructInfo) -> Var:
    """Add a parameter; its variable."""
    made = Var(name, struct_info)
    _frame(FunctionFrame, "R.arg").params.append(made)
    return made


def emit(value: Any, annotate_struct_info: StructInfo | None = None) -> Var:
    """A variable for a value, of which `annotate_struct_info` is known, or what follows."""
    blocks = _frame(FunctionFrame, "R.emit").blocks
    made = blocks.normalize(convert_to_expr(value))
    return blocks.bind(made, "", blocks.current_block_is_dataflow(), annotate_struct_info)


def emit_match_cast(value: Any, struct_info: StructInfo) -> Var:
    """A variable for a value that is checked when it runs; symbols that aren't known yet get their values."""
    return _frame(FunctionFrame, "R.emit_match_cast").blocks.match_cast(value, struct_info)


def emit_var_binding(value: VarBinding) -> Var:
    """Take over a binding; its variable."""
    _frame(FunctionFrame, "R.emit_var_binding").blocks.emit_normalized(value)
    return value.var


def dataflow() -> DataflowFrame:
    """The frame of a dataflow block."""
    return DataflowFrame(IRBuilder.current())


def output(*vars: Var) -> None:
    """Say which variables outlive the dataflow block.

    Raises:
        DeclarationError: outside of one.
    """
    frame = _frame(DataflowFrame, "R.output")
    frame.output_vars = (*frame.output_vars, *vars)


def If(condition: Any) -> IfFrame:
    """The frame of a condition."""
    return IfFrame(IRBuilder.current(), condition)


def Then() -> BranchFrame:
    """The frame of the branch that is taken where the condition holds."""
    return BranchFrame(IRBuilder.current(), 0)


def Else() -> BranchFrame:
    """The frame of the other branch."""
    return BranchFrame(IRBuilder.current(), 1)


__all__ = [
    "BranchFrame", "DataflowFrame", "Else", "FunctionFrame", "If", "IfFrame", "Then", "arg", "dataflow", "emit", "emit_match_cast",
    "emit_var_binding", "func_attr", "func_name", "func_ret_struct_info", "func_ret_value", "function", "output",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    return getattr(script, name)
