"""FuseOpsByPattern: what patterns match becomes a function of its own, with the attribute "Composite"."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ...dataclass import dataclass, field
from ...errors import DeclarationError
from ...lower.passes import ModulePass
from ...tir.attrs import FrozenMap
from ...tir.function import IRModule
from ..dpl.matcher import Matcher
from ..dpl.pattern import DFPattern
from ..expr import Binding, BindingBlock, Call, DataflowBlock, Function, SeqExpr, Tuple, TupleGetItem, Var, VarBinding
from .fuse_ops import fused, variables_of
from .fused_functions import PRIMITIVE, Composite
from .passes import graph_pass


@dataclass(frozen=True)
class PatternCheckContext:
    """What a check of a match is told.

    Args:
        matched_expr: what the whole pattern matches.
        annotated_expr: what the patterns match that have names.
        matched_bindings: variables that become part of the function -> their values.
        var_usages: variables -> those whose values read them.
        value_to_bound_var: the variables of values, by `id`.
    """

    matched_expr: Any
    annotated_expr: Mapping[str, Any]
    matched_bindings: Mapping[Var, Any]
    var_usages: Mapping[Var, Sequence[Var]]
    value_to_bound_var: Mapping[int, Var]


@dataclass(frozen=True)
class FusionPattern:
    """A pattern and the name of what it matches.

    Args:
        name: such as "mine.dense", whose first part names a code generator.
        pattern: of `relax.dpl`.
        annotation_patterns: parts of it by names, for the check.
        check: whether a match shall become a function; always if None.
        attrs_getter: from the same named parts to further attributes of the function.
    """

    name: str
    pattern: DFPattern
    annotation_patterns: Mapping[str, DFPattern] = field(default_factory=dict)
    check: Callable[[PatternCheckContext], bool] | None = None
    attrs_getter: Callable[[Mapping[str, Any]], Mapping[str, Any]] | None = None

    @staticmethod
    def of(given: Any) -> FusionPattern:
        """A pattern that is one, or a tuple of its parts.

        Raises:
            DeclarationError: for anything else.
        """
        if isinstance(given, FusionPattern):
            return given
        if not isinstance(given, tuple) or len(given) not in (2, 3, 4) or not isinstance(given[1], DFPattern):
            raise DeclarationError(f"FuseOpsByPattern: (name, pattern), with named parts and a check if wanted, not {given!r}")
        if len(given) == 3 and callable(given[2]):
            return FusionPattern(given[0], given[1], {}, given[2])
        return FusionPattern(given[0], given[1], *given[2:])


class _Partition:
    """The groups of a block, pattern by pattern."""

    def __init__(self, block: DataflowBlock, leaves: set[Var], bind_constants: bool, for_codegen: bool) -> None:
        self._bindings, self._leaves, self._bind_constants, self._for_codegen = block.bindings, leaves, bind_constants, for_codegen
        self._values = {binding.var: binding.value for binding in block.bindings}
        self._places = {binding.var: n for n, binding in enumerate(block.bindings)}
        self._readers: dict[Var, list[int]] = {}
        for n, binding in enumerate(block.bindings):
            for var in variables_of(binding.value):
                self._readers.setdefault(var, []).append(n)
        # Each binding is a group by itself until a pattern takes it.
        self.groups: list[Any] = [object() for _ in block.bindings]
        self._taken: set[int] = set()

    def run(self, pattern: FusionPattern) -> None:
        """Group what a pattern matches, from the last binding on, so that the larger match of two comes first."""
        for number in reversed(range(len(self._bindings))):
            binding = self._bindings[number]
            if number in self._taken or not isinstance(binding, VarBinding):
                continue
            found = Matcher(self._values).extract(pattern.pattern, binding.value)
            members = None if found is None else self._members(number, found)
            if found is None or members is None:
                continue
            context = self._context(binding, found, members, pattern)
            if pattern.check is not None and not pattern.check(context):
                continue
            more = dict(pattern.attrs_getter(context.annotated_expr)) if pattern.attrs_getter is not None else {}
            suffix = f"_{_generator(pattern.name)}" if self._for_codegen else ""
            group = Composite({**more, "Composite": pattern.name}, self._bind_constants, suffix)
            self._taken.update(members)
            for member in members:
                self.groups[member] = group

    def _members(self, root: int, found: Mapping[DFPattern, Any]) -> list[int] | None:
        """The bindings of a match; None if one is taken, or read outside before the last one."""
        # By identity: calls of equal structure may be bound twice, and one of them is matched.
        matched = {id(value) for value in found.values() if isinstance(value, (Call, Tuple, TupleGetItem))}
        members = {root} | {n for n, binding in enumerate(self._bindings) if id(binding.value) in matched}
        if not members.isdisjoint(self._taken):
            return None
        for n in members - {root}:
            var = self._bindings[n].var
            if var in self._leaves or not members.issuperset(self._readers.get(var, ())):
                return None
        return sorted(members)

    def _context(
        self, binding: Binding, found: Mapping[DFPattern, Any], members: Sequence[int], pattern: FusionPattern
    ) -> PatternCheckContext:
        named = {name: found[one] for name, one in pattern.annotation_patterns.items() if one in found}
        usages = {var: [self._bindings[n].var for n in readers] for var, readers in self._readers.items()}
        own = {self._bindings[n].var: self._bindings[n].value for n in members}
        return PatternCheckContext(binding.value, named, own, usages, {id(value): var for var, value in self._values.items()})


def _generator(composite: str) -> str:
    """The code generator that the name of a pattern begins with."""
    return composite.partition(".")[0]


def _for_codegen(func: Function, symbol: str) -> Function:
    """A function around a composite one, which names its code generator."""
    name = _generator(str(func.attrs["Composite"]))
    params = tuple(Var(param.name_hint, param.struct_info) for param in func.params)
    inner = func.without_attr(PRIMITIVE)
    local = Var("local_func", inner.struct_info)
    output = Var("output", func.ret_struct_info)
    call = Call(local, params, None, None, func.ret_struct_info)
    body = SeqExpr((BindingBlock((VarBinding(local, inner), VarBinding(output, call))),), output)
    return Function(params, body, func.ret_struct_info, func.is_pure, FrozenMap({"Codegen": name, "global_symbol": symbol}))


def FuseOpsByPattern(
    patterns: Sequence[Any], bind_constants: bool = True, annotate_codegen: bool = False, entry_functions: Sequence[str] | None = None
) -> ModulePass:
    """A pass: calls that a pattern matches become a private function with the attributes "Composite", the pattern's name, and "Primitive".

    Such a function is one kernel. A match whose inner values are used outside of it stays.

    Args:
        patterns: `FusionPattern`s or tuples (name, pattern[, named parts][, check]); earlier ones come first.
        bind_constants: whether constants of a match stand in the function, or are its parameters.
        annotate_codegen: put each function into another one with the attribute "Codegen", the first part of the pattern's name.
        entry_functions: the functions to look into; all if None.

    Raises:
        DeclarationError: for what is no pattern, and functions that there aren't.
    """
    wanted = [FusionPattern.of(one) for one in patterns]

    def run(mod: IRModule) -> IRModule:
        for name in entry_functions or ():
            if name not in mod:
                raise DeclarationError(f"FuseOpsByPattern: the module has no function {name!r}")

        def partition(block: DataflowBlock, made: IRModule, leaves: set[Var]) -> Sequence[Any]:
            found = _Partition(block, leaves, bind_constants, annotate_codegen)
            for pattern in wanted:
                found.run(pattern)
            return found.groups

        made = fused(mod, partition, None if entry_functions is None else set(entry_functions))
        for var, func in list(made.functions_items()):
            # Composite functions that were there before keep their form.
            if annotate_codegen and isinstance(func, Function) and "Composite" in func.attrs and var.name_hint not in mod:
                made.update_func(var, _for_codegen(func, var.name_hint))
        return made

    return graph_pass("FuseOpsByPattern", run)
