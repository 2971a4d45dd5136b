"""Groups of composite functions, and generators of others that make functions of them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import tensorexpr
from tensorexpr import relax, te
from tensorexpr.errors import DeclarationError, TensorExprError
from tensorexpr.ir import IRModule
from tensorexpr.relax import Function, op, transform
from tensorexpr.relax.dpl import is_op, wildcard
from tensorexpr.relax.evaluator import Evaluator
from tensorexpr.relax.visitor import walk

from .test_simplify import checked, graph, weights

NAMES = {"add": "one.add", "multiply": "one.multiply", "maximum": "two.maximum"}
PATTERNS = [(name, is_op(f"relax.{operator}")(wildcard(), wildcard())) for operator, name in NAMES.items()]
OPERATORS = [op.add, op.multiply, op.maximum, op.subtract]


def partitioned(mod: Any) -> Any:
    # A value that is read twice is bound twice in these graphs.
    once = transform.CanonicalizeBindings()(transform.EliminateCommonSubexpr()(mod))
    return transform.MergeCompositeFunctions()(transform.FuseOpsByPattern(PATTERNS)(once))


def graphs_of(mod: Any, key: str = "Codegen") -> dict[str, Any]:
    return {var.name_hint: func for var, func in mod.functions_items() if isinstance(func, Function) and key in func.attrs}


def evaluated(functions: Any, options: Any, names: Any) -> Any:
    """A generator whose functions evaluate the graphs that it gets."""

    def of(name: str, func: Any) -> Any:
        evaluate = Evaluator(IRModule({name: func}))

        def run(*args: Any) -> None:
            found = evaluate(name, *args[: len(func.params)])
            results = found if isinstance(found, tuple) else (found,)
            for to, value in zip(args[len(func.params) :], results, strict=True):
                to.copyfrom(value)

        return run

    return [{func.attrs["global_symbol"]: of(func.attrs["global_symbol"], func) for func in functions}]


@pytest.fixture
def generators() -> Iterator[dict[str, Any]]:
    """What the generators "one" and "two" got."""
    seen: dict[str, Any] = {}

    def generator(target: str) -> Any:
        def run(functions: Any, options: Any, names: Any) -> Any:
            seen[target] = (functions, options, names)
            return evaluated(functions, options, names)

        return run

    for target in ("one", "two"):
        tensorexpr.register_func(f"relax.ext.{target}", generator(target), override=True)
    yield seen
    for target in ("one", "two"):
        tensorexpr.runtime.registry.remove_global_func(f"relax.ext.{target}")


def run_of(mod: Any, *args: Any) -> Any:
    return relax.VirtualMachine(relax.build(mod, progress=False))["main"](*args).numpy()


# Each binding: an operator, and which two of the values before it are read.
PROGRAMS = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=9)


@settings(deadline=None)
@given(PROGRAMS)
@example([(0, 0, 1), (2, 2, 2), (0, 2, 3)])  # a + b, behind which there is a maximum that the second sum reads
@example([(0, 0, 1), (0, 2, 2), (2, 3, 3), (2, 2, 2), (0, 4, 5)])
@example([(0, 0, 1), (2, 0, 1), (0, 3, 3), (2, 2, 2), (1, 4, 5)])  # two chains that cross: one of them can't be one function
def test_groups_mean_the_same_and_hold_one_target(program: list[tuple[int, int, int]]) -> None:
    def make(*given: Any) -> Any:
        values = list(given)
        for kind, left, right in program:
            values.append(OPERATORS[kind](values[left % len(values)], values[right % len(values)]))
        return values[-1]

    made = checked(graph(make, (3,), (3,)), partitioned)
    assert relax.analysis.well_formed(made)
    for name, func in graphs_of(made).items():
        target = func.attrs["Codegen"]
        inner = [node for node in walk(func.body) if isinstance(node, Function)]
        assert inner and all(node.attrs["Composite"].startswith(f"{target}.") for node in inner)
        assert name.endswith(f"_{target}") and func.attrs["global_symbol"] == name
    assert not graphs_of(made, "Composite")


def test_a_group_is_as_large_as_it_can_be() -> None:
    chain = partitioned(graph(lambda a, b: op.multiply(op.add(a, b), op.add(op.multiply(a, a), b)), (3,), (3,)))
    assert list(graphs_of(chain)) == ["fused_relax_add_relax_multiply_relax_add1_relax_multiply1_one"]
    # The maximum reads the sum, and the product reads both.
    between = partitioned(graph(lambda a, b: (lambda s: op.multiply(op.maximum(s, b), s))(op.add(a, b)), (3,), (3,)))
    assert [func.attrs["Codegen"] for func in graphs_of(between).values()] == ["one", "two", "one"]


def test_modules_without_composite_functions_stay() -> None:
    mod = graph(lambda a: op.exp(a), (3,))
    assert transform.MergeCompositeFunctions()(mod) is mod and transform.RunCodegen()(mod) is mod


def test_generators_make_what_is_called(generators: dict[str, Any]) -> None:
    w = weights(3)
    mod = graph(lambda a, b: op.exp(op.maximum(op.add(a, w), op.multiply(a, b))), (3,), (3,))
    made = transform.RunCodegen({"one": {"level": 3}})(partitioned(mod))
    functions, options, names = generators["one"]
    assert [func.attrs["Codegen"] for func in functions] == ["one"] * len(functions) and options == {"level": 3}
    assert [node.data for node in names] == [w.data] and list(names.values()) == ["const_0"]
    assert generators["two"][1] == {} and not graphs_of(made)
    assert "R.call_dps_packed" in made.script()
    a, b = (np.random.default_rng(n).standard_normal(3).astype("float32") for n in range(2))
    expected = Evaluator(mod)("main", a, b)
    np.testing.assert_allclose(Evaluator(made)("main", a, b), expected, rtol=1e-6)
    np.testing.assert_allclose(run_of(made, a, b), expected, rtol=1e-5)


def test_functions_with_several_results(generators: dict[str, Any]) -> None:
    mod = graph(lambda a, b: (lambda s: op.subtract(op.maximum(s, b), op.multiply(s, b)))(op.add(a, b)), (3,), (3,))
    whole = partitioned(mod)
    assert any(isinstance(func.ret_struct_info, relax.TupleStructInfo) for func in graphs_of(whole).values())
    a, b = np.array([1, 2, 3], "float32"), np.array([4, 0, 1], "float32")
    np.testing.assert_array_equal(run_of(transform.RunCodegen()(whole), a, b), np.maximum(a + b, b) - (a + b) * b)


def test_functions_of_one_match_each(generators: dict[str, Any]) -> None:
    mod = graph(lambda a, b: op.maximum(op.add(a, b), b), (3,), (3,))
    made = transform.RunCodegen()(transform.FuseOpsByPattern(PATTERNS, annotate_codegen=True)(mod))
    assert sorted(generators) == ["one", "two"]
    a, b = np.array([1, 2, 3], "float32"), np.array([4, 0, 1], "float32")
    np.testing.assert_array_equal(run_of(made, a, b), np.maximum(a + b, b))


def test_what_no_generator_took_runs_too() -> None:
    mod = graph(lambda a, b: op.maximum(op.add(a, b), op.multiply(a, b)), (3,), (3,))
    a, b = np.array([1, 2, 3], "float32"), np.array([4, 0, 1], "float32")
    np.testing.assert_array_equal(run_of(partitioned(mod), a, b), np.maximum(a + b, a * b))


def test_entry_functions_alone_are_changed(generators: dict[str, Any]) -> None:
    whole: Any = partitioned(graph(lambda a, b: op.add(a, b), (3,), (3,)))
    whole["other"] = relax.utils.copy_with_new_vars(whole["main"]).with_attr("global_symbol", "other")
    made = transform.RunCodegen(entry_functions=["main"])(whole)
    assert "call_dps_packed" in made["main"].script() and "call_dps_packed" not in made["other"].script()


def test_what_generators_may_not_do(generators: dict[str, Any]) -> None:
    whole = partitioned(graph(lambda a, b: op.add(a, b), (3,), (3,)))
    with pytest.raises(DeclarationError, match="no function 'f' of a graph"):
        transform.RunCodegen(entry_functions=["f"])(whole)
    tensorexpr.register_func("relax.ext.one", lambda functions, options, names: [{}], override=True)
    with pytest.raises(DeclarationError, match="made no function 'fused_relax_add1_one'"):
        transform.RunCodegen()(whole)
    tensorexpr.runtime.registry.remove_global_func("relax.ext.one")
    with pytest.raises(DeclarationError, match=r"no code generator 'one' is registered; there are two.*relax\.ext\.one"):
        transform.RunCodegen()(whole)


def test_compiled_functions_are_in_the_library(generators: dict[str, Any], tmp_path: Path) -> None:
    whole = partitioned(graph(lambda a, b: op.exp(op.add(a, b)), (3,), (3,)))

    def compiled(functions: Any, options: Any, names: Any) -> Any:
        a, b = te.placeholder((3,), name="a"), te.placeholder((3,), name="b")
        c = te.compute((3,), lambda i: a[i] + b[i] + 1)  # one more than the graph says, so that it shows who computes
        (name,) = [func.attrs["global_symbol"] for func in functions]
        return [tensorexpr.build(te.create_prim_func([a, b, c]).with_attr("global_symbol", name))]

    tensorexpr.register_func("relax.ext.one", compiled, override=True)
    ex = relax.build(transform.RunCodegen()(whole), progress=False)
    a, b = np.array([1, 2, 3], "float32"), np.array([-1, 0, 1], "float32")
    ex.export_library(tmp_path / "network.so")
    loaded = tensorexpr.runtime.load_module(str(tmp_path / "network.so"))
    for one in (ex, loaded):
        np.testing.assert_allclose(relax.VirtualMachine(one)["main"](a, b).numpy(), np.exp(a + b + 1), rtol=1e-5)
    tensorexpr.register_func("relax.ext.one", evaluated, override=True)
    with pytest.raises(TensorExprError, match="fused_relax_add1_one, Python functions of a code generator"):
        relax.build(transform.RunCodegen()(whole), progress=False).export_library(tmp_path / "python.so")
