"""Parameters of functions: BundleModelParams and UpdateParamStructInfo."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from ...errors import TypeMismatchError
from ...lower.passes import ModulePass
from ..expr import BindingBlock, Function, SeqExpr, Tuple, TupleGetItem, Var, VarBinding
from ..struct_info import StructInfo
from ..visitor import Mutator, walk
from .passes import each_function


def bundled(func: Function, name: str) -> Function:
    """A function whose parameters behind the first `num_input` ones are one tuple."""
    if "num_input" not in func.attrs:
        return func
    count = int(func.attrs["num_input"])
    weights = func.params[count:]
    bundle = Var(name, Tuple(tuple(weights)).struct_info)
    used = {node for node in walk(func.body) if isinstance(node, Var)}
    bindings = tuple(VarBinding(param, TupleGetItem(bundle, n)) for n, param in enumerate(weights) if param in used)
    blocks = (BindingBlock(bindings), *func.body.blocks) if bindings else func.body.blocks
    return replace(func, params=(*func.params[:count], bundle), body=SeqExpr(blocks, func.body.body))


def BundleModelParams(param_tuple_name: str | None = None) -> ModulePass:
    """A pass: weights, the parameters behind those that "num_input" counts, become one tuple.

    Args:
        param_tuple_name: of that parameter; "model_params" if None.
    """
    return each_function("BundleModelParams", lambda func, mod: bundled(func, param_tuple_name or "model_params"))


class _Retyped(Mutator):
    """A function some of whose parameters are something else."""

    def __init__(self, infos: dict[Var, StructInfo]) -> None:
        super().__init__()
        self._infos = infos

    def define(self, var: Var, info: StructInfo) -> Var:
        """A parameter as it is stated now."""
        return super().define(var, self._infos.get(var, info))


def UpdateParamStructInfo(sinfo_func: Callable[[Any], StructInfo | None]) -> ModulePass:
    """A pass: parameters of other shapes or dtypes, from which the rest is derived again.

    Args:
        sinfo_func: from a parameter to what it shall be, or None for one that stays.

    Raises:
        TypeMismatchError: if it returns something else.
        DeclarationError: if operators don't fit any more.
    """

    def run(func: Function, mod: Any) -> Function:
        infos: dict[Var, StructInfo] = {}
        for param in func.params:
            found: Any = sinfo_func(param)
            if found is not None and not isinstance(found, StructInfo):
                raise TypeMismatchError(f"UpdateParamStructInfo: a struct info or None for {param.name_hint}, not {found!r}")
            if found is not None:
                infos[param] = found
        return _Retyped(infos).function(func) if infos else func

    return each_function("UpdateParamStructInfo", run)
