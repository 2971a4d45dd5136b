"""From a model of ONNX to a module of graphs, node by node."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ... import relax
from ...errors import InternalError, ModelError, TensorExprError, UnsupportedOperatorError
from ...relax.analysis import contains_impure_call
from ...tir.arithmetic import as_int
from ...tir.expr import Var as Symbol
from ...tir.function import IRModule
from . import ops  # noqa: F401  the families of operators enter themselves
from .attributes import Attributes
from .checks import check_model, graphs_of, in_order, load, opsets_of
from .context import Context, Inputs
from .dtypes import DTYPES, dtype_of, is_computed
from .functions import attributes_of_call, has_function, plain_function, standard_function, with_attributes
from .registry import converter, plain_domain
from .shapes import computed
from .signature import check_signature
from .tensors import array_of
from .values import LARGEST_KNOWN, Known, Value, constant_value, known

_CONTROL = frozenset({"If", "Loop", "Scan", "SequenceMap"})
_MOST_ELEMENTS = 1 << 47  # bytes that x86-64 and AArch64 give a process with pages of four levels


class GraphImporter:
    """Imports nodes of one scope: the main graph, the body of a control-flow operator, or of a function.

    Args:
        builder: where values are emitted.
        opsets: domains and their opsets.
        functions: those of the model, by domain and name.
        folder: where the model is.
        outer: the scope around, whose names are seen here.
    """

    def __init__(
        self,
        builder: relax.BlockBuilder,
        opsets: Mapping[str, int],
        functions: Mapping[tuple[str, str], Any],
        folder: Path | None,
        outer: GraphImporter | None = None,
    ) -> None:
        self.builder, self.opsets, self.functions, self.folder, self.outer = builder, opsets, functions, folder, outer
        self.values: dict[str, Value | None] = {"": None}
        self.capture: Callable[[str, Value], Value] | None = None

    def inner(self) -> GraphImporter:
        """A scope inside, which sees names of this one."""
        return GraphImporter(self.builder, self.opsets, self.functions, self.folder, self)

    def find(self, name: str) -> Value | None:
        """The value of a name, in this scope or those around it.

        Raises:
            ModelError: if there is none.
        """
        if name in self.values:
            return self.values[name]
        if self.outer is None:
            raise ModelError(f"no input, initializer or node makes {name!r}")
        value = self.outer.find(name)
        if value is not None:  # a value of its own: what is found out about it here may not hold outside
            value = replace(value) if self.capture is None else self.capture(name, value)
        self.values[name] = value
        return value

    def graph(self, graph: Any, where: str) -> list[Value | None]:
        """Import the initializers and nodes of a graph; returns its results."""
        self.initializers(graph)
        return self.results(graph, where)

    def initializers(self, graph: Any) -> None:
        """Import the initializers of a graph."""
        for proto in graph.initializer:
            self.values[proto.name] = constant_value(array_of(proto, f"initializer {proto.name!r}", self.folder))

    def results(self, graph: Any, where: str) -> list[Value | None]:
        """Import the nodes of a graph whose initializers are there; returns its results."""
        self.nodes(graph.node, where)
        return [self.find(one.name) for one in graph.output]

    def nodes(self, nodes: Sequence[Any], where: str) -> None:
        """Import nodes."""
        for node in in_order(nodes, where):
            self.node(node)

    def node(self, node: Any) -> None:
        """Import a node.

        Raises:
            ModelError: naming the node, with what doesn't fit.
            InternalError: for an exception that no error of ours is; it names the node, too.
        """
        domain = plain_domain(node.domain)
        opset = self.opsets.get(domain, self.opsets.get("", 1))
        where = f"{node.op_type}{f' of {domain}' if domain else ''} {node.name or ', '.join(node.output)!r} (opset {opset})"
        values = [self.find(name) for name in node.input]
        # "" at the end says no more than nothing: converters count the operands that are there.
        while values and values[-1] is None and not node.input[len(values) - 1]:
            values.pop()
        context = Context(self.builder, opset, node, where, values, self)
        attributes = Attributes(node.attribute, where)
        roots = frozenset().union(*(one.roots for one in values if one is not None))
        try:
            results = self._results(context, attributes)
            made = {name: _value(context, result, roots) for name, result in zip(node.output, results, strict=False) if name}
            _check_sizes(context, made.values())
        except ModelError:  # it names a node already, maybe one inside of this one
            raise
        except (TensorExprError, MemoryError) as error:  # what an operator refuses, and constants that nothing holds
            raise ModelError(f"{where}: {error}; {_described(values)}") from error
        except Exception as error:
            # No model has to lead to an exception of another class: a check is missing, or something of ours is broken.
            kind = "" if isinstance(error, InternalError) else f"{type(error).__name__}: "
            raise InternalError(f"{where}: {kind}{error}; {_described(values)}") from error
        self.values.update(made)

    def _results(self, context: Context, attributes: Attributes) -> list[Any]:
        node, opset = context.node, context.opset
        # A function of the model goes before an operator of the standard that has its name.
        own = self.functions.get((plain_domain(node.domain), node.op_type))
        if own is not None:
            if len(context.values) > len(own.input):
                context.fail(f"{len(context.values)} operands, where the function has {len(own.input)}")
            return self.call(own, context)
        check_signature(node, opset, context.where)
        # What these names mean is the standard's; in another domain they may mean anything.
        if not plain_domain(node.domain):
            shapes = computed(context, attributes)
            if shapes is not None:
                return shapes
        made = converter(node.domain, node.op_type, opset)
        if made is None:
            function = standard_function(node, opset, [None if one is None else one.info for one in context.values])
            if function is None:
                raise UnsupportedOperatorError(f"{context.where} can't be imported: the standard has no function for these operands")
            return self.call(function, context)
        found = made(context, Inputs(context), attributes)
        if isinstance(found, (list, tuple)):
            return list(found)
        if len(node.output) == 1 or isinstance(found, (Value, Known, np.ndarray)):
            return [found]
        whole = context.emit(found)
        info = whole.struct_info
        count = len(info.fields) if isinstance(info, relax.TupleStructInfo) else 1
        return [relax.TupleGetItem(whole, n) for n in range(count)] if isinstance(info, relax.TupleStructInfo) else [whole]

    def call(self, function: Any, context: Context) -> list[Any]:
        """Import the nodes of a function at a call."""
        opsets = {**self.opsets, **{plain_domain(one.domain): one.version for one in function.opset_import}}
        # Without `outer`: a function sees its operands and none of the names around its call.
        scope = GraphImporter(self.builder, opsets, self.functions, self.folder)
        for n, name in enumerate(function.input):
            scope.values[name] = context.value(n)
        given = attributes_of_call(context.node, function, context.opset)
        scope.nodes(with_attributes(function.node, given), f"function {function.name}")
        return [scope.find(name) if name in scope.values or context.wants(n) else None for n, name in enumerate(function.output)]


def _described(values: Iterable[Value | None]) -> str:
    return f"its operands are ({', '.join('none' if one is None else str(one.info) for one in values)})"


def _value(context: Context, result: Any, roots: frozenset[str]) -> Value | None:
    """What a function for an operator returned, as a value."""
    match result:
        case None:
            return None
        case Value():
            return result
        case Known():
            return Value(None, result, roots)
        case np.ndarray() | np.generic():
            return constant_value(result)
    made = context.emit(result)
    if isinstance(made, relax.Constant):
        array = made.data.numpy()
        return Value(made, known(array, str(made.data.dtype)) if array.size <= LARGEST_KNOWN else None)
    return Value(made, None, roots)


def _check_sizes(context: Context, values: Iterable[Value | None]) -> None:
    """Results have extents of at least 0, and no more bytes than a process can address."""
    for one in values:
        info = None if one is None else one.info
        if not isinstance(info, relax.TensorStructInfo) or info.extents is None or not info.dtype:
            continue
        extents = [as_int(extent) for extent in info.extents]
        known = [extent for extent in extents if extent is not None]
        if min(known, default=0) < 0:
            context.fail(f"its result would have a negative extent: {info}")
        if math.prod(known) >= _MOST_ELEMENTS and None not in extents:
            context.fail(f"its result has more elements than a process can address: {info}")


def unsupported(model: Any, opsets: Mapping[str, int]) -> list[str]:
    """The operators of a model that can't be imported, with their nodes."""
    missing: dict[str, list[str]] = {}
    own = {(plain_domain(one.domain), one.name) for one in model.functions}
    places = [(node, dict(opsets), "") for graph in graphs_of(model.graph) for node in graph.node]
    for function in model.functions:
        inside = {**opsets, **{plain_domain(one.domain): one.version for one in function.opset_import}}
        places += [(node, inside, "") for node in _all_nodes(function.node)]
    seen: set[tuple[str, str, int]] = set()
    while places:
        node, versions, around = places.pop()
        domain = plain_domain(node.domain)
        opset = versions.get(domain, versions.get("", 1))
        if (domain, node.op_type) in own or converter(domain, node.op_type, opset):
            continue
        if has_function(domain, node.op_type, opset):
            # Each body once: functions of the standard use each other, and a model calls the same ones again and again.
            if (domain, node.op_type, opset) not in seen:
                seen.add((domain, node.op_type, opset))
                body = plain_function(domain, node.op_type, opset)
                inside = {**versions, **{plain_domain(one.domain): one.version for one in body.opset_import}} if body else {}
                places += [(one, inside, f" in {node.op_type}") for one in _all_nodes(body.node)] if body else []
            continue
        name = f"{f'{domain}::' if domain else ''}{node.op_type} (opset {opset}){around}"
        missing.setdefault(name, []).append(node.name or ", ".join(node.output))
    return [f"{name}: {', '.join(map(repr, nodes[:8]))}{' ...' if len(nodes) > 8 else ''}" for name, nodes in sorted(missing.items())]


