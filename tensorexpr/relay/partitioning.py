"""Parts of a network for code generators of others: composite functions, marks around what a generator computes, functions of it.

    MergeComposite        nn.relu(nn.conv2d(x, w))    ->  fn (x, w) { ... Composite="mine.conv2d_relu" }(x, w)
    AnnotateTarget        f(x)                        ->  compiler_end(f(compiler_begin(x, "mine")), "mine")
    MergeCompilerRegions  begin(end(y)) of one target ->  y, where nothing else has to run between
    PartitionGraph        what is between the marks   ->  @tvmgen_default_mine_main_0(x), with Compiler="mine"

`relay.build` hands these functions to what is registered as relay.ext.mine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from ..dataclass import dataclass, field, replace
from ..errors import DeclarationError
from ..lower.passes import ModulePass, deep_recursion
from ..relax import expr as graph
from ..relax.transform.merge_composite import Regions
from ..tir.function import GlobalVar, IRModule
from ..tir.op_registry import Op
from .dataflow_pattern import partition
from .dataflow_pattern.patterns import graph_operands
from .expr import Attrs, Call, Function, Let, Tuple, TupleGetItem, Var
from .ops.annotation import compiler_begin, compiler_end
from .ty import type_of
from .visitor import ExprMutator, walk

_BEGIN, _END = "annotation.compiler_begin", "annotation.compiler_end"


def _functions(name: str, run: Callable[[Function], Any]) -> ModulePass:
    """A pass on each function that isn't a generator's already."""

    def on_module(mod: IRModule, ctx: Any) -> IRModule:
        made = mod.clone()
        with deep_recursion:
            for var, func in mod.functions_items():
                if isinstance(func, Function) and "Compiler" not in func.attrs:
                    made.update_func(var, run(func))
        return made

    return ModulePass(name, lambda func, ctx: func, 0, by_user=False, module_func=on_module)


def MergeComposite(pattern_table: Sequence[tuple[Any, ...]]) -> ModulePass:
    """A pass: what patterns match becomes a function with the attribute "Composite", the pattern's name.

    Args:
        pattern_table: tuples (name, pattern) or (name, pattern, check) of `relay.dataflow_pattern`; earlier ones come first. `check` is a
            predicate of what matched. The first part of a name, "mine" of "mine.conv2d_relu", is that of a code generator.

    Raises:
        DeclarationError: for other tuples.
    """
    for entry in pattern_table:
        if not isinstance(entry, tuple) or len(entry) not in (2, 3) or not isinstance(entry[0], str):
            raise DeclarationError(f"MergeComposite: a pattern table has tuples (name, pattern) or (name, pattern, check), not {entry!r}")

    def run(func: Function) -> Any:
        for name, pattern, *check in pattern_table:
            func = partition(pattern, func, {"Composite": name}, *check)
        return func

    return _functions("MergeComposite", run)


def _order(expr: Any) -> Iterator[Any]:
    """The values that a function computes itself, operands first, each once: not those in functions that are called."""
    return walk(expr, _parts)


def _parts(node: Any) -> tuple[Any, ...]:
    match node:
        case Let(_, value, body):
            return (value, body)
        case graph.If(cond, yes, no):
            return (cond, yes, no)
    return graph_operands(node)


def _places(body: Any) -> dict[int, frozenset[int]]:
    """By `id`: the branches in which a value is computed, {0} outside of all. A region has values of the same ones: it runs as a whole."""
    found: dict[int, set[int]] = {}
    waiting, number = [(body, frozenset[int]())], 0
    while waiting:
        root, around = waiting.pop()

        def own(node: Any, around: frozenset[int] = around) -> tuple[Any, ...]:
            return () if id(node) in around else (node.cond,) if isinstance(node, graph.If) else _parts(node)

        here = [node for node in walk(root, own) if id(node) not in around]
        inside = around | {id(node) for node in here}
        for node in here:
            found.setdefault(id(node), set()).add(number)
            if isinstance(node, graph.If):
                waiting += [(node.true_branch, inside), (node.false_branch, inside)]
        number += 1
    return {key: frozenset(numbers) for key, numbers in found.items()}


def _is(node: Any, name: str) -> bool:
    return isinstance(node, graph.Call) and isinstance(node.op, Op) and str(node.op) == name


def _bare(node: Any) -> Any:
    """A value without the marks around it."""
    while _is(node, _BEGIN) or _is(node, _END):
        node = node.args[0]
    return node


def _chosen(node: Any, targets: Sequence[str]) -> str | None:
    """The first of some targets that computes a call; None if none does, or it is no call."""
    if not isinstance(node, graph.Call) or _is(node, _BEGIN) or _is(node, _END):
        return None
    if isinstance(node.op, Function):
        name = str(node.op.attrs.get("Composite", "")).partition(".")[0]
        return name if name in targets else None
    if not isinstance(node.op, Op):
        return None
    for target in targets:
        supports = node.op.get_attr(f"target.{target}")
        if supports is not None and supports(node):
            return target
    return None


def AnnotateTarget(targets: str | Sequence[str], include_non_call_ops: bool = True) -> ModulePass:
    """A pass: marks around each call that a code generator computes.

    Which these are says a predicate of the call, `register_op_attr("nn.relu", "target.mine", f)`; and composite functions whose name begins
    with "mine.".

    Args:
        targets: names of generators; the first one that computes a call gets it.
        include_non_call_ops: tuples, and elements of tuples, of values that one generator computes are its too.
    """
    names = [targets] if isinstance(targets, str) else list(targets)

    def run(func: Function) -> Any:
        chosen: dict[int, str] = {}
        places = _places(func.body)
        for node in _order(func.body):
            target = _chosen(node, names)
            if target is None and include_non_call_ops and isinstance(node, (graph.Tuple, graph.TupleGetItem)):
                # Of values around a branch it would be a function by itself.
                of = {chosen.get(id(one)) if places[id(one)] == places[id(node)] else None for one in graph_operands(node)}
                target = of.pop() if len(of) == 1 else None
            if target is not None:
                chosen[id(node)] = target
        return _Annotating(func, chosen).visit(func) if chosen else func

    return _functions("AnnotateTarget", run)


class _OwnScope(ExprMutator):
    """Rewrites the values that a function computes itself, from the operands up."""

    def __init__(self, func: Function) -> None:
        super().__init__()
        self._func = func

    def visit_function(self, fn: Function) -> Any:
        """The function that is rewritten; others, which are called or bound, stay."""
        if fn is not self._func:
            return fn
        for node in _order(fn.body):
            self.visit(node)
        body = self.visit(fn.body)
        return fn if body is fn.body else replace(fn, body=body)


class _Annotating(_OwnScope):
    def __init__(self, func: Function, chosen: Mapping[int, str]) -> None:
        super().__init__(func)
        self._chosen = chosen

    def visit(self, expr: Any) -> Any:
        """An expression, with marks if a generator computes it."""
        target = self._chosen.get(id(expr))
        if target is None or expr in self.memo_map:
            return super().visit(expr)
        made = _of_operands(expr, [compiler_begin(self.visit(one), target) for one in graph_operands(expr)])
        self.memo_map[expr] = made = compiler_end(made, target)
        return made


def _of_operands(expr: Any, made: Sequence[Any]) -> Any:
    """A call, tuple or element of one with other operands."""
    match expr:
        case graph.Call():
            return Call(expr.op, made, expr.attrs)
        case graph.Tuple():
            return Tuple(made)
        case graph.TupleGetItem(_, index):
            return TupleGetItem(made[0], index)
    return expr


def _targets(order: Sequence[Any]) -> dict[int, str]:
    """What marks say: the targets of values, by `id`."""
    found = {id(node.args[0]): str(node.attrs["compiler"]) for node in order if _is(node, _END)}
    # Only results are marked: what they are computed of, up to the next marks, belongs to them.
    for node in reversed(order):
        if id(node) in found:
            inside = (one for one in graph_operands(node) if not _is(one, _BEGIN) and not _is(one, _END))
            found.update({id(one): found[id(node)] for one in inside if graph_operands(one)})
    return found


def _needed(node: Any, known: Mapping[int, Any], bound: Mapping[Any, Any]) -> list[Any]:
    """The values that a value is computed of: its operands, what its functions use, and what a variable is bound to."""
    closed = [node] if isinstance(node, Function) else [node.op] if isinstance(node, graph.Call) and not isinstance(node.op, Op) else []
    inside = [known[id(one)] for part in closed for one in walk(part) if id(one) in known and one is not node]
    parts = (bound[node],) if isinstance(node, graph.Var) and node in bound else _parts(node)
    return [*(known[id(_bare(one))] for one in parts), *inside]


def MergeCompilerRegions() -> ModulePass:
    """A pass: no marks between values of one target that can run together, with nothing else between them."""

    def run(func: Function) -> Any:
        order, places = list(_order(func.body)), _places(func.body)
        targets, nodes = _targets(order), [node for node in order if not _is(node, _BEGIN) and not _is(node, _END)]
        names = {id(node): graph.Var(f"v{n}") for n, node in enumerate(nodes)}
        bound = {node.var: node.value for node in nodes if isinstance(node, Let)}
        said = {names[id(node)]: (targets[id(node)], places[id(node)]) if id(node) in targets else None for node in nodes}
        bindings = [graph.VarBinding(names[id(node)], graph.Tuple(tuple(_needed(node, names, bound)))) for node in nodes]
        found = Regions(bindings, lambda binding: said[binding.var])
        regions = {id(node): region for node, region in zip(nodes, found.of, strict=True) if id(node) in targets}
        return _Merging(func, regions).visit(func) if regions else func

    return _functions("MergeCompilerRegions", run)


class _Merging(_OwnScope):
    def __init__(self, func: Function, regions: Mapping[int, int]) -> None:
        super().__init__(func)
        self._regions = regions

    def visit(self, expr: Any) -> Any:
        """An expression; one of a region with those operands as they are that are of the same one."""
        region = self._regions.get(id(expr))
        if region is None or expr in self.memo_map:
            return super().visit(expr)
        inside = [_bare(one) if self._regions.get(id(_bare(one))) == region else one for one in graph_operands(expr)]
        self.memo_map[expr] = made = _of_operands(expr, [self.visit(one) for one in inside])
        return made


@dataclass(eq=False)
class _Region:
    """What becomes a function.

    Args:
        target: who computes it.
        symbol: the function's name.
        inputs: by `id`: what it is computed of.
        outputs: by `id`: what is used outside, with its place among the results.
        call: of the function, once there is one; False while its arguments are made.
    """

    target: str
    symbol: str
    inputs: dict[int, Any] = field(default_factory=dict)
    outputs: dict[int, tuple[int, Any]] = field(default_factory=dict)
    call: Any = None

    def function(self) -> Function:
        """The function; constants that aren't inputs stand in it."""
        params = {key: Var(f"{self.target}_{n}_i{n}", one.struct_info) for n, (key, one) in enumerate(self.inputs.items())}
        body = _Inside(params)
        results = [body.visit(one) for _, one in self.outputs.values()]
        result = results[0] if len(results) == 1 else Tuple(results)
        attrs = {"Primitive": 1, "Compiler": self.target, "global_symbol": self.symbol, "Inline": 1}
        return Function(tuple(params.values()), result, type_of(result.struct_info), (), Attrs(attrs))


