"""One dataflow block of a function changed step by step."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ..errors import DeclarationError
from ..tir.function import IRModule
from .analysis import is_pure, remove_all_unused, udchain
from .block_builder import BlockBuilder
from .expr import Binding, DataflowBlock, DataflowVar, Function, RelaxExpr, SeqExpr, Var, VarBinding
from .struct_info import StructInfo
from .visitor import Mutator


class DataflowBlockRewrite:
    """Changes of a dataflow block; `mutated_root_fn` is the function with all of them.

    Args:
        dfb: the block.
        root_fn: the function to whose body it belongs.

    Raises:
        DeclarationError: if it doesn't.
    """

    def __init__(self, dfb: DataflowBlock, root_fn: Function) -> None:
        places = [number for number, block in enumerate(root_fn.body.blocks) if block is dfb]
        if not places:
            raise DeclarationError("the dataflow block is none of the blocks of that function's body")
        self._place, self._original, self._root = places[0], root_fn, root_fn
        # It is told the names that are there, so that those it gives are new.
        self._names = BlockBuilder()
        for binding in root_fn.body.bindings():
            self._names.get_unique_name(binding.var.name_hint)

    def mutated_dfb(self) -> DataflowBlock:
        """The block as it is now."""
        found: DataflowBlock = self._root.body.blocks[self._place]
        return found

    def mutated_root_fn(self) -> Function:
        """The function as it is now."""
        return self._root

    def mutate_irmodule(self, irmodule: IRModule) -> IRModule:
        """A module with the function as it is now in place of what it was.

        Raises:
            DeclarationError: if the module hasn't got the function.
        """
        made = irmodule.clone()
        functions: list[Any] = irmodule.functions_items()
        for var, func in functions:
            if func is self._original:
                made.update_func(var, self._root)  # type: ignore[arg-type]
                return made
        raise DeclarationError("the module hasn't got the function whose block was changed")

    def replace_all_uses(self, old_var: Var, new_var: Var) -> None:
        """Use another variable wherever one was used."""
        mutator = _Uses(old_var, new_var)
        blocks = tuple(map(mutator.block, self._root.body.blocks))
        self._root = replace(self._root, body=SeqExpr(blocks, mutator.visit(self._root.body.body)))

    def add_binding(self, binding: Binding) -> None:
        """Add a binding at the end of the block."""
        self._set((*self.mutated_dfb().bindings, binding))

    def add(self, expr: RelaxExpr | Binding, name: str | None = None, is_dfvar: bool = False) -> None:
        """Add a binding, or a variable for an expression, at the end of the block.

        Args:
            expr: the binding or expression.
            name: what the variable is called; one that is free if None.
            is_dfvar: whether the variable ends with the block.
        """
        if isinstance(expr, Binding):
            self.add_binding(expr)
            return
        called = self._names.get_unique_name(name or ("lv" if is_dfvar else "gv"))
        self.add_binding(VarBinding((DataflowVar if is_dfvar else Var)(called, expr.struct_info), expr))

    def remove_unused(self, var: Var, allow_undef: bool = False) -> None:
        """Remove the binding of a variable that nothing uses.

        Args:
            var: the variable.
            allow_undef: let there be no such variable.

        Raises:
            DeclarationError: if there is none, or it is used.
        """
        bindings = self.mutated_dfb().bindings
        if all(binding.var is not var for binding in bindings):
            if allow_undef:
                return
            raise DeclarationError(f"the dataflow block has no variable {var.name_hint}")
        users = [one.name_hint for one in udchain(self.mutated_dfb()).get(var, [])]
        if users or not isinstance(var, DataflowVar):
            raise DeclarationError(f"variable {var.name_hint} is used by {', '.join(users) or 'what follows the block'}")
        self._set(tuple(binding for binding in bindings if binding.var is not var))

    def remove_all_unused(self) -> None:
        """Remove what nothing uses from the block."""
        # Of the whole function, as what follows counts; only this block changes.
        used = {binding.var for binding in remove_all_unused(self._root).body.bindings()}
        self._set(tuple(b for b in self.mutated_dfb().bindings if b.var in used or not is_pure(b.value)))

    def _set(self, bindings: tuple[Binding, ...]) -> None:
        blocks = list(self._root.body.blocks)
        blocks[self._place] = DataflowBlock(bindings)
        self._root = replace(self._root, body=SeqExpr(tuple(blocks), self._root.body.body))


class _Uses(Mutator):
    """Replaces the uses of a variable, not where it is defined."""

    def __init__(self, old: Var, new: Var) -> None:
        super().__init__({old: new})
        self._old, self._new = old, new

    def define(self, var: Var, info: StructInfo) -> Var:
        """As of other variables; the old one's uses are the new one's after it is defined, too."""
        made = super().define(var, info)
        self._variables[self._old] = self._new
        return made