def _all_nodes(nodes: Sequence[Any]) -> Iterator[Any]:
    for node in nodes:
        yield node
        for one in node.attribute:
            # 5 is AttributeProto.GRAPH.
            for graph in [*([one.g] if one.type == 5 else ()), *one.graphs]:
                yield from _all_nodes(graph.node)


def _input_info(proto: Any, shape: Any, dtype: Any, symbols: dict[str, Symbol]) -> relax.StructInfo:
    """What is known of an input of the model."""
    kind = proto.type.WhichOneof("value")
    if kind != "tensor_type":
        return relax.ObjectStructInfo()
    tensor = proto.type.tensor_type
    stated = dtype or dtype_of(tensor.elem_type, f"input {proto.name!r}")
    if not is_computed(stated):
        return relax.ObjectStructInfo()
    if shape is None:
        if not tensor.HasField("shape"):
            return relax.TensorStructInfo(None, stated)
        shape = [one.dim_value if one.WhichOneof("value") == "dim_value" else one.dim_param or None for one in tensor.shape.dim]
    elif tensor.HasField("shape") and len(shape) != len(tensor.shape.dim):  # extents may be others, as a batch of more images
        has = ", ".join(str(one.dim_value) if one.WhichOneof("value") == "dim_value" else one.dim_param or "?" for one in tensor.shape.dim)
        raise ModelError(
            f"input {proto.name!r} has {len(tensor.shape.dim)} dimensions, ({has}); the shape that was given is {tuple(shape)}"
        )
    found: list[Any] = []
    for n, one in enumerate(shape):
        if isinstance(one, str) or one is None or (isinstance(one, int) and one < 0):
            # "?" is how models say that nothing is known, not that all such extents are equal.
            name = one if isinstance(one, str) and any(c.isalnum() for c in one) else f"{proto.name}_{n}"
            # One symbol for a name in all inputs: that is how the model says that their extents are equal.
            found.append(symbols.setdefault(name, Symbol("".join(c if c.isalnum() else "_" for c in name), "int64")))
        else:
            found.append(one)
    return relax.TensorStructInfo(found, stated)


