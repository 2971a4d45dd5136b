"""What is known of operators, and registered about them, where Relay's programs look for it: `relay.op.op.get("add")`."""

from ...tir.op_registry import Op, register_op_attr
from . import (
    OpPattern,
    get,
    list_op_names,
    register_alter_op_layout,
    register_broadcast_schedule,
    register_compute,
    register_gradient,
    register_infer_correct_layout,
    register_injective_schedule,
    register_legalize,
    register_mixed_precision_conversion,
    register_pattern,
    register_reduce_schedule,
    register_schedule,
    register_strategy,
)

__all__ = [
    "Op",
    "OpPattern",
    "get",
    "list_op_names",
    "register_alter_op_layout",
    "register_broadcast_schedule",
    "register_compute",
    "register_gradient",
    "register_infer_correct_layout",
    "register_injective_schedule",
    "register_legalize",
    "register_mixed_precision_conversion",
    "register_op_attr",
    "register_pattern",
    "register_reduce_schedule",
    "register_schedule",
    "register_strategy",
]
