"""CanonicalizeBindings: variables that are others go, elements of known tuples are these, outputs that nobody needs are none.

y: R.Tensor((a, 4)) = R.match_cast(x, R.Tensor((a, 4)))    with x of (n, 4): y is x, and a is n
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ...errors import DeclarationError
from ...lower.passes import ModulePass
from ...tir.expr import PrimExpr
from ...tir.expr import Var as Symbol
from ..expr import (
    Binding,
    BindingBlock,
    Constant,
    DataflowBlock,
    DataflowVar,
    Function,
    MatchCast,
    SeqExpr,
    Tuple,
    TupleGetItem,
    Var,
    VarBinding,
)
from ..extents import readable
from ..relations import same_extents
from ..struct_info import PrimStructInfo, RelaxExpr, ShapeStructInfo, StructInfo, TensorStructInfo, TupleStructInfo, symbols_of
from ..visitor import Mutator, operands, walk
from .passes import each_function


def used_outside(func: Any) -> set[Var]:
    """The variables that are used outside of the blocks that define them; values of sequences are."""
    found: set[Var] = set()
    home: dict[Var, BindingBlock] = {}
    sequences = [node for node in walk(func) if isinstance(node, SeqExpr)]
    for block in (block for sequence in sequences for block in sequence.blocks):
        home.update((binding.var, block) for binding in block.bindings)
    for sequence in sequences:
        found.update(_variables(sequence.body))
        for block in sequence.blocks:
            found.update(var for binding in block.bindings for var in _variables(binding.value) if home.get(var) is not block)
    return found


def _variables(expr: Any) -> Iterator[Var]:
    """The variables of an expression, sequences inside of it aside."""
    if isinstance(expr, Var):
        yield expr
    elif not isinstance(expr, SeqExpr):
        for operand in operands(expr):
            yield from _variables(operand)


def _length(expr: RelaxExpr) -> int:
    info = expr.struct_info
    return len(info.fields) if isinstance(info, TupleStructInfo) else -1


class _Canonical(Mutator):
    """Rewrites one function."""

    def __init__(self, func: Any) -> None:
        super().__init__()
        self._outside = used_outside(func)
        self._bound: dict[Var, Any] = {}
        self._constants: dict[Var, Constant] = {}
        self._is_operand = False
        self._defined: set[Symbol] = set()
        self._is_dataflow = False

    def function(self, func: Function) -> Function:
        """The function; symbols of its parameters have values."""
        self._defined.update(symbol for param in func.params for symbol in symbols_of(param.struct_info))
        return super().function(func)

    def visit(self, expr: Any) -> Any:
        """An expression; operands that are constants are these, and results keep their variables."""
        if isinstance(expr, Var):
            return self._constants[expr] if self._is_operand and expr in self._constants else super().visit(expr)
        if not isinstance(expr, SeqExpr):
            return super().visit(expr)
        # What a branch says of its symbols is for itself.
        outer = self._is_operand, self._symbols, self._defined
        self._is_operand, self._symbols, self._defined = False, dict(self._symbols), set(self._defined)
        made = super().visit(expr)
        self._is_operand, self._symbols, self._defined = outer
        return made

    def rewrite(self, expr: Any) -> Any:
        """Elements of known tuples, and a tuple that is made of all elements of another one."""
        tuple_value: Any = expr.tuple_value if isinstance(expr, TupleGetItem) else None
        if isinstance(self._bound.get(tuple_value), Tuple):
            return self._bound[tuple_value].fields[expr.index]
        if isinstance(expr, Tuple) and expr.fields:
            parts = [self._bound.get(field) if isinstance(field, Var) else None for field in expr.fields]
            whole = parts[0].tuple_value if isinstance(parts[0], TupleGetItem) else None
            is_whole = all(isinstance(p, TupleGetItem) and p.tuple_value is whole and p.index == n for n, p in enumerate(parts))
            if whole is not None and is_whole and _length(whole) == len(parts):
                return whole
        return expr

    def define(self, var: Var, info: StructInfo) -> Var:
        """The variable in place of one; an output that is used in its block alone ends with it."""
        if self._is_dataflow and not isinstance(var, DataflowVar) and var not in self._outside:
            self._variables[var] = made = DataflowVar(var.name_hint, info)
            return made
        return super().define(var, info)

    def binding(self, binding: Binding) -> list[Binding]:
        """The binding, or none if its variable is another one."""
        self._is_operand = True
        if isinstance(binding, MatchCast):
            self._learn(binding.struct_info, self.visit(binding.value).struct_info)
        (made,) = super().binding(binding)
        self._is_operand = False
        # A cast that says something new is a check, and stays.
        is_sure = not isinstance(made, MatchCast) or made.struct_info == made.value.struct_info
        if is_sure and isinstance(made.value, Var) and (isinstance(made.var, DataflowVar) or not isinstance(made.value, DataflowVar)):
            self._variables[binding.var] = made.value
            return []
        made = VarBinding(made.var, made.value) if is_sure else made
        # Readers get the constant itself; a variable that outlives its block may be a result.
        if is_sure and isinstance(made.value, Constant):
            self._constants[binding.var] = made.value
            if isinstance(made.var, DataflowVar):
                return []
        self._bound[made.var] = made.value
        return [made]

    def _learn(self, stated: StructInfo, known: StructInfo) -> None:
        """Take the extents of a value for symbols that a match_cast gives their values.

        Raises:
            DeclarationError: if two casts say that a symbol is two numbers.
        """
        if isinstance(stated, TupleStructInfo) and isinstance(known, TupleStructInfo):
            for one, other in zip(stated.fields, known.fields, strict=False):
                self._learn(one, other)
            return
        for own, extent in zip(_extents(stated), _extents(known), strict=False):
            if not isinstance(own, Symbol):
                continue
            if own in self._symbols and same_extents(self._symbols[own], extent) is False:
                raise DeclarationError(readable(f"{own} is {self._symbols[own]} by one match_cast and {extent} by another"))
            if own not in self._defined and own is not extent:
                self._symbols[own] = extent
        # Without a known extent, the call that gives it does.
        self._defined.update(symbols_of(stated))

    def block(self, block: BindingBlock) -> BindingBlock:
        """A block; variables that are outputs under another name are these outputs."""
        outer, self._is_dataflow = self._is_dataflow, isinstance(block, DataflowBlock)
        made = super().block(block)
        self._is_dataflow = outer
        return self._outputs(made) if isinstance(block, DataflowBlock) else made

    def _outputs(self, block: BindingBlock) -> BindingBlock:
        own = {binding.var for binding in block.bindings}
        names: dict[Var, Var] = {}
        for binding in block.bindings:
            inner, var = binding.value, binding.var
            is_alias = isinstance(inner, DataflowVar) and inner in own and not isinstance(binding, MatchCast)
            if is_alias and inner not in names and not isinstance(var, DataflowVar) and inner.struct_info == var.struct_info:
                names[inner] = var
        if not names:
            return block
        renamer = Mutator(names)
        new: list[Binding] = []
        for binding in block.bindings:
            # A second output of one value goes: its readers get the first.
            if binding.value in names:
                self._variables[binding.var] = names[binding.value]
            else:
                var, value = names.get(binding.var, binding.var), renamer.visit(binding.value)
                new.append(MatchCast(var, value, binding.struct_info) if isinstance(binding, MatchCast) else VarBinding(var, value))
                self._bound[var] = value
        return type(block)(tuple(new))


def _extents(info: StructInfo) -> Sequence[PrimExpr]:
    match info:
        case TensorStructInfo():
            return info.extents or ()
        case ShapeStructInfo():
            return info.values or ()
        case PrimStructInfo():
            return () if info.value is None else (info.value,)
    return ()


def canonical(func: Function) -> Function:
    """A function without variables that are others."""
    return _Canonical(func).function(func)


def CanonicalizeBindings() -> ModulePass:
    """A pass: variables that are others, elements of known tuples and casts that say nothing new go."""
    return each_function("CanonicalizeBindings", lambda func, mod: canonical(func))
