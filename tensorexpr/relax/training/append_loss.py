"""AppendLoss: a network with a loss behind it, as one function of one dataflow block, which `Gradient` can derive."""

from __future__ import annotations

from typing import Any

from ...errors import DeclarationError
from ...lower.passes import ModulePass
from ...tir.function import IRModule
from ..expr import DataflowBlock, DataflowVar, Function, SeqExpr, Tuple, Var
from ..relations import BaseCheckResult, bind_symbols, struct_info_base_check
from ..struct_info import StructInfo, with_symbols
from ..transform.passes import graph_pass
from ..utils import copy_with_new_vars
from ..visitor import Mutator


class _Network(Mutator):
    """Lets variables that are no results any more end with their block."""

    def __init__(self, inner: set[Var]) -> None:
        super().__init__()
        self._inner = inner

    def define(self, var: Var, info: StructInfo) -> Var:
        """A variable of the block for one that the loss alone reads."""
        if var not in self._inner:
            return super().define(var, info)
        self._variables[var] = made = DataflowVar(var.name_hint, info)
        return made


def _block(func: Function, what: str) -> DataflowBlock:
    if len(func.body.blocks) != 1 or not isinstance(func.body.blocks[0], DataflowBlock):
        raise DeclarationError(f"AppendLoss: {what} is more than one dataflow block; ConvertToDataflow makes one of what has no effects")
    return func.body.blocks[0]


def _results(func: Function, name: str) -> list[Var]:
    body = func.body.body
    found = list(body.fields) if isinstance(body, Tuple) else [body]
    if not all(isinstance(one, Var) for one in found):
        raise DeclarationError(f"AppendLoss: {name} returns variables, one or a tuple of them, not {body}")
    return found


def with_loss(func: Function, loss: Function, name: str, count: int = 1) -> Function:
    """A function that computes `func`, and of its first `count` results a loss; see `AppendLoss`."""
    func, loss = copy_with_new_vars(func), copy_with_new_vars(loss)
    own, added, results = _block(func, name), _block(loss, "the loss"), _results(func, name)
    number: Any = loss.body.body
    if not isinstance(number, Var) or getattr(number.struct_info, "ndim", None) != 0:
        raise DeclarationError(f"AppendLoss: a loss returns a variable that is a number, a tensor without axes, not {number.struct_info}")
    if count > min(len(results), len(loss.params)):
        raise DeclarationError(
            f"AppendLoss: {count} results of {name} go to the loss; {name} has {len(results)}, and the loss {len(loss.params)} parameters"
        )
    left = results[count:]
    symbols: dict[Any, Any] = {}
    for param, result in zip(loss.params, results[:count], strict=False):
        bind_symbols(param.struct_info, result.struct_info, symbols)
        if struct_info_base_check(with_symbols(param.struct_info, symbols), result.struct_info) != BaseCheckResult.PASS:
            raise DeclarationError(
                f"AppendLoss: {result.name_hint} of {name} is {result.struct_info}; parameter {param.name_hint} of the loss is "
                f"{param.struct_info}"
            )
    network = _Network({one for one in results[:count] if one not in left})
    block = network.block(own)
    behind = Mutator({param: network.visit(one) for param, one in zip(loss.params, results[:count], strict=False)}, symbols)
    more = [behind.define(param, with_symbols(param.struct_info, symbols)) for param in loss.params[count:]]
    bindings = (*block.bindings, *behind.block(added).bindings)
    outputs = (behind.visit(number), *(network.visit(one) for one in left))
    body = SeqExpr((DataflowBlock(bindings),), Tuple(outputs) if left else outputs[0])
    return Function((*func.params, *more), body, body.struct_info, func.is_pure, func.attrs)


def AppendLoss(func_name: str, loss_function: Function, num_backbone_outputs: int = 1, new_func_name: str | None = None) -> ModulePass:
    """A pass: beside a function there is one that computes the same and a loss of it.

    backbone(inputs, parameters, states) -> (results, states) and loss(results, targets) -> number become
    backbone_loss(inputs, parameters, states, targets) -> (number, states).

    Args:
        func_name: of the function, of one dataflow block.
        loss_function: such as `MSELoss()(predictions, targets)` gives; symbols of its shapes take the extents of the results.
        num_backbone_outputs: how many results of the function, the first ones, go to the loss.
        new_func_name: `func_name` with `_loss` behind it if None.

    Raises:
        DeclarationError: for functions of another form, or results that don't fit the loss.
    """
    name = f"{func_name}_loss" if new_func_name is None else new_func_name

    def run(mod: IRModule) -> IRModule:
        func: Any = mod[func_name]
        if not isinstance(func, Function):
            raise DeclarationError(f"AppendLoss: {func_name} is no function of a graph")
        made = mod.clone()
        made.update_func(name, with_loss(func, loss_function, func_name, num_backbone_outputs).with_attr("global_symbol", name))  # type: ignore[arg-type]
        return made

    return graph_pass("AppendLoss", run)


__all__ = ["AppendLoss"]
