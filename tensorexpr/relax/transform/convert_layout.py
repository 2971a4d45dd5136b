"""ConvertLayout: convolutions in other layouts, with transposes only where values come from or go to something else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...errors import DeclarationError
from ...lower.passes import ModulePass
from ..expr import Call
from .fold_scale import CONVOLUTIONS, TRANSPOSED
from .rewriting import Rewriter, Rule, Rules, rule_pass
from .transposes import MOVES, RULES, permuted


def _order(source: str, wanted: str) -> list[int]:
    """The axes of a tensor in the order of another layout.

    Raises:
        DeclarationError: for one of other axes.
    """
    if sorted(source) != sorted(wanted):
        raise DeclarationError(f"ConvertLayout: {wanted} is no order of the axes {source}; channel blocks are made by schedules")
    return [source.index(axis) for axis in wanted]


def relaid(layouts: Sequence[str]) -> Rule:
    """A convolution in the layouts of data and weights, and of its result."""
    data, *more = layouts

    def rule(graph: Rewriter, call: Call) -> Any:
        old, kernel = str(call.attrs["data_layout"]), str(call.attrs["kernel_layout"])
        old_out = str(call.attrs["out_layout"] or old)
        new_kernel = more[0] if more and more[0] != "default" else kernel
        out = more[1] if len(more) > 1 else data
        # As asked for: otherwise the rule would fit what it has made.
        if (old, kernel, old_out) == (data, new_kernel, out):
            return None
        x = permuted(call.args[0], _order(old, data))
        weight = permuted(call.args[1], _order(kernel, new_kernel))
        attrs = {**call.attrs, "data_layout": data, "kernel_layout": new_kernel, "out_layout": None if out == data else out}
        return permuted(Call(call.op, (x, weight, *call.args[2:]), attrs, call.sinfo_args), _order(out, old_out))

    return rule


def ConvertLayout(desired_layouts: Mapping[str, Sequence[str]]) -> ModulePass:
    """A pass: convolutions in other layouts; transposes are moved behind what can work in any, pools among it, and cancel.

    Args:
        desired_layouts: operators ("relax.nn.conv2d") -> layouts of data and weights ("NHWC", "OHWI"; "default" for weights as they are),
            and of the result if it isn't that of the data.

    Raises:
        DeclarationError: for operators that aren't convolutions, and layouts of other axes.
    """
    wrong = [name for name in desired_layouts if name not in (*CONVOLUTIONS, *TRANSPOSED)]
    if wrong:
        raise DeclarationError(f"ConvertLayout: layouts of {', '.join(CONVOLUTIONS + TRANSPOSED)} can be asked for, not of {wrong[0]}")
    asked: Rules = {name: [relaid([str(one) for one in layouts])] for name, layouts in desired_layouts.items()}
    return rule_pass("ConvertLayout", asked, MOVES, RULES)
