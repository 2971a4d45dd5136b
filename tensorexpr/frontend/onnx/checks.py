"""What a model must be before anything is made of it: each check raises a ModelError that says where."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ...errors import ModelError
from .file import model_bytes
from .registry import plain_domain
from .tensors import check_tensor

_LARGEST_LIST = 1 << 20  # elements of an attribute that is a list; shapes and pads have some
_DEEPEST = 32  # graphs inside of graphs
_OWN_DOMAINS = ("", "ai.onnx.ml", "ai.onnx.preview", "ai.onnx.training", "ai.onnx.preview.training", "com.microsoft")


def load(model: Any) -> tuple[Any, Path | None]:
    """A model as a ModelProto, which is the one that is given, and the folder of its file.

    Args:
        model: a ModelProto, bytes, or a path.

    Raises:
        ModelError: without the package `onnx`, or for what is no model.
    """
    try:
        import onnx
        from google.protobuf import message
    except ImportError:
        raise ModelError("models of ONNX are read by the package `onnx`, which isn't installed: pip install tensorexpr[onnx]") from None
    if isinstance(model, onnx.ModelProto):
        return model, None
    folder = None
    if isinstance(model, (str, Path)):
        path = Path(model)
        if not path.is_file():
            raise ModelError(f"{path} is no file")
        model, folder = model_bytes(path), path.parent
    if not isinstance(model, (bytes, bytearray, memoryview)):
        raise ModelError(f"a model is a ModelProto, its bytes or a path, not {type(model).__name__}")
    try:
        return onnx.ModelProto.FromString(bytes(model)), folder
    except (message.DecodeError, ValueError, RecursionError) as error:
        raise ModelError(f"it is no model of ONNX, or a part of one: {error}") from None


def graphs_of(graph: Any, depth: int = 0) -> Iterator[Any]:
    """A graph and those inside of it.

    Raises:
        ModelError: for more of them inside of each other than anybody writes.
    """
    if depth > _DEEPEST:
        raise ModelError(f"graphs are inside of each other more than {_DEEPEST} deep")
    yield graph
    for node in graph.node:
        for one in node.attribute:
            for inner in [*([one.g] if one.HasField("g") else ()), *one.graphs]:
                yield from graphs_of(inner, depth + 1)


def opsets_of(model: Any, opset: int | None = None) -> dict[str, int]:
    """The opset of each domain that a model imports.

    Args:
        model: its ModelProto.
        opset: of the standard's domain, in place of what the model says.

    Raises:
        ModelError: for a domain that is imported twice.
    """
    found: dict[str, int] = {}
    for one in model.opset_import:
        domain = plain_domain(one.domain)
        if domain in found:
            raise ModelError(f"the model imports the domain {one.domain!r} twice")
        found[domain] = one.version if domain or opset is None else opset
    return found


def check_model(model: Any, opsets: Mapping[str, int], folder: Path | None) -> None:
    """Check versions, names, tensors and the order of nodes.

    Args:
        model: its ModelProto.
        opsets: of its domains.
        folder: of its file.

    Raises:
        ModelError: saying what is wrong.
    """
    from onnx import defs

    if not model.HasField("graph"):
        raise ModelError("the model has no graph")
    _check_texts(model, 0)
    if "" not in opsets and any(not plain_domain(one.domain) for one in model.graph.node):
        raise ModelError("the model states no opset: its opset_import is missing")
    newest = defs.onnx_opset_version()
    if not 1 <= opsets.get("", 1) <= newest:
        raise ModelError(f"the model is of opset {opsets['']}; the installed package `onnx` knows 1 to {newest}")
    functions: set[tuple[str, str]] = set()
    for function in model.functions:
        key = plain_domain(function.domain), function.name
        if key in functions:
            raise ModelError(f"the model has two functions {function.domain}::{function.name}")
        functions.add(key)
        _check_names(function.node, list(function.input), [], f"function {function.name}", folder)
    _check_recursion(model)
    if not model.graph.output:
        raise ModelError("the graph has no output")
    _check_graph(model.graph, "the graph", set(), folder, 0)


def _check_texts(message: Any, depth: int) -> None:
    """Names are text, and messages aren't inside of each other without end."""
    # A graph inside of another is several messages deeper: node, attribute, graph; types have their own.
    if depth > 8 * _DEEPEST:
        raise ModelError("graphs or types are inside of each other deeper than anybody writes")
    for field, value in message.ListFields():
        if field.type == field.TYPE_STRING:
            if any(isinstance(one, bytes) for one in (value if field.is_repeated else [value])):
                raise ModelError(f"{field.full_name} is no text in UTF-8: {value!r}")
        elif field.type == field.TYPE_MESSAGE:
            for one in value if field.is_repeated else [value]:
                _check_texts(one, depth + 1)


def _check_recursion(model: Any) -> None:
    """Functions must not call themselves."""
    bodies = {(plain_domain(one.domain), one.name): one for one in model.functions}
    done: set[Any] = set()

    def visit(key: Any, path: tuple[Any, ...]) -> None:
        if key in path:
            raise ModelError(f"functions call each other in a circle: {' -> '.join(name for _, name in (*path, key))}")
        # Each once: of n functions that call the next one twice there are 2^n paths.
        if key in done or key not in bodies:
            return
        if len(path) > _DEEPEST:
            raise ModelError(f"functions call each other more than {_DEEPEST} deep")
        for graph in _Body(bodies[key].node), *(g for node in bodies[key].node for g in _inner(node)):
            for node in graph.node:
                visit((plain_domain(node.domain), node.op_type), (*path, key))
        done.add(key)

    for key in bodies:
        visit(key, ())


