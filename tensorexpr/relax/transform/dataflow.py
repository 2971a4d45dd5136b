"""ConvertToDataflow and ToNonDataflow: bindings without effects in blocks of their own, and back."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ...errors import DeclarationError
from ...lower.passes import ModulePass
from ..analysis import is_pure
from ..expr import Binding, BindingBlock, DataflowBlock, DataflowVar, Function, If, SeqExpr, Var
from ..struct_info import StructInfo
from ..visitor import Mutator
from .canonicalize import used_outside
from .passes import each_function


class _NonDataflow(Mutator):
    """Variables that are visible everywhere, in plain blocks."""

    def define(self, var: Var, info: StructInfo) -> Var:
        """A plain variable."""
        if not isinstance(var, DataflowVar):
            return super().define(var, info)
        self._variables[var] = made = Var(var.name_hint, info)
        return made

    def rewrite(self, expr: Any) -> Any:
        """A sequence with one block of bindings."""
        if not isinstance(expr, SeqExpr) or (len(expr.blocks) < 2 and not any(isinstance(b, DataflowBlock) for b in expr.blocks)):
            return expr
        return SeqExpr((BindingBlock(tuple(expr.bindings())),), expr.body)


def without_dataflow(func: Function) -> Function:
    """A function whose bindings all stand in plain blocks."""
    return _NonDataflow().function(func)


class _Demoter(Mutator):
    """Variables that are used in their dataflow blocks alone, as such."""

    def __init__(self, outside: set[Var]) -> None:
        super().__init__()
        self._outside = outside
        self._in_dataflow = False

    def block(self, block: BindingBlock) -> BindingBlock:
        """A block; in one without effects, variables end with it if they can."""
        outer, self._in_dataflow = self._in_dataflow, isinstance(block, DataflowBlock)
        made = super().block(block)
        self._in_dataflow = outer
        return made

    def define(self, var: Var, info: StructInfo) -> Var:
        """A variable that ends with its block if nothing outside uses it."""
        if isinstance(var, DataflowVar) or not self._in_dataflow or var in self._outside:
            return super().define(var, info)
        self._variables[var] = made = DataflowVar(var.name_hint, info)
        return made


class _Converter(Mutator):
    """Sequences whose runs of bindings without effects are blocks."""

    def __init__(self, min_size: int) -> None:
        super().__init__()
        self._min_size = min_size

    def rewrite(self, expr: Any) -> Any:
        """A sequence in such blocks."""
        if not isinstance(expr, SeqExpr) or all(isinstance(block, DataflowBlock) for block in expr.blocks):
            return expr
        return SeqExpr(tuple(self._blocks(expr)), expr.body)

    def _blocks(self, sequence: SeqExpr) -> Iterable[BindingBlock]:
        plain: list[Binding] = []
        for run, was_dataflow in _runs(sequence):
            # What was a dataflow block stays one, however short it is.
            if was_dataflow or (run and _is_free(run[0]) and len(run) >= self._min_size):
                if plain:
                    yield BindingBlock(tuple(plain))
                    plain = []
                yield DataflowBlock(tuple(run))
            else:
                plain += run
        if plain:
            yield BindingBlock(tuple(plain))


def _is_free(binding: Binding) -> bool:
    """Whether a binding may stand in a dataflow block."""
    return not isinstance(binding.value, (If, Function, SeqExpr)) and is_pure(binding.value)


def _runs(sequence: SeqExpr) -> Iterable[tuple[Sequence[Binding], bool]]:
    """Runs of bindings that are all without effects, or none of them; and whether one was in a dataflow block."""
    run: list[Binding] = []
    was_dataflow = False
    for block in sequence.blocks:
        for binding in block.bindings:
            if run and _is_free(run[-1]) != _is_free(binding):
                yield run, was_dataflow
                run, was_dataflow = [], False
            run.append(binding)
            was_dataflow |= isinstance(block, DataflowBlock)
    if run:
        yield run, was_dataflow


def as_dataflow(func: Function, min_size: int = 2) -> Function:
    """A function whose runs of bindings without effects are dataflow blocks."""
    made = _Converter(min_size).function(func)
    return _Demoter(used_outside(made)).function(made)


def ConvertToDataflow(min_size: int = 2) -> ModulePass:
    """A pass: runs of bindings without effects become dataflow blocks.

    Args:
        min_size: bindings that a run has at least.

    Raises:
        DeclarationError: for a size below 1.
    """
    if min_size < 1:
        raise DeclarationError(f"ConvertToDataflow: a block has at least 1 binding, not {min_size}")
    return each_function("ConvertToDataflow", lambda func, mod: as_dataflow(func, min_size))


def ToNonDataflow() -> ModulePass:
    """A pass: dataflow blocks become plain ones."""
    return each_function("ToNonDataflow", lambda func, mod: without_dataflow(func))
