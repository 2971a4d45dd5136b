"""FuseOps of Relay: what one kernel computes becomes a function with the attribute "Primitive", called where it stands.

    squeeze(exp(add(x, 1)))   ->   fn (p, Primitive=1) { squeeze(exp(add(p, 1))) }(x)

Which calls are one kernel say the kinds of their operators, by the rules of graphs (`relax.transform.grouping`); calls stay as they are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from ..lower.context import PassContext
from ..lower.passes import ModulePass, deep_recursion
from ..relax import expr as graph
from ..relax.ops.row import Pattern
from ..relax.struct_info import ObjectStructInfo, StructInfo, TensorStructInfo, TupleStructInfo
from ..relax.transform.grouping import Grouping, edge_pattern, most_nodes
from ..relax.transform.post_dominators import Edge
from ..target import Target
from ..tir.function import IRModule
from ..tir.op_registry import Op
from .expr import Attrs, Call, Function, Tuple, TupleGetItem, Var
from .inference import typed
from .kinds import kind_of
from .lets import known_info
from .references import Reference
from .split_args import arguments_of
from .ty import type_of
from .visitor import SameTypes, operands, walk

_PRIMITIVE = "Primitive"
_LINK = "relay.FuseOps.link_params"
# Marks of code generators and devices, and calls of functions, are no kernels of their own.
_NONE = ("annotation.c", "relax.call_", "on_device", "memory.")
_STOP = "annotation.stop_fusion"


def _is_kernel(func: Any) -> bool:
    """Whether a function is a kernel already, or a code generator's."""
    return isinstance(func, Function) and (_PRIMITIVE in func.attrs or "Compiler" in func.attrs)


def _parts(node: Any) -> Sequence[Any]:
    return () if _is_kernel(node) else operands(node)


def _is_node(node: Any) -> bool:
    return isinstance(node, (graph.Call, graph.Tuple, graph.TupleGetItem)) and not isinstance(node, Reference)


def _is_of_tensors(info: StructInfo) -> bool:
    return isinstance(info, TensorStructInfo) or (
        isinstance(info, TupleStructInfo) and all(isinstance(one, TensorStructInfo) for one in info.fields)
    )


def _pattern(node: Any) -> Pattern:
    """How a value depends on what it is computed of; opaque for what no kernel computes."""
    if not _is_of_tensors(known_info(node)):
        return Pattern.OPAQUE
    if isinstance(node, graph.Tuple):
        return Pattern.TUPLE
    if isinstance(node, graph.TupleGetItem):
        return Pattern.INJECTIVE if _is_of_tensors(known_info(node.tuple_value)) else Pattern.OPAQUE
    kind = kind_of(node.op) if isinstance(node.op, Op) else None
    return Pattern.OPAQUE if kind is None else Pattern(kind)


class _Kernels(Grouping):
    """The groups of a function's values.

    Args:
        func: it.
        most: how many nodes a group has at most.
        most_arguments: how many arguments a kernel has at most; 0 for any number.
    """

    def __init__(self, func: Function, most: int, most_arguments: int) -> None:
        order = list(walk(func, _parts))
        self.nodes = [node for node in order if _is_node(node)]
        self.numbers = {id(node): number for number, node in enumerate(self.nodes)}
        self._most_arguments = most_arguments
        patterns = [_pattern(node) for node in self.nodes]
        readers: list[list[Edge]] = [[] for _ in self.nodes]
        leaves = [False] * len(self.nodes)
        for node in order:
            number = self.numbers.get(id(node))
            for one in _parts(node):
                read = self.numbers.get(id(one))
                if read is not None and number is not None:
                    readers[read].append(Edge(number, self._edge(patterns[number], one, node)))
                elif read is not None:
                    leaves[read] = True  # a function returns it, a variable is bound to it, a branch is chosen by it
        super().__init__(patterns, readers, leaves, most)

    @staticmethod
    def _edge(pattern: Pattern, read: Any, node: Any) -> Pattern:
        if pattern == Pattern.TUPLE:
            return Pattern.INJECTIVE
        return edge_pattern(pattern, known_info(read), known_info(node))

    def roots(self) -> list[int]:
        """Of each node the one that its group ends with."""
        return [group.root().members[-1] for group in self.groups]

    def _is_too_large(self, number: int, parent: int) -> bool:
        return super()._is_too_large(number, parent) or (0 < self._most_arguments < self._arguments({*self._joined(number, parent)}))

    def _joined(self, number: int, parent: int) -> list[int]:
        nodes = (number, parent, *(self._between(number, parent) or []))
        return [one for node in nodes for one in self.groups[node].root().members]

    def _arguments(self, members: set[int]) -> int:
        """How many arguments a kernel of some nodes has, its result among them."""
        read = {id(one): one for n in members for one in _parts(self.nodes[n]) if self.numbers.get(id(one)) not in members}
        outside = [one for one in read.values() if not isinstance(one, (Op, graph.Constant))]
        return sum(map(arguments_of, [*outside, self.nodes[max(members)]]))


