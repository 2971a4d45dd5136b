"""LiftTransformParams: what is computed from weights alone becomes a function of its own, which runs once."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ...dataclass import dataclass, replace
from ...errors import DeclarationError
from ...lower.context import PassContext
from ...lower.passes import ModulePass
from ...tir.attrs import FrozenMap
from ...tir.expr import IntImm, PrimExpr
from ...tir.expr import Var as Symbol
from ...tir.function import GlobalVar, IRModule
from ...tir.op_registry import Op
from ...tir.structural import structural_equal
from ..analysis import definable_tir_vars_in_struct_info, free_symbolic_vars, is_pure, remove_all_unused
from ..analysis.unused import RESET
from ..expr import (
    Binding,
    BindingBlock,
    Call,
    DataflowBlock,
    DataflowVar,
    ExternFunc,
    Function,
    If,
    PrimValue,
    SeqExpr,
    Tuple,
    TupleGetItem,
    Var,
    VarBinding,
)
from ..relations import BaseCheckResult, bind_symbols, struct_info_base_check
from ..struct_info import RelaxExpr, ShapeExpr, ShapeStructInfo, TupleStructInfo, symbols_of, with_symbols
from ..utils import copy_with_new_vars
from ..visitor import Mutator, walk
from .canonicalize import canonical
from .dataflow import as_dataflow, without_dataflow
from .passes import graph_pass

STOP = "relax.builtin.stop_lift_params"
CONSUME = "relax.lift_transform_params.consume_params"


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
    """A function, which of its variables and symbols are those of the first function that shares the transform."""

    func: Function
    same: Mapping[Var, Var]
    symbols: Mapping[Symbol, PrimExpr]

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
        names: dict[Var, Any] = {own: params[shared] for own, shared in self.same.items() if shared in params}

        def rest(block: BindingBlock) -> BindingBlock:
            left = list[Binding]()
            for binding in block.bindings:
                value: Any = binding.value
                if isinstance(value, Call) and value.op == STOP:
                    value = value.args[0]
                    # What ends with its block can't be read behind it by another name.
                    if value in names or isinstance(binding.var, DataflowVar):
                        names[binding.var] = names.get(value, value)
                        continue
                    binding = VarBinding(binding.var, value)
                if binding.var not in self.same:
                    left.append(binding)
            return type(block)(tuple(left))

        blocks = (block for block in map(rest, self.func.body.blocks) if block.bindings)
        body = SeqExpr(tuple(blocks), self.func.body.body)
        made = Mutator(names, self.symbols).function(replace(self.func, params=self.func.params[: self.count], body=body))
        return replace(made, params=(*made.params, *params.values()))

    def with_sizes(self, left: Function, sizes: Sequence[Symbol]) -> Function:
        """What is left, with a shape in front of its weights that tells sizes which its other parameters don't."""
        told = (Var("sizes", ShapeStructInfo(tuple(sizes))),) if sizes else ()
        return replace(left, params=(*left.params[: self.count], *told, *left.params[self.count :]))


