"""Networks in another layout or precision, as options of the command line ask for it."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ...errors import DeclarationError
from ...relax import transform as on_graphs
from ...relay import transform as on_relay
from ...relay.build_module import bound_graph
from ...relay.expr import Function
from ...relay.ops.row import ROWS
from ...relay.transform.common import on_graph
from .model import TVMCException

TransformArgs = Mapping[str, Any] | None
_CONVOLUTIONS = ("nn.conv2d", "nn.conv2d_transpose", "qnn.conv2d")
_NAMES = (
    "desired_layout", "desired_layout_ops", "mixed_precision", "mixed_precision_ops", "mixed_precision_calculation_type",
    "mixed_precision_acc_type",
)  # fmt: skip


def _is_relay(mod: Any) -> bool:
    return any(isinstance(func, Function) for func in mod.functions.values())


def _graph(mod: Any) -> Any:
    return on_graphs.ConvertToDataflow(1)(on_graphs.Normalize()(bound_graph(mod, None)))


def convert_graph_layout(mod: Any, desired_layouts: str | Sequence[str], ops: Sequence[str] | None = None) -> Any:
    """A network whose convolutions, and what can go along with them, are in other layouts.

    Args:
        mod: of Relay or of graphs, which the result is, too.
        desired_layouts: of data, or of data and weights, "NHWC:HWIO"; one for all operators, or one for each.
        ops: operators; by default convolutions in two dimensions.

    Raises:
        TVMCException: for another number of layouts, and layouts or operators that there aren't.
    """
    names = list(ops or _CONVOLUTIONS)
    layouts = [desired_layouts] if isinstance(desired_layouts, str) else list(desired_layouts)
    if len(layouts) not in (1, len(names)):
        raise TVMCException(f"--desired-layout: expected one layout or {len(names)}, as there are operators, not {len(layouts)}")
    both = [layout.split(":") if ":" in layout else [layout, "default"] for layout in layouts]
    asked = dict(zip(names, both * len(names) if len(both) == 1 else both, strict=True))
    try:
        if _is_relay(mod):
            _check_have_layouts(asked)
            return on_relay.FoldConstant()(on_relay.ConvertLayout(asked)(on_relay.RemoveUnusedFunctions()(mod)))
        # Convolutions of integers are convolutions in graphs; what is said of these counts.
        named = {f"relax.{name.replace('qnn.', 'nn.')}": pair for name, pair in sorted(asked.items(), reverse=True)}
        return on_graphs.FoldConstant()(on_graphs.ConvertLayout(named)(_graph(mod)))
    except DeclarationError as error:
        raise TVMCException(f"--desired-layout: {error}") from None


def _check_have_layouts(names: Iterable[str]) -> None:
    """Raise a DeclarationError for an operator of Relay without a layout: it takes that of its operands, whatever is asked for."""
    known = [name for name, row in ROWS.items() if {"layout", "data_layout"} & row.signature.parameters.keys()]
    for name in names:
        if name not in known:
            raise DeclarationError(f"layouts of {', '.join(known)} can be asked for, not of {name}")


def convert_to_mixed_precision(
    mod: Any, ops: Sequence[str] | None = None, calculation_type: str | None = "float16", acc_type: str | None = "float32"
) -> Any:
    """A network whose products and convolutions are computed in half precision.

    Args:
        mod: of Relay or of graphs, which the result is, too.
        ops: which of them: "nn.conv2d", "nn.dense"; by default all.
        calculation_type: "float16" or "bfloat16".
        acc_type: of their sums: "float32", or the same.

    Raises:
        TVMCException: for other types and operators.
    """
    try:
        made = on_graphs.ToMixedPrecision(acc_type or "float32", dtype=calculation_type or "float16", operators=ops)
        return on_graph("ToMixedPrecision", 0, made)(mod) if _is_relay(mod) else made(_graph(mod))
    except DeclarationError as error:
        raise TVMCException(f"--mixed-precision: {error}") from None


def apply_graph_transforms(mod: Any, args: TransformArgs, params: Mapping[str, Any] | None = None) -> Any:
    """A network in another layout or precision.

    Args:
        mod: the module; without options it comes back as it is.
        args: of `parse_graph_transform_args`.
        params: accepted: what they are doesn't matter here.

    Raises:
        TVMCException: for options that don't fit.
    """
    given = dict(args or {})
    if given.get("desired_layout"):
        mod = convert_graph_layout(mod, given["desired_layout"], given.get("desired_layout_ops"))
    if given.get("mixed_precision"):
        mod = convert_to_mixed_precision(
            mod, given.get("mixed_precision_ops"), given.get("mixed_precision_calculation_type"), given.get("mixed_precision_acc_type")
        )
    return mod


def parse_graph_transform_args(args: Any) -> dict[str, Any]:
    """The options of graphs among those of a command or function."""
    given = args if isinstance(args, Mapping) else vars(args)
    return {name: given[name] for name in _NAMES if given.get(name) is not None}


def generate_transform_args(parser: argparse.ArgumentParser) -> None:
    """--desired-layout and --mixed-precision, with what they are about."""
    parser.add_argument(
        "--desired-layout", nargs="+", metavar="LAYOUT", help="of convolutions: NHWC, or NHWC:HWIO with that of weights; FILE stands before"
    )
    parser.add_argument(
        "--desired-layout-ops", nargs="+", metavar="OP", help=f"which operators it is for; by default {', '.join(_CONVOLUTIONS)}"
    )
    parser.add_argument("--mixed-precision", action="store_true", help="products and convolutions in half precision")
    parser.add_argument("--mixed-precision-ops", nargs="+", metavar="OP", help="which of them: nn.conv2d nn.dense; by default all")
    parser.add_argument("--mixed-precision-calculation-type", choices=["float16", "bfloat16"], help="half precision; by default float16")
    parser.add_argument("--mixed-precision-acc-type", choices=["float16", "bfloat16", "float32"], help="of sums; by default float32")