def _parameter_name(name: str, sanitize: bool, taken: set[str]) -> str:
    made = name.replace(".", "_") if sanitize else name
    made = f"input_{made}" if sanitize and not made[:1].isalpha() and made[:1] != "_" else made
    name, number = made, 0
    while name in taken:
        number += 1
        name = f"{made}_{number}"
    taken.add(name)
    return name


def from_onnx(
    model: Any,
    shape_dict: Mapping[str, Sequence[Any]] | None = None,
    dtype_dict: str | Mapping[str, str] | None = "float32",
    opset: int | None = None,
    keep_params_in_input: bool = False,
    sanitize_input_names: bool = True,
    *,
    values: Mapping[str, Any] | None = None,
    infos: Mapping[str, relax.StructInfo | None] | None = None,
    open_values: bool = False,
) -> IRModule:
    """Import a model of ONNX.

    Args:
        model: a ModelProto, its bytes, or the path of a file.
        shape_dict: shapes of inputs, where they aren't those of the model: extents, or names of symbols.
        dtype_dict: dtypes of inputs by name; a single one is accepted and says nothing, as models state them.
        opset: taken for the model's opset, if stated.
        keep_params_in_input: whether initializers are parameters of "main", with values in its attribute "params".
        sanitize_input_names: whether "." in names of inputs becomes "_", and "input_" stands in front of what is no letter.
        values: what inputs are that say shapes, as NumPy's arrays; they stay inputs, and have to be that at each call.
        infos: what inputs are, in place of what the model states; None for an optional that has no value.
        open_values: whether inputs that say shapes, and have no values here, say them when the graph runs, where operators can do that.

    Returns:
        a module with a function "main", whose attribute "num_input" counts the inputs that are no initializers.

    Raises:
        ModelError: for a model that is malformed, contradictory or hostile.
        UnsupportedOperatorError: naming all operators that can't be imported.
        NeedsValueError: where a shape depends on the value of an input.
    """
    proto, folder = load(model)
    opsets = opsets_of(proto, opset)
    check_model(proto, opsets, folder)
    missing = unsupported(proto, opsets)
    if missing:
        raise UnsupportedOperatorError("operators that can't be imported:\n  " + "\n  ".join(missing))
    dtypes = dtype_dict if isinstance(dtype_dict, Mapping) else {}
    made = _Import(proto, opsets, folder, shape_dict or {}, dtypes, values or {}, infos or {}, open_values)
    return made.module(keep_params_in_input, sanitize_input_names)