def lifted(functions: Mapping[str, Function]) -> tuple[dict[str, Function], Function]:
    """Functions that take transformed weights, and the one that transforms them for all, from a tuple to a tuple.

    What all of them compute from weights alone is moved. Symbols that a function knew by a weight that it doesn't get any more are told
    by a shape, the first result of the transform.

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
    sizes: list[dict[Symbol, PrimExpr]] = [{}]
    for other, func in others:
        own = func.params[int(func.attrs["num_input"]) :]
        # As tuples: a symbol that two weights of one have in common is one of the other, too.
        stated, given = Tuple(tuple(own)).struct_info, Tuple(tuple(weights)).struct_info
        if not structural_equal(stated, given, map_free_vars=True):
            raise DeclarationError(f"LiftTransformParams: {other} has other weights than {name}, with which it shares their transform")
        same, symbols = dict(zip(own, weights, strict=True)), dict[Symbol, PrimExpr]()
        bind_symbols(stated, given, symbols)
        for binding in itertools.chain(*_liftable(func)):
            value = Mutator(same, symbols).visit(binding.value)
            found = next((one.var for one in (*alone, *moved) if structural_equal(one.value, value)), None)
            if found is not None:
                same[binding.var] = found
        moved = [one for one in moved if one.var in same.values()]
        maps.append(same)
        sizes.append(symbols)
    common = {*weights, *(binding.var for binding in moved)}
    own_maps = ({own: one for own, one in same.items() if one in common} for same in maps)
    parts = [_Lifting(*each) for each in zip(functions.values(), own_maps, sizes, strict=True)]
    read = set[Var]().union(*(part.reads() for part in parts))
    kept = [one for one in (*weights, *(binding.var for binding in moved)) if one in read]
    left = [part.left(kept) for part in parts]
    lost = [*dict.fromkeys(symbol for func in left for symbol in free_symbolic_vars(func))]
    made = {other: part.with_sizes(func, lost) for other, part, func in zip(functions, parts, left, strict=True)}
    # They have symbols of the first one; each has its own.
    made = {other: func if other == name else copy_with_new_vars(func) for other, func in made.items()}
    # What depends on nothing stays where it is, and is computed for weights once more.
    return made, copy_with_new_vars(_transform(weights, [*alone, *moved], [*([ShapeExpr(tuple(lost))] if lost else []), *kept]))


def _transform(weights: Sequence[Var], computed: Sequence[Binding], results: Sequence[Any]) -> Function:
    """From a tuple of weights to one of results, each weight being taken out of the tuple in front of the first binding that reads it."""
    whole, bundle = Tuple(tuple(results)), Var("params", Tuple(tuple(weights)).struct_info)
    attrs = FrozenMap({"num_input": 0})
    if not results or tuple(results) == tuple(weights):
        return Function((bundle,), SeqExpr((), bundle if results else whole), attrs=attrs)
    needed = set(_variables(whole))
    for binding in reversed(computed):
        needed.update(_variables(binding.value) if binding.var in needed else ())
    inner = {var: DataflowVar(var.name_hint, var.struct_info) for var in (*weights, *(binding.var for binding in computed))}
    renamer, places, made = Mutator(inner), {weight: n for n, weight in enumerate(weights)}, list[Binding]()

    def emit(var: Var, value: Any) -> None:
        for weight in dict.fromkeys(_variables(value)):
            if weight in places:
                made.append(VarBinding(inner[weight], TupleGetItem(bundle, places.pop(weight))))
        made.append(VarBinding(var, renamer.visit(value)))

    for binding in computed:
        if binding.var in needed:
            emit(inner[binding.var], binding.value)
    output = Var("output_tuple", whole.struct_info)
    emit(output, whole)
    return canonical(Function((bundle,), SeqExpr((DataflowBlock(tuple(made)),), output), attrs=attrs))


def _consuming(transform: Function) -> Function:
    """A transform that takes each weight out of the tuple for good, so that it can go when it is read for the last time."""
    (bundle,) = transform.params
    last = {
        (value.tuple_value, value.index): binding
        for binding in transform.body.bindings()
        if isinstance(value := binding.value, TupleGetItem)
    }
    reset = {binding.var: index for (value, index), binding in last.items() if value is bundle}

    def with_resets(block: BindingBlock) -> BindingBlock:
        made = list[Binding]()
        for binding in block.bindings:
            made.append(binding)
            if binding.var in reset:
                args = ExternFunc(RESET), bundle, PrimValue(IntImm("int32", reset[binding.var]))
                call = Call(Op.of("relax.call_pure_packed"), args, None, (TupleStructInfo(()),))
                made.append(VarBinding((DataflowVar if isinstance(block, DataflowBlock) else Var)("_", call.struct_info), call))
        return type(block)(tuple(made))

    return replace(transform, body=SeqExpr(tuple(map(with_resets, transform.body.blocks)), transform.body.body))


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
    behind `R.builtin.stop_lift_params` stays. With the option "relax.lift_transform_params.consume_params" of a PassContext a weight is
    taken out of the list that a transform is called with when it is read, so that its memory is free before the last one is transformed.

    Where the module has that function already, its results are transformed further, so that it takes the weights that it took.

    Args:
        shared_transform: one `transform_params` for all such functions, of what all of them compute; a weight or result that one of them
            reads is passed to all. Of names: for these functions, and others stay as they are.

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
            if shared_transform is False or shared_transform == []:
                alone.append(name)
            elif shared_transform is True or name in shared_transform:
                shared[name] = func
        groups = [(f"{name}_transform_params", {name: found[name]}) for name in alone]
        groups += [("transform_params", shared)] if shared else []
        for transform_name, functions in groups:
            left, transform = lifted(functions)
            if transform_name in before:
                if all(len(func.params) == len(functions[name].params) for name, func in left.items()) and not _does_something(transform):
                    continue
                transform = _composed(graphs[transform_name], transform, transform_name)
            transform = _consuming(transform) if PassContext.current().config.get(CONSUME) else transform
            added: dict[str, Any] = {**left, transform_name: transform.with_attr("global_symbol", transform_name)}
            for name, one in added.items():
                made.update_func(name, one)
        return made

    return graph_pass("LiftTransformParams", run)
