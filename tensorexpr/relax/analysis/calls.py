"""Who calls whom, what only depends on weights, and tensor functions that move nothing."""

from __future__ import annotations

from functools import reduce
from math import prod
from operator import mul
from typing import Any

import numpy as np

from ...arith.analyzer import Analyzer
from ...arith.index_map import IndexMap
from ...errors import DeclarationError
from ...tir.arithmetic import as_int
from ...tir.block import BlockRealize
from ...tir.expr import BufferLoad, IntImm, PrimExpr
from ...tir.expr import Var as TirVar
from ...tir.function import GlobalVar, IRModule, PrimFunc
from ...tir.rewriting import walk as walk_loops
from ...tir.stmt import BufferStore, Evaluate
from ..expr import Function, MatchCast, Var
from ..struct_info import RelaxExpr, symbols_of
from ..visitor import bindings_of, walk
from .unused import contains_impure_call
from .variables import all_global_vars, definable_tir_vars_in_struct_info

_MOST_COUNTED = 1 << 22  # elements


def collect_call_map(mod: IRModule) -> dict[GlobalVar, list[GlobalVar]]:
    """For each function of a graph: the functions of the module that it mentions, in order of occurrence."""
    return {var: [one for one in all_global_vars(func) if one in mod] for var, func in mod.functions_items() if isinstance(func, Function)}


def detect_recursion(mod: IRModule) -> list[list[GlobalVar]]:
    """Groups of functions that call themselves, by way of each other if there are several; in the order of the module."""
    calls = collect_call_map(mod)
    reached = {var: _reached(var, calls) for var in calls}
    groups: list[list[GlobalVar]] = []
    for var in calls:
        if var in reached[var] and not any(var in group for group in groups):
            groups.append([one for one in calls if one in reached[var] and var in reached[one]])
    return groups


def _reached(start: GlobalVar, calls: dict[GlobalVar, list[GlobalVar]]) -> set[GlobalVar]:
    found: set[GlobalVar] = set()
    waiting = list(calls[start])
    while waiting:
        var = waiting.pop()
        if var not in found:
            found.add(var)
            waiting += calls.get(var, [])
    return found


def computable_at_compile_time(func: Function) -> list[Var]:
    """The parameters behind the first `num_input` ones, and the variables that depend on nothing else; none without that attribute.

    Symbols are known that these parameters, or casts of what is known, define.
    """
    if "num_input" not in func.attrs:
        return []
    known = list(func.params[int(func.attrs["num_input"]) :])
    inputs = func.params[: int(func.attrs["num_input"])]
    told = {symbol for one in known for symbol in definable_tir_vars_in_struct_info(one.struct_info)}
    of_inputs = {symbol for one in inputs for symbol in definable_tir_vars_in_struct_info(one.struct_info)} - told
    for binding in bindings_of(func.body):
        nodes = list(walk(binding.value))
        is_cast = isinstance(binding, MatchCast)
        made = [node for node in nodes if isinstance(node, RelaxExpr) and not isinstance(node, Var)]
        symbols = {symbol for one in (*made, binding.var) for symbol in symbols_of(one.struct_info)} - told
        # A cast defines the symbols that nobody knows yet, and checks those of inputs.
        is_told = not symbols & of_inputs if is_cast else not symbols
        if is_told and all(var in known for var in nodes if isinstance(var, Var)) and not contains_impure_call(binding.value):
            known.append(binding.var)
            told |= symbols
        elif is_cast:
            of_inputs |= symbols
    return known


def has_reshape_pattern(func: PrimFunc) -> bool:
    """Whether a tensor function copies its first argument to its last one without changing the order of elements, as a reshape does."""
    nodes = list(walk_loops(func.body))
    blocks = [node for node in nodes if isinstance(node, BlockRealize) and node.block.iter_vars]
    effects = [node for node in nodes if isinstance(node, (Evaluate, BufferStore))]
    if len(blocks) != 1 or len(effects) != 1 or len(func.buffer_map) < 2:
        return False
    block = blocks[0].block
    store: Any = block.body
    if not isinstance(store, BufferStore) or not isinstance(store.value, BufferLoad) or block.init is not None:
        return False
    buffers = [func.buffer_map[param] for param in func.params if param in func.buffer_map]
    source, target = store.value.buffer, store.buffer
    if source is not buffers[0] or target is not buffers[-1]:
        return False
    analyzer = Analyzer()
    for axis in block.iter_vars:
        if axis.dom is not None:
            analyzer.bind(axis.var, axis.dom)
    difference = analyzer.simplify(_flat(source.shape, store.value.indices) - _flat(target.shape, store.indices))
    if isinstance(difference, IntImm):
        # The first rows of a tensor lie in its order too, and are not all of it.
        counts = [reduce(mul, buffer.shape, IntImm("int64", 1)) for buffer in (source, target)]
        return difference.value == 0 and as_int(analyzer.simplify(counts[0] - counts[1])) == 0
    shapes = [[as_int(extent) or 0 for extent in buffer.shape] for buffer in (source, target)]
    axes = [index for index in store.indices if isinstance(index, TirVar)]
    if len(axes) != len(target.shape):
        return False
    # What the analyzer can't prove is counted: (i * 6 + j) // 12 and the like.
    count = prod(shapes[0])
    if not 0 < count <= _MOST_COUNTED or count != prod(shapes[1]):
        return False
    try:
        found = IndexMap(tuple(axes), store.value.indices).unmap_ndarray(np.arange(count).reshape(shapes[0]), shapes[1])
    except DeclarationError:
        return False
    return bool(np.array_equal(found.reshape(-1), np.arange(count)))


def _flat(shape: Any, indices: Any) -> PrimExpr:
    """The number of an element in the order of a tensor."""
    number: Any = None
    for extent, index in zip(shape, indices, strict=True):
        number = index if number is None else number * extent + index
    found: PrimExpr = IntImm("int32", 0) if number is None else number
    return found