class _Inside(ExprMutator):
    """The values of a region, of its function's parameters."""

    def __init__(self, params: Mapping[int, Any]) -> None:
        super().__init__()
        self._params = params

    def visit_call(self, call: Any) -> Any:
        """A call; what a mark begins is a parameter, or a constant."""
        if _is(call, _BEGIN):
            return self._params.get(id(call.args[0]), call.args[0])
        return self.visit(call.args[0]) if _is(call, _END) else super().visit_call(call)


def _regions(func: Function, name: Callable[[str, int], str], bind_constants: bool) -> dict[int, _Region]:
    """The regions that marks state, by the `id` of each value in one."""
    order = list(_order(func.body))
    targets, found = _targets(order), dict[int, _Region]()
    inside = [node for node in order if id(node) in targets]
    joined = {id(node): id(node) for node in inside}

    def root(key: int) -> int:
        while joined[key] != key:
            key = joined[key]
        return key

    for node in inside:
        for one in graph_operands(node):
            if id(one) in joined:
                joined[root(id(one))] = root(id(node))
    for node in inside:
        key = root(id(node))
        if key not in found:
            found[key] = _Region(targets[id(node)], name(targets[id(node)], len(found)))
        region = found[key]
        for one in graph_operands(node):
            given = one.args[0] if _is(one, _BEGIN) else None
            if given is not None and not (bind_constants and isinstance(given, graph.Constant)):
                region.inputs.setdefault(id(given), given)
    by_value = {id(node): found[root(id(node))] for node in inside}
    for node in walk(func.body):  # a result may be used in a function alone
        if _is(node, _END) and id(node.args[0]) in by_value:
            outputs = by_value[id(node.args[0])].outputs
            outputs.setdefault(id(node.args[0]), (len(outputs), node.args[0]))
    return by_value


