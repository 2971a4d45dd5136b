"""LiftTransformParams: what is computed from weights alone becomes a function of its own, which runs once."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ...dataclass import dataclass, replace
from ...errors import DeclarationError
from ...lower.passes import ModulePass
from ...tir.attrs import FrozenMap
from ...tir.expr import PrimExpr
from ...tir.expr import Var as Symbol
from ...tir.function import GlobalVar, IRModule
from ...tir.structural import structural_equal
from ..analysis import definable_tir_vars_in_struct_info, free_symbolic_vars, is_pure, remove_all_unused
from ..expr import Binding, BindingBlock, Call, DataflowBlock, DataflowVar, Function, If, SeqExpr, Tuple, Var, VarBinding
from ..relations import BaseCheckResult, bind_symbols, struct_info_base_check
from ..struct_info import RelaxExpr, symbols_of, with_symbols
from ..utils import copy_with_new_vars
from ..visitor import Mutator, walk
from .canonicalize import canonical
from .dataflow import as_dataflow, without_dataflow
from .parameters import bundled
from .passes import graph_pass

STOP = "relax.builtin.stop_lift_params"


def _variables(expr: Any) -> list[Var]:
    return [node for node in walk(expr) if isinstance(node, Var)]


def _liftable(func: Function) -> tuple[list[Binding], list[Binding]]:
    """Bindings that depend on nothing, and those that depend on weights, and on nothing else."""
    known: set[Var] = set(func.params[int(func.attrs["num_input"]) :])
    sizes = {symbol for weight in known for symbol in definable_tir_vars_in_struct_info(weight.struct_info)}
    alone, found = list[Binding](), list[Binding]()
    free: set[Var] = set()
    for block in func.body.blocks:
        for binding in block.bindings:
            read = set(_variables(binding.value))
            is_plain = isinstance(binding, VarBinding) and not isinstance(binding.value, (If, Function)) and is_pure(binding.value)
            is_stop = isinstance(binding.value, Call) and binding.value.op == STOP
            if not is_plain or is_stop or not sizes.issuperset(_symbols(binding)):
                continue
            if read <= free:
                free.add(binding.var)
                alone.append(binding)
            elif read <= known | free:
                known.add(binding.var)
                found.append(binding)
    return alone, found


def _symbols(binding: Binding) -> set[Any]:
    """The symbols that a binding needs."""
    values = (node for node in walk(binding.value) if isinstance(node, RelaxExpr))
    infos = [binding.var.struct_info, *(one.struct_info for one in values), *getattr(binding.value, "sinfo_args", ())]
    return {symbol for info in infos for symbol in symbols_of(info)}


@dataclass(frozen=True)
class _Lifting:
    """A function, and which of its variables are the weights and the transformed ones of the first function that shares the transform."""

    func: Function
    same: Mapping[Var, Var]

    @property
    def count(self) -> int:
        """Its inputs, which stand in front of its weights."""
        return int(self.func.attrs["num_input"])

    def rest(self) -> Iterator[Binding]:
        """What is left of its bindings."""
        return (binding for binding in self.func.body.bindings() if binding.var not in self.same)

    def reads(self) -> set[Var]:
        """What of the shared variables is read by what is left."""
        read = {var for binding in self.rest() for var in _variables(binding.value)} | set(_variables(self.func.body.body))
        return {self.same[var] for var in read if var in self.same}

    def left(self, kept: Sequence[Var]) -> Function:
        """The function that takes inputs, and what is kept."""
        # Parameters are plain variables; what was computed may have been one of a dataflow block.
        params = {one: Var(one.name_hint, one.struct_info) for one in kept}
        blocks = (type(block)(tuple(b for b in block.bindings if b.var not in self.same)) for block in self.func.body.blocks)
        body = SeqExpr(tuple(map(_without_stops, (block for block in blocks if block.bindings))), self.func.body.body)
        renamed = Mutator({own: params[shared] for own, shared in self.same.items() if shared in params})
        made = renamed.function(replace(self.func, params=self.func.params[: self.count], body=body))
        return replace(made, params=(*made.params, *params.values()))


def _without_stops(block: BindingBlock) -> BindingBlock:
    def plain(binding: Binding) -> Binding:
        value = binding.value
        is_stop = isinstance(binding, VarBinding) and isinstance(value, Call) and value.op == STOP
        return VarBinding(binding.var, value.args[0]) if is_stop else binding

    return type(block)(tuple(map(plain, block.bindings)))


def lifted(functions: Mapping[str, Function]) -> tuple[dict[str, Function], Function]:
    """Functions that take transformed weights, and the one that transforms them for all, from a tuple to a tuple.

    What all of them compute from weights alone is moved.

    Raises:
        DeclarationError: if shapes of weights have symbols that no weight determines, or functions that share a transform have other
            weights.
    """
    (name, first), *others = functions.items()
    weights, (alone, moved) = first.params[int(first.attrs["num_input"]) :], _liftable(first)
    # The transform is called without inputs, which might give symbols their values.
    known_symbols = {symbol for weight in weights for symbol in definable_tir_vars_in_struct_info(weight.struct_info)}
    if open_ := [weight for weight in weights if not known_symbols.issuperset(symbols_of(weight.struct_info))]:
        raise DeclarationError(
            f"LiftTransformParams: {open_[0].name_hint} of {name} is {open_[0].struct_info}, with symbols that no weight determines: "
            "bind these first (BindSymbolicVars)"
        )
    maps: list[dict[Var, Var]] = [{one: one for one in (*weights, *(binding.var for binding in moved))}]
    for other, func in others:
        own = func.params[int(func.attrs["num_input"]) :]
        if len(own) != len(weights) or not all(structural_equal(a.struct_info, b.struct_info) for a, b in zip(own, weights, strict=True)):
            raise DeclarationError(f"LiftTransformParams: {other} has other weights than {name}, with which it shares their transform")
        same = dict(zip(own, weights, strict=True))
        for binding in itertools.chain(*_liftable(func)):
            value = Mutator(same).visit(binding.value)
            found = next((one.var for one in (*alone, *moved) if structural_equal(one.value, value)), None)
            if found is not None:
                same[binding.var] = found
        moved = [one for one in moved if one.var in same.values()]
        maps.append(same)
    common = {*weights, *(binding.var for binding in moved)}
    own_maps = ({own: one for own, one in same.items() if one in common} for same in maps)
    parts = [_Lifting(func, same) for func, same in zip(functions.values(), own_maps, strict=True)]
    read = set[Var]().union(*(part.reads() for part in parts))
    kept = [one for one in (*weights, *(binding.var for binding in moved)) if one in read]
    made = {other: part.left(kept) for other, part in zip(functions, parts, strict=True)}
    for other, func in made.items():
        if lost := free_symbolic_vars(func):
            raise DeclarationError(
                f"LiftTransformParams: {other} would not know {lost[0]} of the weights that it got: bind it (BindSymbolicVars)"
            )
    # What depends on nothing stays where it is, and is computed for weights once more.
    return made, _transform(weights, [*alone, *moved], kept)


def _transform(weights: Sequence[Var], moved: Sequence[Binding], kept: Sequence[Var]) -> Function:
    """From a tuple of weights to one of what is kept."""
    inner = {binding.var: DataflowVar(binding.var.name_hint, binding.var.struct_info) for binding in moved}
    renamer = Mutator(inner)
    bindings = [VarBinding(inner[binding.var], renamer.visit(binding.value)) for binding in moved]
    result = Var("output_tuple", Tuple(tuple(kept)).struct_info)
    whole = DataflowBlock((*bindings, VarBinding(result, renamer.visit(Tuple(tuple(kept))))))
    made = bundled(Function(tuple(weights), SeqExpr((whole,), result), attrs=FrozenMap({"num_input": 0})), "model_params")
    return as_dataflow(remove_all_unused(made), 1)


def _composed(first: Function, second: Function, name: str) -> Function:
    """A transform that does what two do one after the other.

    Raises:
        DeclarationError: if the second one doesn't take what the first one returns.
    """
    before, (param,) = copy_with_new_vars(first), second.params
    given, wanted = before.body.struct_info, param.struct_info
    symbols: dict[Symbol, PrimExpr] = {}
    bind_symbols(wanted, given, symbols)
    if struct_info_base_check(with_symbols(wanted, symbols), given) is not BaseCheckResult.PASS:
        raise DeclarationError(f"LiftTransformParams: {name}, which the module has, returns {given}, and its weights are {wanted}")
    behind: Any = Mutator({param: before.body.body}, symbols).visit(second.body)
    whole = SeqExpr((*before.body.blocks, *behind.blocks), behind.body)
    made = canonical(without_dataflow(replace(before, body=whole, ret_struct_info=whole.struct_info)))
    return as_dataflow(remove_all_unused(made), 1)


def _does_something(transform: Function) -> bool:
    """Whether a transform does more than hand weights on."""
    return any(isinstance(binding.value, Call) for binding in transform.body.bindings())


def LiftTransformParams(shared_transform: bool | Sequence[str] = False) -> ModulePass:
    """A pass: of functions with "num_input" what depends on weights alone goes into `<name>_transform_params`.

    That one takes the weights as a tuple, and returns those that the function takes now: used weights, then what was computed. What stands
    behind `R.builtin.stop_lift_params` stays. The option "relax.lift_transform_params.consume_params" of a PassContext is accepted: a
    weight is let go of when nobody has it any more.

    Where the module has that function already, its results are transformed further, so that it takes the weights that it took.

    Args:
        shared_transform: one `transform_params` for all such functions, or those of these names, of what all of them compute; a weight or
            result that one of them reads is passed to all.

    Raises:
        DeclarationError: if functions that shall share a transform have other weights, or a transform that is there doesn't return them.
    """

    def run(mod: IRModule) -> IRModule:
        made, alone = mod.clone(), list[str]()
        shared: dict[str, Function] = {}
        listed: list[tuple[GlobalVar, Any]] = list(mod.functions_items())
        graphs: dict[str, Any] = {var.name_hint: func for var, func in listed if isinstance(func, Function) and "num_input" in func.attrs}
        before = {name for name in graphs if name == "transform_params" or name.removesuffix("_transform_params") in graphs.keys() - {name}}
        found = {name: func for name, func in graphs.items() if name not in before}
        for name, func in found.items():
            if shared_transform is True or (not isinstance(shared_transform, bool) and name in shared_transform):
                shared[name] = func
            else:
                alone.append(name)
        groups = [(f"{name}_transform_params", {name: found[name]}) for name in alone]
        groups += [("transform_params", shared)] if shared else []
        for transform_name, functions in groups:
            left, transform = lifted(functions)
            if transform_name in before:
                if all(len(func.params) == len(functions[name].params) for name, func in left.items()) and not _does_something(transform):
                    continue
                transform = _composed(graphs[transform_name], transform, transform_name)
            added: dict[str, Any] = {**left, transform_name: transform.with_attr("global_symbol", transform_name)}
            for name, one in added.items():
                made.update_func(name, one)
        return made

    return graph_pass("LiftTransformParams", run)
