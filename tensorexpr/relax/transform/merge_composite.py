"""MergeCompositeFunctions: calls of composite functions of one code generator become one function with the attribute "Codegen".

lv = fused_conv2d_relu(x, w0)     "Composite": "mine.conv2d_relu"        fused_conv2d_relu_conv2d_relu1_mine(x, w0, w1)
lv1 = fused_conv2d_relu1(lv, w1)                                    ->   "Codegen": "mine", with both as local functions
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any

from ...lower.passes import ModulePass
from ...tir.attrs import FrozenMap
from ...tir.function import GlobalVar, IRModule
from ..expr import Binding, BindingBlock, Call, DataflowBlock, Function, SeqExpr, Var, VarBinding
from ..struct_info import StructInfo
from ..utils import copy_with_new_vars
from ..visitor import Mutator, walk
from .fuse_ops import fused, variables_of
from .fused_functions import PRIMITIVE, Composite
from .passes import graph_pass


class Regions:
    """Bindings that can run together as one, of those with a common target: no other binding is between them.

    Args:
        bindings: each behind those that it reads.
        target_of: the target of a binding; None for those that stay by themselves.
    """

    def __init__(self, bindings: Sequence[Binding], target_of: Callable[[Binding], Hashable]) -> None:
        self.targets = [target_of(binding) for binding in bindings]
        self.of = list(range(len(bindings)))  # the region of each binding, by the number of its first one
        # What each region needs, and what these do in turn, as bits: sets of thousands of numbers for each of thousands fill a memory.
        self._needs = [0] * len(bindings)
        numbers = {binding.var: number for number, binding in enumerate(bindings)}
        for number, binding in enumerate(bindings):
            read = [numbers[var] for var in variables_of(binding.value) if var in numbers]
            for other in {self.of[one] for one in read}:
                self._needs[number] |= self._needs[other] | 1 << other
            for one in read:
                mine, other = self.of[number], self.of[one]
                if self.targets[number] is not None and self.targets[one] == self.targets[number] and mine != other:
                    self._join(mine, other)

    def _join(self, one: int, other: int) -> None:
        """Make two regions one, unless something else is between them."""
        first, second = sorted((one, other))
        pair = 1 << first | 1 << second
        around = (self._needs[first] | self._needs[second]) & ~pair
        for number in set(self.of):
            # What needs one of the two and is needed by the other one would have to run before and behind both.
            if around >> number & 1 and self._needs[number] & pair:
                return
        self.of = [first if region == second else region for region in self.of]
        self._needs[first] = around
        for number in set(self.of) - {first}:
            if self._needs[number] & pair:
                self._needs[number] = (self._needs[number] | around | 1 << first) & ~(1 << second)


def _composite_target(mod: IRModule) -> Callable[[Binding], str | None]:
    """From a binding to the first part of the name of the composite function that it calls."""

    def target_of(binding: Binding) -> str | None:
        call = binding.value
        func: Any = mod[call.op] if isinstance(binding, VarBinding) and isinstance(call, Call) and isinstance(call.op, GlobalVar) else None
        name = func.attrs.get("Composite") if isinstance(func, Function) and "Codegen" not in func.attrs else None
        return None if name is None else str(name).partition(".")[0]

    return target_of


class _Local(Mutator):
    """Puts functions of the module into the function that calls them, each before its first call."""

    def __init__(self, mod: IRModule) -> None:
        super().__init__()
        self._mod = mod
        self._own: dict[str, Var] = {}

    def binding(self, binding: Binding) -> list[Binding]:
        """The binding with a call of a local function, whose own binding stands in front if it is the first one."""
        callee, found = binding.value.op, []
        if callee.name_hint not in self._own:
            func: Any = copy_with_new_vars(self._mod[callee].without_attr(PRIMITIVE).without_attr("global_symbol"))  # type: ignore[arg-type]
            self._own[callee.name_hint] = local = Var(callee.name_hint, func.struct_info)
            found.append(VarBinding(local, func))
        return [*found, *super().binding(binding)]

    def define(self, var: Var, info: StructInfo) -> Var:
        """A variable of the function's own block, which is no dataflow."""
        self._variables[var] = made = var if type(var) is Var else Var(var.name_hint, info)
        return made

    def visit(self, expr: Any) -> Any:
        """An expression; the name of a function is the variable of the local one."""
        return self._own.get(expr.name_hint, expr) if isinstance(expr, GlobalVar) else super().visit(expr)

    def block(self, block: BindingBlock) -> BindingBlock:
        """The block, not as dataflow, which can't hold functions."""
        return BindingBlock(tuple(made for binding in block.bindings for made in self.binding(binding)))


def for_generator(func: Function, name: str, mod: IRModule) -> Function:
    """A function of calls of composite functions as its code generator gets it: with these as local functions, under its name."""
    local = _Local(mod)
    blocks = tuple(map(local.block, func.body.blocks))
    attrs = FrozenMap({**func.without_attr(PRIMITIVE).attrs, "global_symbol": name})
    return Function(func.params, SeqExpr(blocks, local.visit(func.body.body)), func.ret_struct_info, func.is_pure, attrs)


def MergeCompositeFunctions() -> ModulePass:
    """A pass: calls of composite functions whose names begin alike ("mine.conv2d", "mine.relu") become functions with "Codegen": "mine".

    `FuseOpsByPattern` makes composite functions; `RunCodegen` gives what this pass makes to the generator "mine". A group has as many
    calls as can run at once: none of another group is between them.
    """

    def run(mod: IRModule) -> IRModule:
        target_of = _composite_target(mod)

        def partition(block: DataflowBlock, made: IRModule, leaves: set[Var]) -> Sequence[Any]:
            regions = Regions(block.bindings, target_of)
            groups: dict[int, Any] = {}
            for region, target in zip(regions.of, regions.targets, strict=True):
                groups.setdefault(region, object() if target is None else Composite({"Codegen": target}, suffix=f"_{target}"))
            return [groups[region] for region in regions.of]

        made = fused(mod, partition)
        new = [(var, func) for var, func in made.functions_items() if isinstance(func, Function) and var.name_hint not in mod]
        for var, func in new:
            made.update_func(var, for_generator(func, var.name_hint, mod))  # type: ignore[arg-type]
        return _without_unused_composites(made) if new else mod

    return graph_pass("MergeCompositeFunctions", run)


def _without_unused_composites(mod: IRModule) -> IRModule:
    graphs = [func for _, func in mod.functions_items() if isinstance(func, Function)]
    called = {node.name_hint for func in graphs for node in walk(func) if isinstance(node, GlobalVar)}
    functions = {var.name_hint: f for var, f in mod.functions_items() if var.name_hint in called or "Composite" not in f.attrs}
    return IRModule(functions, mod.attrs, mod.global_infos)  # type: ignore[arg-type]