class _Import:
    """One import: the parameters of "main", and its body."""

    def __init__(
        self,
        proto: Any,
        opsets: Mapping[str, int],
        folder: Path | None,
        shapes: Mapping[str, Any],
        dtypes: Mapping[str, str],
        values: Mapping[str, Any],
        infos: Mapping[str, Any],
        open_values: bool,
    ) -> None:
        self.proto, self.graph, self.folder = proto, proto.graph, folder
        self.builder = relax.BlockBuilder()
        functions = {(plain_domain(one.domain), one.name): one for one in proto.functions}
        self.scope = GraphImporter(self.builder, opsets, functions, folder)
        self._shapes, self._dtypes, self._values, self._infos = shapes, dtypes, values, infos
        self._open_values = open_values
        names = {one.name for one in self.graph.input}
        wrong = sorted({*shapes, *dtypes, *values, *infos} - names)
        if wrong:
            raise ModelError(f"the model has no input {', '.join(map(repr, wrong))}; it has {', '.join(map(repr, sorted(names)))}")

    def _input(self, one: Any, symbols: dict[str, Symbol], name: str) -> relax.Var:
        info = self._infos.get(one.name)
        if one.name in self._infos and info is None:
            # To its users it is an operand that is left out.
            self.scope.values[one.name] = None
            return relax.Var(name, relax.ObjectStructInfo())
        var = relax.Var(name, info or _input_info(one, self._shapes.get(one.name), self._dtypes.get(one.name), symbols))
        given = self._values.get(one.name)
        if given is not None:
            array = np.asarray(given)
            self.scope.values[one.name] = Value(var, known(array, str(array.dtype)))
        else:
            stated = one.type.tensor_type.elem_type if one.type.WhichOneof("value") == "tensor_type" else 0
            element = "" if isinstance(var.struct_info, relax.TensorStructInfo) else DTYPES.get(stated, "")
            # What depends on no input of the model is what the graph computes: its numbers get symbols.
            self.scope.values[one.name] = Value(var, None, frozenset() if self._open_values else frozenset([one.name]), element)
        return var

    def module(self, keep_params: bool, sanitize: bool) -> IRModule:
        """The module."""
        symbols: dict[str, Symbol] = {}
        taken: set[str] = set()
        initial = {one.name: one for one in self.graph.initializer}
        inputs = [one for one in self.graph.input if one.name not in initial]
        params = [self._input(one, symbols, _parameter_name(one.name, sanitize, taken)) for one in inputs]
        attrs: dict[str, Any] = {"num_input": len(params)}
        if keep_params:
            kept = []
            for name, proto in initial.items():
                array = array_of(proto, f"initializer {name!r}", self.folder)
                value = constant_value(array)
                value.expr = relax.Var(_parameter_name(name, sanitize, taken), value.info)
                self.scope.values[name] = value
                params.append(value.expr)
                kept.append(array)
            attrs["params"] = tuple(relax.const(one).data for one in kept)
        else:
            self.scope.initializers(self.graph)
        has_control = any(node.op_type in _CONTROL for graph in graphs_of(self.graph) for node in graph.node)
        with self.builder.function("main", params, attrs):
            # A dataflow block holds no branches, and what functions bring along is seen only when they are called.
            if has_control or any(one.node for one in self.proto.functions):
                result = self._body()
            else:
                with self.builder.dataflow():
                    made = self._body()
                    fields = made.fields if isinstance(made, relax.Tuple) else (made,)
                    kept_vars = tuple(self.builder.emit_output(one) for one in fields)
                    result = relax.Tuple(kept_vars) if isinstance(made, relax.Tuple) else kept_vars[0]
            self.builder.emit_func_output(result)
        made = self.builder.get()
        main: Any = made["main"]
        if contains_impure_call(main, mod=made):  # branches that stop the graph
            made.update_func("main", replace(main, is_pure=False))
        return made

    def _body(self) -> Any:
        found = self.scope.results(self.graph, "the graph")
        results: list[Any] = []
        for value, stated in zip(found, self.graph.output, strict=True):
            if value is None:
                raise ModelError(f"nothing makes the output {stated.name!r}")
            context = Context(self.builder, 0, None, f"output {stated.name!r}", [value], self.scope)
            results.append(context.expression(value))
        return results[0] if len(results) == 1 else relax.Tuple(tuple(results))
