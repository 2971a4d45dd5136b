"""Questions about Relay's expressions by their names."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator
from math import prod
from typing import Any

from ..relax import expr as graph
from ..relax.struct_info import TensorStructInfo
from ..relax.visitor import walk as walk_graph
from ..tir.function import IRModule
from ..tir.op_registry import Op
from ..tir.structural_digest import structural_hash
from .adt import Match, Pattern, TypeData, pattern_vars, unmatched
from .annotated_regions import AnnotatedRegion, AnnotatedRegionSet
from .blocks import check_basic_block_normal_form
from .calibration import get_calibration_data
from .call_graph import CallGraph
from .expr import Function, Let
from .feature import Feature, detect_feature
from .fuse import FuseOps
from .ops.row import ROWS
from .to_graph import to_graph
from .transform import SimplifyInference
from .ty import FuncType, Type, type_of
from .type_functor import parts
from .type_kinds import check_kind
from .type_names import TypeVar
from .visitor import free_vars, operands, post_order_visit, walk


def all_vars(expr: Any) -> list[Any]:
    """All variables of an expression, in the order of their first uses."""
    return [node for node in walk(expr) if isinstance(node, graph.Var)]


def bound_vars(expr: Any) -> list[Any]:
    """The variables that Lets and functions of an expression bind."""
    found: dict[Any, None] = {}
    for node in walk(expr):
        found.update(dict.fromkeys(_bound_by(node)))
    return list(found)


def all_type_vars(expr: Any, mod: IRModule | None = None) -> list[Any]:
    """The type parameters in an expression or a type, in the order of their first uses.

    Args:
        expr: it.
        mod: accepted.
    """
    found = dict.fromkeys(one for typ in _types(expr) for one in _all_parts(typ) if isinstance(one, TypeVar))
    return list(found)


def bound_type_vars(expr: Any, mod: IRModule | None = None) -> list[Any]:
    """The type parameters that functions of an expression have, or types in it; see `all_type_vars`."""
    scopes = [part for typ in _types(expr) for part in _all_parts(typ) if isinstance(part, (FuncType, TypeData))]
    own = [one for node in _nodes(expr) if isinstance(node, Function) for one in node.type_params]
    return list(
        dict.fromkeys([*own, *(one for typ in scopes for one in (typ.type_params if isinstance(typ, FuncType) else typ.type_vars))])
    )


def free_type_vars(expr: Any, mod: IRModule | None = None) -> list[Any]:
    """The type parameters of an expression or a type that nothing in it has; see `all_type_vars`."""
    bound = set(bound_type_vars(expr))
    return [one for one in all_type_vars(expr) if one not in bound]


def _nodes(expr: Any) -> Iterator[Any]:
    return iter(()) if isinstance(expr, Type) else walk(expr)


def _types(expr: Any) -> Iterator[Any]:
    """The types that an expression states, or a type itself."""
    if isinstance(expr, Type):
        yield expr
    for node in _nodes(expr):
        if isinstance(node, Function):
            yield from (*node.type_params, node.ret_type)
        elif isinstance(node, graph.Var) and node.struct_info_annotation is not None:
            yield type_of(node.struct_info_annotation)


def _all_parts(typ: Any) -> Iterator[Any]:
    yield typ
    for one in parts(typ):
        yield from _all_parts(one)


def _calls(expr: Any) -> Iterator[Any]:
    """The calls of operators of an expression, or of all functions of a module."""
    roots = [func for _, func in expr.functions_items()] if isinstance(expr, IRModule) else [expr]
    for root in roots:
        yield from (node for node in walk(root) if isinstance(node, graph.Call) and isinstance(node.op, Op))


def extract_fused_functions(mod: IRModule) -> dict[str, Function]:
    """What kernels of a network compute, by a hash: functions of `transform.FuseOps`, equal ones once.

    Args:
        mod: of Relay.
    """
    fused = FuseOps(3)(SimplifyInference()(mod))
    functions = (
        node for _, func in fused.functions_items() for node in walk(func) if isinstance(node, Function) and "Primitive" in node.attrs
    )
    return {f"{structural_hash(func):016x}": func for func in functions}


def list_op_freqs(mod: Any) -> dict[str, int]:
    """How many calls of each operator a module, or expression, has."""
    return dict(Counter(str(call.op) for call in _calls(mod)))


def list_fake_quantized_op_freqs(mod: IRModule) -> dict[str, int]:
    """How many calls of each operator stand between `qnn.dequantize` and `qnn.quantize`, and could be those of integers.

    quantize(add(relu(dequantize(x)), const))   counts add and relu; quantize(relu(x)) of floats counts nothing
    """
    found: dict[Any, None] = {}
    for end in (one for one in _calls(mod) if one.op == "qnn.quantize"):
        region: dict[Any, None] = {}
        waiting, is_closed = [end.args[0]], True
        while waiting and is_closed:
            node = waiting.pop()
            # What is behind a dequantize is integers already; a variable of floats, or a branch, ends the region nowhere.
            if isinstance(node, graph.Call) and isinstance(node.op, Op):
                if node.op != "qnn.dequantize" and node not in region:
                    region[node] = None
                    waiting += node.args
            elif isinstance(node, (graph.Tuple, graph.TupleGetItem)):
                waiting += operands(node)
            else:
                is_closed = isinstance(node, graph.Constant)
        found.update(region if is_closed else {})
    return dict(Counter(str(call.op) for call in found))


def all_dtypes(expr: Any) -> set[str]:
    """The dtypes of values of an expression."""
    # As a graph, in which what a Let binds has the type of its value.
    mod = to_graph(IRModule.from_expr(expr))
    infos = [getattr(node, "struct_info", None) for _, func in mod.functions_items() for node in walk_graph(func)]
    tensors: list[Any] = [one for info in infos for one in getattr(info, "fields", (info,))]
    return {one.dtype for one in tensors if isinstance(one, TensorStructInfo)}


def well_formed(expr: Any) -> bool:
    """Whether each variable is bound once, and used nowhere but where it is bound: in the body of its Let or function.

    Args:
        expr: an expression, or a module, whose functions are looked at one by one.
    """
    if isinstance(expr, IRModule):
        return all(well_formed(func) for _, func in expr.functions_items() if isinstance(func, Function))
    order = list(walk(expr))
    bound = [var for node in order for var in _bound_by(node)]
    if len(bound) != len(set(bound)):
        return False
    # Of each node the variables that it uses and that it, or what it is made of, doesn't bind: none of them may be bound elsewhere.
    open_vars: dict[Any, frozenset[Any]] = {}
    for node in order:
        own = frozenset((node,)) if isinstance(node, graph.Var) else frozenset[Any]()
        open_vars[node] = own.union(*(open_vars[one] for one in operands(node) if one in open_vars)) - set(_bound_by(node))
    return not open_vars[expr] & set(bound)


def _bound_by(node: Any) -> tuple[Any, ...]:
    if isinstance(node, Match):
        return tuple(var for clause in node.clauses for var in pattern_vars(clause.lhs))
    return (node.var,) if isinstance(node, Let) else tuple(node.params) if isinstance(node, Function) else ()


def unmatched_cases(match: Match, mod: IRModule | None = None) -> list[Pattern]:
    """The values that no clause of a match is for, as patterns; none if it is complete.

    Args:
        match: the match.
        mod: what defines the types.

    Raises:
        DeclarationError: for a type that the module doesn't define.
    """
    definition: Any = (mod or IRModule()).__getitem__
    return list(unmatched([clause.lhs for clause in match.clauses], definition))


def get_total_mac_number(expr: Any) -> int:
    """Multiplications with additions in the products and convolutions of an expression of known shapes."""
    return sum(_macs(call) for call in _calls(expr))


def _macs(call: Any) -> int:
    name = str(call.op).removeprefix("qnn.")
    row = ROWS.get(call.op)
    if row is None or not name.startswith(("nn.conv", "nn.dense", "nn.matmul", "nn.batch_matmul", "conv", "dense", "batch_matmul")):
        return 0
    made: int = prod(call.checked_type.concrete_shape)
    given = row.bound(call)
    if "kernel_layout" in given:
        weights = call.args[1].checked_type.concrete_shape
        # Each result is a sum over all weights of its channel; of a transposed convolution, each operand's element meets all of its own.
        letter = "I" if "transpose" in name else "O"
        over: int = prod(weights) // weights[given["kernel_layout"].index(letter)]
        return over * (prod(call.args[0].checked_type.concrete_shape) if letter == "I" else made)
    left = call.args[0].checked_type.concrete_shape
    depth: int = left[-2 if given.get("transpose_a") else -1]
    return made * depth


def count_layers(expr: Any, valid_ops: Collection[str]) -> int:
    """The most calls of some operators that follow each other, in an expression, or in "main" of a module."""
    expr = expr["main"] if isinstance(expr, IRModule) else expr
    depth: dict[Any, int] = {}
    for node in walk(expr):
        own = int(isinstance(node, graph.Call) and isinstance(node.op, Op) and str(node.op) in valid_ops)
        depth[node] = own + max((depth.get(one, 0) for one in operands(node)), default=0)
    return depth[expr]


def extract_intermdeiate_expr(mod: IRModule, expr_id: int) -> IRModule:
    """A module of the function that computes one call of "main": the one of this number, operands before what is made of them."""
    calls = list(_calls(mod["main"]))
    return IRModule.from_expr(Function(mod["main"].params, calls[expr_id]))


__all__ = [
    "AnnotatedRegion", "AnnotatedRegionSet", "CallGraph", "Feature",
    "all_dtypes", "all_type_vars", "all_vars", "bound_type_vars", "bound_vars", "check_basic_block_normal_form", "check_kind",
    "count_layers", "detect_feature", "extract_fused_functions", "extract_intermdeiate_expr", "free_type_vars", "free_vars",
    "get_calibration_data", "get_total_mac_number", "list_fake_quantized_op_freqs", "list_op_freqs", "post_order_visit",
    "unmatched_cases", "well_formed",
]  # fmt: skip