class _Partitioning(_OwnScope):
    """Calls of regions' functions in place of what they compute."""

    def __init__(self, func: Function, regions: Mapping[int, _Region]) -> None:
        super().__init__(func)
        self._regions = regions

    def visit_call(self, call: Any) -> Any:
        """A call; a result of a region is one of its function."""
        region = self._regions.get(id(call.args[0])) if _is(call, _END) else None
        if region is None:
            return super().visit_call(call)
        if region.call is False:
            raise DeclarationError(
                f"PartitionGraph: what is marked for {region.target!r} is computed of its own results, by way of something outside; "
                "MergeCompilerRegions makes regions that can run at once"
            )
        if region.call is None:
            region.call = False
            region.call = Call(GlobalVar(region.symbol), [self.visit(one) for one in region.inputs.values()])
        place = region.outputs[id(call.args[0])][0]
        return region.call if len(region.outputs) == 1 else TupleGetItem(region.call, place)


def PartitionGraph(mod_name: str = "default", bind_constants: bool = True) -> ModulePass:
    """A pass: what is between marks becomes a function with the attribute "Compiler", the generator's name.

    Args:
        mod_name: part of the names of these functions, tvmgen_default_mine_main_0.
        bind_constants: constants stand in the functions; else they are parameters.

    Raises:
        DeclarationError: (the pass) for marks around what can't run at once.
    """

    def on_module(mod: IRModule, ctx: Any) -> IRModule:
        made = mod.clone()
        with deep_recursion:
            for var, func in mod.functions_items():
                if not isinstance(func, Function) or "Compiler" in func.attrs:
                    continue
                regions = _regions(func, lambda target, n, of=var.name_hint: f"tvmgen_{mod_name}_{target}_{of}_{n}", bind_constants)
                for region in dict.fromkeys(regions.values()):
                    made.update_func(GlobalVar(region.symbol), region.function())
                if regions:
                    made.update_func(var, _Partitioning(func, regions).visit(func))
        return made

    return ModulePass("PartitionGraph", lambda func, ctx: func, 0, by_user=False, module_func=on_module)