class _Fusing(SameTypes):
    """Puts calls of kernels where their values are.

    Args:
        numbers: of nodes, by `id`.
        roots: of each node the one that its group ends with.
        link_params: whether all constants stand in kernels; else numbers alone.
    """

    def __init__(self, numbers: Mapping[int, int], roots: Sequence[int], link_params: bool) -> None:
        super().__init__()
        self._numbers, self._roots, self._link_params = numbers, roots, link_params

    def visit_function(self, fn: Function) -> Any:
        """What is a kernel already stays as it is."""
        return fn if _is_kernel(fn) else super().visit_function(fn)

    def visit_call(self, call: Any) -> Any:
        """An operator by a kernel; a mark that fusion stops here is followed, and gone."""
        if call.op == _STOP:
            return self.visit(call.args[0])
        if not isinstance(call.op, Op) or str(call.op).startswith(_NONE) or isinstance(call, Reference):
            return super().visit_call(call)
        return self._kernel(call)

    def visit_tuple_getitem(self, op: Any) -> Any:
        """An element of what a kernel has several of, by that kernel if nothing else of them is used."""
        return self._kernel(op) if self._is_inside(op.tuple_value, self._root(op)) else super().visit_tuple_getitem(op)

    def _root(self, node: Any) -> int:
        return self._roots[self._numbers[id(node)]]

    def _is_inside(self, node: Any, root: int) -> bool:
        number = self._numbers.get(id(node))
        return number is not None and self._roots[number] == root

    def _kernel(self, node: Any) -> Any:
        root, given, made = self._root(node), dict[Any, Var](), dict[Any, Any]()

        def inside(one: Any) -> Any:
            if isinstance(one, graph.Constant) and (self._link_params or one.data.ndim == 0):
                return one
            if not self._is_inside(one, root):
                if not hasattr(one, "struct_info"):
                    return one  # an argument of an operator of graphs that is no value
                if one not in given:
                    info = known_info(one)
                    given[one] = Var(f"p{len(given)}", None if type(info) is ObjectStructInfo else type_of(info))
                return given[one]
            if one not in made:
                made[one] = computed(one)
            return made[one]

        def computed(one: Any) -> Any:
            if isinstance(one, graph.Tuple):
                return Tuple([inside(field) for field in one.fields])
            if isinstance(one, graph.TupleGetItem):
                return TupleGetItem(inside(one.tuple_value), one.index)
            args = [inside(arg) for arg in one.args]
            return Call(one.op, args, one.attrs) if isinstance(one, Call) else replace(one, args=tuple(args))

        body = inside(node)
        return Call(Function(tuple(given.values()), body, None, (), Attrs({_PRIMITIVE: 1})), [self.visit(one) for one in given])


def FuseOps(fuse_opt_level: int = -1) -> ModulePass:
    """A pass: each kernel as a function that is called where it stands, of several operators where one kernel computes them.

    Args:
        fuse_opt_level: 0 for a function for each operator; -1 for the level of the current context.

    The context's configuration says how many nodes a kernel has at most ("relay.FuseOps.max_depth"), and whether constants with axes stand
    in it ("relay.FuseOps.link_params"); the current target, how many arguments it takes.
    """

    def fused(func: Function, ctx: PassContext) -> Any:
        level = ctx.opt_level if fuse_opt_level == -1 else fuse_opt_level
        target = Target.current()
        kernels = _Kernels(func, most_nodes(ctx), target.max_function_args if target is not None else 0)
        if level > 0:
            kernels.by_phases()
        return _Fusing(kernels.numbers, kernels.roots(), bool(ctx.config.get(_LINK, False))).visit(func)

    def on_module(mod: IRModule, ctx: PassContext) -> IRModule:
        made = typed(mod)
        with deep_recursion:
            for var, func in made.functions_items():
                if isinstance(func, Function) and not _is_kernel(func):
                    made.update_func(var, fused(func, ctx))
        return made

    return ModulePass("FuseOps", lambda func, ctx: func, 0, by_user=False, module_func=on_module)
