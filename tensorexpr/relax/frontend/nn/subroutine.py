"""Parts of networks as functions of their own, which the functions around call."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from typing import Any

from ....errors import DeclarationError
from ...block_builder import BlockBuilder, resolved
from ...expr import Call, Var, convert_to_expr
from ...utils import copy_with_new_vars


def called(part: str, forward: Callable[..., Any], args: Mapping[str, Any], weights: Sequence[Var]) -> Call:
    """A call of a private function that computes what `forward` does; equal parts are one function.

    Args:
        part: the class of the part; `LayerNorm` becomes the function "layer_norm".
        forward: from variables for the arguments to an expression, which may read the weights.
        args: the arguments, by the names of its parameters.
        weights: what the function takes behind them.

    Raises:
        DeclarationError: outside of a function that a BlockBuilder makes.
    """
    builder = BlockBuilder.current()
    if builder is None:
        raise DeclarationError(f"{part} has define_subroutine set: it is called in `with bb.function(...):`")
    exprs = [convert_to_expr(arg) for arg in args.values()]
    given = [one if isinstance(one, Var) else builder.emit(one) for one in exprs]
    name = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", part).lower()
    params = [Var(key, one.struct_info) for key, one in zip(args, given, strict=True)]
    # A builder of its own: whether there is such a function already is known only when it is made.
    inner = BlockBuilder(builder.get())
    own = inner.get_unique_name(name)
    with inner.function(own, [*params, *weights], private=True), ExitStack() as stack:
        is_dataflow = builder.current_block_is_dataflow()
        if is_dataflow:
            stack.enter_context(inner.dataflow())
        out = forward(*params)
        if is_dataflow:
            out = inner.emit_output(out)
            stack.close()
        inner.emit_func_output(out)
    made: Any = inner.get()
    for var, func in made.functions_items():
        if var not in builder.get() and var.name_hint != own:
            builder.update_func(var, func)
    callee = builder.add_func(copy_with_new_vars(made[own]), name)
    return resolved(Call(callee, (*given, *weights)), builder.get())
