"""What functions of code generators read and write for some inputs (`relay.analysis.get_calibration_data`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from ..errors import DeclarationError
from ..relax.evaluator import Evaluator
from ..runtime.ndarray import NDArray, array
from ..tir.function import GlobalVar, IRModule
from .expr import Attrs, Call, Function, Tuple
from .to_graph import to_graph
from .visitor import walk

Arrays = dict[str, list[Any]]


def get_calibration_data(mod: IRModule, data: Mapping[str, Any]) -> dict[GlobalVar, Arrays]:
    """The operands and results of each function that a code generator of others computes, for inputs of "main".

    Args:
        mod: a module that `transform.PartitionGraph` made: functions with the attribute "Compiler", each called once in "main".
        data: arrays by the names of main's parameters.

    Returns:
        {"inputs": arrays, "outputs": arrays} by the GlobalVar of each function.

    Raises:
        DeclarationError: for a parameter without an array, or a function that is called more than once.
    """
    main: Any = mod["main"]
    missing = [one.name_hint for one in main.params if one.name_hint not in data]
    if missing:
        raise DeclarationError(f"get_calibration_data: no array for {', '.join(missing)}; given are {', '.join(data) or 'none'}")
    generated = {var for var, func in mod.functions_items() if isinstance(func, Function) and "Compiler" in func.attrs}
    calls: dict[Any, Any] = {}
    for node in walk(main.body):
        if isinstance(node, Call) and node.op in generated:
            if node.op in calls:
                raise DeclarationError(f"get_calibration_data: @{node.op.name_hint} is called more than once")
            calls[node.op] = node
    whole = mod.clone()
    for var in generated:  # computed here, as what it says
        whole.update_func(var, replace(mod[var], attrs=Attrs()))
    values = [Tuple([*call.args, call]) for call in calls.values()]
    whole.update_func(GlobalVar("main"), replace(main, body=Tuple(values), ret_type=None))
    arrays = [data[one.name_hint] for one in main.params]
    found = Evaluator(to_graph(whole))("main", *(one.numpy() if isinstance(one, NDArray) else np.asarray(one) for one in arrays))
    made: dict[GlobalVar, Arrays] = {}
    for var, (*inputs, output) in zip(calls, found, strict=True):
        results = output if isinstance(output, tuple) else (output,)
        made[var] = {"inputs": list(map(array, inputs)), "outputs": list(map(array, results))}
    return made


__all__ = ["get_calibration_data"]