class _Body:
    """The nodes of a function, as a graph has them."""

    def __init__(self, node: Sequence[Any]) -> None:
        self.node = node


def _inner(node: Any) -> Iterator[Any]:
    for one in node.attribute:
        for inner in [*([one.g] if one.HasField("g") else ()), *one.graphs]:
            yield from graphs_of(inner, 1)


def _check_graph(graph: Any, where: str, outer: set[str], folder: Path | None, depth: int) -> None:
    if depth > _DEEPEST:
        raise ModelError(f"graphs are inside of each other more than {_DEEPEST} deep")
    inputs = [one.name for one in graph.input]
    _check_twice(inputs, f"{where}: inputs")
    initial = [one.name for one in graph.initializer]
    _check_twice(initial, f"{where}: initializers")
    for one in graph.initializer:
        check_tensor(one, f"initializer {one.name!r}", folder)
    if graph.sparse_initializer:
        raise ModelError(f"{where} has sparse initializers, which can't be imported; make them dense")
    for one in graph.input:
        if not one.name:
            raise ModelError(f"{where}: an input has no name")
        if depth == 0 and one.type.WhichOneof("value") is None:
            raise ModelError(f"{where}: the input {one.name!r} has no type")
        _check_extents(one, where)
    made = _check_names(graph.node, inputs, initial, where, folder, outer, depth)
    for one in graph.output:
        if one.name not in made and one.name not in outer:
            raise ModelError(f"{where}: nothing makes the output {one.name!r}")


def _check_extents(one: Any, where: str) -> None:
    if one.type.WhichOneof("value") != "tensor_type":
        return
    for extent in one.type.tensor_type.shape.dim:
        if extent.WhichOneof("value") == "dim_value" and not -1 <= extent.dim_value < 1 << 40:
            raise ModelError(f"{where}: the input {one.name!r} has an extent of {extent.dim_value}")


def _check_twice(names: Sequence[str], what: str) -> None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise ModelError(f"{what}: {name!r} is there twice")
        seen.add(name)


def _check_names(
    nodes: Sequence[Any],
    inputs: Sequence[str],
    initial: Sequence[str],
    where: str,
    folder: Path | None,
    outer: set[str] | None = None,
    depth: int = 0,
) -> set[str]:
    """Every value is made once, before it is used; returns all names."""
    made = {*inputs, *initial}
    for node in nodes:
        for name in node.output:
            # An output without a name is one that nobody wants; a node may have several of them.
            if name and name in made:
                raise ModelError(f"{where}: {name!r} is made twice, the second time by {node.op_type} {node.name!r}")
            made.add(name)
    # The results of all nodes, whatever their order: that is checked by `in_order`, which may also mend it.
    seen = made | (outer or set()) | {""}
    for node in nodes:
        if not node.op_type:
            raise ModelError(f"{where}: the node {node.name!r} has no operator")
        for name in node.input:
            if name not in seen:
                raise ModelError(f"{where}: {node.op_type} {node.name!r} uses {name!r}, which no input, initializer or node makes")
        names = [one.name for one in node.attribute]
        _check_twice(names, f"{node.op_type} {node.name!r}: attributes")
        for one in node.attribute:
            _check_attribute(one, f"{node.op_type} {node.name!r}: attribute {one.name!r}", seen, folder, depth)
    in_order(nodes, where)
    return made


def _check_attribute(one: Any, where: str, seen: set[str], folder: Path | None, depth: int) -> None:
    if not one.name:
        raise ModelError(f"{where}: it has no name")
    if max(len(one.ints), len(one.floats), len(one.strings)) > _LARGEST_LIST:
        raise ModelError(f"{where}: a list of more than {_LARGEST_LIST} elements")
    for tensor in [*([one.t] if one.HasField("t") else ()), *one.tensors]:
        check_tensor(tensor, where, folder)
    for graph in [*([one.g] if one.HasField("g") else ()), *one.graphs]:
        _check_graph(graph, where, seen, folder, depth + 1)


def in_order(nodes: Sequence[Any], where: str) -> list[Any]:
    """Nodes so that each stands behind those whose results it uses; as given, where they are.

    Raises:
        ModelError: naming the nodes of a circle.
    """
    makers = {name: n for n, node in enumerate(nodes) for name in node.output if name}
    # By number, not by name: a name from outside of the graph has no maker here and is always ready.
    needs = [sorted({makers[name] for name in uses(node) if name in makers}) for node in nodes]
    if all(all(one < n for one in needed) for n, needed in enumerate(needs)):
        return list(nodes)
    waiting = [len(needed) for needed in needs]
    users: dict[int, list[int]] = {}
    for n, needed in enumerate(needs):
        for one in needed:
            users.setdefault(one, []).append(n)
    ready = [n for n, count in enumerate(waiting) if count == 0]
    found: list[int] = []
    while ready:
        # First come, first served: nodes keep their order as far as it was right.
        n = ready.pop(0)
        found.append(n)
        for user in users.get(n, ()):
            waiting[user] -= 1
            if waiting[user] == 0:
                ready.append(user)
    if len(found) < len(nodes):
        left = [nodes[n] for n in range(len(nodes)) if waiting[n]]
        shown = ", ".join(f"{node.op_type} {node.name or ', '.join(node.output)!r}" for node in left[:8])
        raise ModelError(f"{where}: nodes need each other's results in a circle: {shown}")
    return [nodes[n] for n in found]


def uses(node: Any) -> set[str]:
    """The names that a node uses, also inside of its graphs."""
    found = set(node.input)
    for inner in _inner(node):
        found.update(name for one in inner.node for name in one.input)
        found.update(one.name for one in inner.output)
    return found
