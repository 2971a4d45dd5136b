"""Patterns of values of graphs, and rewrites of what they match.

x = wildcard()
squared = is_op("relax.power")(x, is_const())
rewrite_call(squared, lambda call, found: relax.op.multiply(found[x], found[x]), func)
"""

from .context import PatternContext
from .pattern import (
    AndPattern,
    AttrPattern,
    CallPattern,
    ConstantPattern,
    DataflowVarPattern,
    DataTypePattern,
    DFPattern,
    ExprPattern,
    ExternFuncPattern,
    FunctionPattern,
    GlobalVarPattern,
    NotPattern,
    OrPattern,
    PrimArrPattern,
    ShapePattern,
    StructInfoPattern,
    TupleGetItemPattern,
    TuplePattern,
    TypePattern,
    UnorderedTuplePattern,
    VarPattern,
    WildcardPattern,
)
from .rewrite import ExprPatternRewriter, OrRewriter, PatternMatchingRewriter, rewrite_bindings, rewrite_call
from .sequence import PatternSeq
from .words import (
    has_attr,
    has_dtype,
    is_call_dps_packed,
    is_call_packed,
    is_call_tir,
    is_const,
    is_dfv,
    is_expr,
    is_gv,
    is_op,
    is_shape,
    is_tuple,
    is_tuple_get_item,
    is_var,
    make_fused_bias_activation_pattern,
    reject,
    wildcard,
)

__all__ = [
    "AndPattern", "AttrPattern", "CallPattern", "ConstantPattern", "DFPattern", "DataTypePattern", "DataflowVarPattern", "ExprPattern",
    "ExprPatternRewriter", "ExternFuncPattern", "FunctionPattern", "GlobalVarPattern", "NotPattern", "OrPattern", "OrRewriter",
    "PatternContext", "PatternMatchingRewriter", "PatternSeq", "PrimArrPattern", "ShapePattern", "StructInfoPattern",
    "TupleGetItemPattern", "TuplePattern", "TypePattern", "UnorderedTuplePattern", "VarPattern", "WildcardPattern", "has_attr",
    "has_dtype", "is_call_dps_packed", "is_call_packed", "is_call_tir", "is_const", "is_dfv", "is_expr", "is_gv", "is_op", "is_shape",
    "is_tuple", "is_tuple_get_item", "is_var", "make_fused_bias_activation_pattern", "reject", "rewrite_bindings", "rewrite_call",
    "wildcard",
]  # fmt: skip
