"""ConvertLayout: convolutions in other layouts, with transposes only where values come from or go to something else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...errors import DeclarationError
from ...lower.passes import ModulePass
from ..expr import Call
from ..ops.window import PLANES, check_layout
from .axis_order import AxisOrder
from .fold_scale import CONVOLUTIONS, TRANSPOSED
from .rewriting import Rewriter, Rule, Rules, rule_pass
from .transposes import MOVES, RULES

_RESIZE = "relax.image.resize2d"


def _extents(expr: Any) -> Any:
    return getattr(expr.struct_info, "extents", None)


def relaid(layouts: Sequence[str]) -> Rule:
    """A convolution in the layouts of data and weights, and of its result; as it is where its channels don't fill their blocks."""
    data, *more = layouts

    def rule(graph: Rewriter, call: Call) -> Any:
        old, kernel = str(call.attrs["data_layout"]), str(call.attrs["kernel_layout"])
        old_out = str(call.attrs["out_layout"] or old)
        new_kernel = more[0] if more and more[0] != "default" else kernel
        out = more[1] if len(more) > 1 else data
        # As asked for: otherwise the rule would fit what it has made.
        if (old, kernel, old_out) == (data, new_kernel, out):
            return None
        x, weight = call.args[:2]
        of_data, of_weight, of_result = AxisOrder.of(old, data), AxisOrder.of(kernel, new_kernel), AxisOrder.of(old_out, out)
        if not (of_data.fits(_extents(x)) and of_weight.fits(_extents(weight)) and of_result.fits(_extents(call))):
            return None
        attrs = {**call.attrs, "data_layout": data, "kernel_layout": new_kernel, "out_layout": None if out == data else out}
        return of_result.out_of(Call(call.op, (of_data.into(x), of_weight.into(weight), *call.args[2:]), attrs, call.sinfo_args))

    return rule


def _resized(layouts: Sequence[str]) -> Rule:
    """Images that are resized in a layout."""

    def rule(graph: Rewriter, call: Call) -> Any:
        old, new = str(call.attrs["layout"]), layouts[0]
        order = AxisOrder.of(old, new) if old != new else None
        if order is None or not order.fits(_extents(call.args[0])):
            return None
        return order.out_of(Call(call.op, (order.into(call.args[0]), *call.args[1:]), {**call.attrs, "layout": new}, call.sinfo_args))

    return rule


def _checked(name: str, layouts: Sequence[str]) -> list[str]:
    """The layouts that are asked for, as far as they are some of an operator.

    Raises:
        DeclarationError: naming one that isn't.
    """
    plane = PLANES[1] if name == _RESIZE else next(letters for n, letters in enumerate(PLANES, 1) if f"conv{n}d" in name)
    found = [str(one) for one in layouts]
    if not 1 <= len(found) <= (1 if name == _RESIZE else 3):
        raise DeclarationError(f"ConvertLayout: {name} takes layouts of data, weights and result, as far as it has these, not {found}")
    for layout, (axes, blocks) in zip(found, (("NC", "c"), ("OI", "io"), ("NC", "c")), strict=False):
        if layout != "default" or axes != "OI":
            check_layout(name.removeprefix("relax."), layout, axes + plane, blocks=blocks)
    return found


def ConvertLayout(desired_layouts: Mapping[str, Sequence[str]]) -> ModulePass:
    """A pass: convolutions in other layouts; transposes are moved behind what can work in any, pools among it, and cancel.

    In a layout with blocks, such as NCHW16c, only those convolutions are whose channels are known to fill them; what leads there and back
    are layout transforms then.

    Args:
        desired_layouts: operators ("relax.nn.conv2d") -> layouts of data and weights ("NHWC", "OHWI"; "NCHW4c", "OIHW4o"; "default" for
            weights as they are), and of the result if it isn't that of the data. "relax.image.resize2d" has one layout.

    Raises:
        DeclarationError: for other operators, layouts of other axes or with blocks of other axes than channels; when the pass runs, for
            convolutions that have blocks of another layout.
    """
    known = (*CONVOLUTIONS, *TRANSPOSED, _RESIZE)
    wrong = [name for name in desired_layouts if name not in known]
    if wrong:
        raise DeclarationError(f"ConvertLayout: layouts of {', '.join(known)} can be asked for, not of {wrong[0]}")
    checked = {name: _checked(name, layouts) for name, layouts in desired_layouts.items()}
    asked: Rules = {name: [(_resized if name == _RESIZE else relaid)(layouts)] for name, layouts in checked.items()}
    # What is to be in a layout isn't put into another one by what moves transposes.
    others = [{name: rules for name, rules in table.items() if name != _RESIZE or name not in asked} for table in (MOVES, RULES)]
    return rule_pass("ConvertLayout", asked, *others)
