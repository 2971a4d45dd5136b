"""FuseOps of Relay: kernels as functions of Relay's operators, called where they stand."""

from __future__ import annotations

import numpy as np
import pytest

import tensorexpr as tvm
from tensorexpr import relay
from tensorexpr.relax.evaluator import Evaluator
from tensorexpr.relay.backend import Executor, Runtime, name_transforms
from tensorexpr.relay.to_graph import to_graph
from tensorexpr.runtime.name_transforms import sanitize_name


def _network() -> tvm.IRModule:
    x, w = relay.var("x", shape=(1, 2, 4, 4)), relay.var("w")
    y = relay.nn.relu(relay.nn.conv2d(x, w, kernel_size=(3, 3), channels=2, padding=(1, 1)) + relay.const(1.0))
    return tvm.IRModule.from_expr(relay.Function((x, w), relay.nn.softmax(relay.concatenate([y, x], axis=1), axis=1)))


def _functions(mod: tvm.IRModule) -> list[relay.Function]:
    found: list[relay.Function] = []
    relay.analysis.post_order_visit(
        mod["main"], lambda node: found.append(node) if isinstance(node, relay.Function) and "Primitive" in node.attrs else None
    )
    return found


def test_kernels_are_functions_in_their_places() -> None:
    mod = _network()
    fused = relay.transform.FuseOps(2)(mod)
    assert sorted(list(relay.analysis.list_op_freqs(one)) for one in _functions(fused)) == [
        ["concatenate"], ["nn.conv2d", "add", "nn.relu"], ["nn.softmax"],
    ]  # fmt: skip
    assert len(fused.functions) == 1
    alone = relay.transform.FuseOps(0)(mod)
    assert [len(relay.analysis.list_op_freqs(one)) for one in _functions(alone)] == [1] * 5
    x, w = (np.linspace(-1, 1, n, dtype="float32").reshape(shape) for n, shape in ((32, (1, 2, 4, 4)), (36, (2, 2, 3, 3))))
    results = [Evaluator(to_graph(mod))("main", x, w)]
    results += [relay.create_executor("debug", mod=one).evaluate()(x, w).numpy() for one in (fused, alone)]
    np.testing.assert_allclose(results[1], results[0], 1e-6)
    np.testing.assert_allclose(results[2], results[0], 1e-6)
    again = max(_functions(relay.transform.FuseOps(2)(fused)), key=lambda one: len(relay.analysis.list_op_freqs(one)))
    assert list(relay.analysis.list_op_freqs(again)) == ["nn.conv2d", "add", "nn.relu"]  # what is a kernel stays one


def test_equal_kernels_once() -> None:
    x = relay.var("x", shape=(3,))
    once = relay.exp(relay.negative(x))
    mod = tvm.IRModule.from_expr(relay.Function((x,), relay.Tuple([relay.annotation.stop_fusion(once), once])))
    found = relay.analysis.extract_fused_functions(tvm.IRModule.from_expr(relay.Function((x,), once)))
    assert [list(relay.analysis.list_op_freqs(one)) for one in found.values()] == [["negative", "exp"]]
    assert len(relay.analysis.extract_fused_functions(mod)) <= 2


def test_names_of_generated_c() -> None:
    made = name_transforms.prefix_generated_name(["model", "Run_it"])
    assert made == "TVMGen_model_Run_it" and name_transforms.prefix_name("x") == "TVM_x"
    assert name_transforms.to_c_function_style(made) == "TVMGenModelRunIt"
    assert name_transforms.to_c_variable_style(made) == "tvmgen_model_run_it"
    assert name_transforms.to_c_constant_style(made) == "TVMGEN_MODEL_RUN_IT"
    assert sanitize_name("input:1") == "input_1"
    with pytest.raises(tvm.TVMError, match="Function not TVM prefixed: mine"):
        name_transforms.to_c_function_style("mine")
    with pytest.raises(tvm.TVMError, match="Constant name is empty"):
        name_transforms.to_c_constant_style("")
    with pytest.raises(tvm.TVMError, match="Name segments empty"):
        name_transforms.prefix_name([])
    with pytest.raises(tvm.TVMError, match="Name segment is empty"):
        name_transforms.prefix_name([""])
    with pytest.raises(tvm.TVMError, match="Name is empty"):
        sanitize_name("")


def test_executors_print_as_their_names() -> None:
    assert (str(Runtime("crt", {"system-lib": True})), str(Executor("aot"))) == ("crt", "aot")
    assert len({Runtime("cpp"), Runtime("cpp"), Runtime("crt", {"system-lib": True})}) == 2


def test_workloads_decide_what_programs_draw_behind_them() -> None:
    drawn = []
    for _ in range(2):
        relay.testing.create_workload(relay.Function((x := relay.var("data", shape=(2,)),), x))
        drawn.append(np.random.uniform())
    assert drawn[0] == drawn[1]


def test_regions_of_marks() -> None:
    """Two values of one generator that read one another are one region, whichever of them ends it; what another one computes isn't."""
    begin, end = relay.annotation.compiler_begin, relay.annotation.compiler_end
    first = begin(relay.var("x", shape=(2,)), "a")
    root, other = relay.abs(first), begin(relay.var("y", shape=(2,)), "a")
    total = relay.add(root, other)
    early, late = end(root, "a"), end(total, "a")
    apart = begin(early, "b")
    result = end(relay.exp(apart), "b")
    func = relay.Function(tuple(relay.analysis.free_vars(both := relay.Tuple([late, result]))), both)
    found = relay.analysis.AnnotatedRegionSet(func, *(relay.op.get(f"annotation.compiler_{one}") for one in ("begin", "end")))
    assert len(found) == 2 and found.get_region(both) is None
    one, two = found.get_region(root), found.get_region(result)
    assert one is not None and two is not None
    assert one is found.get_region(other) and (one.target, two.target) == ("a", "b")
    assert {id(node) for node in one.nodes} == set(map(id, (first, root, other, total, early, late)))
    assert {id(node) for node in one.args} == {id(first), id(other)} and {id(node) for node in one.rets} == {id(early), id(late)}
    assert [len(two.nodes), len(two.args), len(two.rets)] == [3, 1, 1]
