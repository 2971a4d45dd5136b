"""Where a network of ONNX and another runtime part: the first node whose results differ, though what it reads is the same in both.

A graph that was imported says what this package understood of the model. If it isn't what another runtime computes, either may be wrong:
a third reading of that one node, ONNX's reference implementation, says whom it is with.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ...errors import TensorExprError
from ...frontend.onnx import from_onnx
from ...relax.evaluator import Evaluator

Values = dict[str, Any]
Peer = Callable[[bytes, Mapping[str, Any]], Sequence[Any]]


def parting(path: str, inputs: Mapping[str, Any], peer: Peer, name: str, compare: Callable[[str, Any, Any], Any]) -> str:
    """The first node at which the evaluator of the imported graph and a peer part, in words; empty if there is none.

    Args:
        path: of the model.
        inputs: by name.
        peer: runs the bytes of a model on inputs, and gives its outputs in their order.
        name: of it.
        compare: (name, found, expected) as a row of `verify`.
    """
    import onnx  # whoever verifies a model of ONNX has it

    model = onnx.load(path)
    nodes = list(model.graph.node)
    stated = {one.name for one in model.graph.output}
    model.graph.output.extend(onnx.ValueInfoProto(name=one) for node in nodes for one in node.output if one and one not in stated)
    names = [one.name for one in model.graph.output]
    try:
        own, others = _imported(model, inputs), peer(model.SerializeToString(), inputs)
    except (TensorExprError, ValueError):  # more than 2 GB, or results inside that are no outputs for one of them
        return ""
    of = {one: (a, b) for one, a, b in zip(names, own, others, strict=True)}
    for number, node in enumerate(nodes):
        for one in filter(None, node.output):
            mine, theirs = of[one]
            if not _is_numbers(mine) or not _is_numbers(theirs):
                continue
            row = compare(one, mine, theirs)
            if not row.is_equal:
                third = _by_reference(model, node, {**inputs, **dict(zip(names, own, strict=True))}).get(one)
                said = row.reason or f"{row.error:.3g} apart beside {row.scale:.3g}"
                place = f"{one!r} of node {number}, {node.op_type}"
                return f"the first that differs is {place}: {said}{_judged(third, mine, theirs, name, compare)}"
    return ""


def _is_numbers(value: Any) -> bool:
    return value is not None and not isinstance(value, (list, tuple)) and np.asarray(value).dtype.kind not in "OSU"


def by_evaluator(graph: Any, arrays: Sequence[Any]) -> list[Any]:
    """The results of a graph's "main" on NumPy's arrays."""
    with np.errstate(all="ignore"):  # infinities and NaN are results as any others
        found = Evaluator(graph)("main", *arrays)
    return list(found) if isinstance(found, (tuple, list)) else [found]


def _imported(model: Any, inputs: Mapping[str, Any]) -> list[Any]:
    mod = from_onnx(model, {key: list(np.shape(value)) for key, value in inputs.items()}, sanitize_input_names=False)
    main: Any = mod["main"]
    return by_evaluator(mod, [inputs[one.name_hint] for one in main.params])


def _by_reference(model: Any, node: Any, known: Values) -> Values:
    """What ONNX's reference implementation makes of one node, by name; nothing where it doesn't know its operator."""
    from onnx import helper, numpy_helper
    from onnx.reference import ReferenceEvaluator

    weights = {one.name: numpy_helper.to_array(one) for one in model.graph.initializer}
    given = {one: weights[one] if one in weights else known[one] for one in node.input if one in weights or one in known}
    inputs, outputs = ([helper.make_empty_tensor_value_info(one) for one in few] for few in (given, filter(None, node.output)))
    alone = helper.make_model(
        helper.make_graph([node], "node", inputs, outputs), opset_imports=model.opset_import, functions=model.functions
    )
    try:
        found = ReferenceEvaluator(alone).run(None, given)
    except Exception:  # of many kinds: operators of other domains, and what it leaves out of ONNX's own
        return {}
    return dict(zip(filter(None, node.output), found, strict=True))


def _judged(third: Any, own: Any, other: Any, name: str, compare: Callable[[str, Any, Any], Any]) -> str:
    if third is None:
        return ""
    sides = [who for who, value in (("the evaluator", own), (name, other)) if compare("", value, third).is_equal]
    return f"; ONNX's reference implementation agrees there with {' and '.join(sides) or 'neither'}"
