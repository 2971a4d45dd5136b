"""What can be told of graphs without running them."""

from ..relations import BaseCheckResult, struct_info_base_check, struct_info_lca
from ..types import get_static_type
from ..visitor import bindings_of, operands, post_order_visit, walk
from .calls import collect_call_map, computable_at_compile_time, detect_recursion, has_reshape_pattern
from .infos import derive_call_ret_struct_info, erase_to_well_defined
from .layouts import suggest_layout_transforms
from .memory_use import estimate_memory_usage
from .unused import contains_impure_call, impure_calls, is_pure, remove_all_unused
from .variables import (
    all_global_vars,
    all_vars,
    bound_vars,
    collect_non_negative_expressions,
    definable_tir_vars_in_struct_info,
    defined_symbolic_vars,
    free_symbolic_vars,
    free_vars,
    get_var2val,
    name_to_binding,
    tir_vars_in_struct_info,
    udchain,
)
from .well_formed import check_well_formed, well_formed

__all__ = [
    "BaseCheckResult", "all_global_vars", "all_vars", "bindings_of", "bound_vars", "check_well_formed", "collect_call_map",
    "collect_non_negative_expressions", "computable_at_compile_time", "contains_impure_call", "definable_tir_vars_in_struct_info",
    "defined_symbolic_vars", "derive_call_ret_struct_info", "detect_recursion", "erase_to_well_defined", "estimate_memory_usage",
    "free_symbolic_vars", "free_vars", "get_static_type", "get_var2val", "has_reshape_pattern", "impure_calls", "is_pure",
    "name_to_binding", "operands", "post_order_visit", "remove_all_unused", "struct_info_base_check", "struct_info_lca",
    "suggest_layout_transforms", "tir_vars_in_struct_info", "udchain", "walk", "well_formed",
]  # fmt: skip
