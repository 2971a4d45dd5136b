"""Algebraic types: values are made, matched and taken apart; functions of type parameters; the library of lists and trees."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tensorexpr as tvm
from tensorexpr import relay
from tensorexpr.contrib import graph_executor
from tensorexpr.errors import ArgumentError, DeclarationError, TypeMismatchError
from tensorexpr.relax.evaluator import Evaluator
from tensorexpr.relay.backend.interpreter import ConstructorValue
from tensorexpr.relay.to_graph import to_graph

_TREES = """
type Tree { Leaf(Tensor[(?, 2), float32]), Node(Tree, Tree) }
def @sum(%tree: Tree) -> Tensor[(2), float32] {
  match (%tree) {
    Leaf(%x) => sum(%x, axis=[0]),
    Node(%a, %b) => @sum(%a) + @sum(%b),
  }
}
"""


def _list(mod: tvm.IRModule, numbers: Any) -> Any:
    _, cons, nil = mod.get_type("List")
    found = nil()
    for one in reversed(numbers):
        found = cons(relay.const(one, "float32"), found)
    return found


def _numbers(value: Any) -> list[float]:
    found = []
    while value.fields:
        found.append(float(value.fields[0].numpy()))
        value = value.fields[1]
    return found


def test_the_elements_of_a_list_have_the_type_that_its_parameter_stands_for() -> None:
    mod = tvm.IRModule()
    p = relay.Prelude(mod)
    x, acc = relay.Var("x"), relay.Var("acc")
    # No type is stated: that of the list says what x is, and the first value what is summed.
    doubled = p.map(relay.Function((x,), relay.multiply(x, relay.const(2.0))), _list(mod, [1, 2, 3]))
    made = relay.create_executor("vm", mod).evaluate(p.foldl(relay.Function((acc, x), acc + x), relay.const(0.5), p.rev(doubled)))
    assert float(made.numpy()) == 12.5


def test_a_function_makes_values_of_the_constructor_that_stands_around_it() -> None:
    p = relay.Prelude(tvm.IRModule())
    _, cons, nil = p.mod.get_type("List")
    x, made = relay.Var("x"), relay.Var("made")
    twice = p.foldl(relay.Function((made, x), cons(x, cons(x, made))), nil(), _list(p.mod, [1, 2]))
    assert _numbers(relay.create_executor("vm", p.mod).evaluate(twice)) == [2, 2, 1, 1]
    wrapped = p.map(p.mod.get_type("Option")[1], _list(p.mod, [1]))  # a constructor as a function
    assert relay.create_executor("vm", p.mod).evaluate(wrapped).fields[0].constructor.name_hint == "Some"


def test_a_value_says_its_constructor_and_goes_in_again() -> None:
    mod = tvm.IRModule()
    p = relay.Prelude(mod)
    of, cons, nil = mod.get_type("List")
    xs = relay.Var("xs", of(relay.scalar_type("float32")))
    call = relay.create_executor("vm", mod).evaluate(relay.Function((xs,), p.concat(xs, cons(relay.const(7.0), xs))))
    given_list = ConstructorValue(cons.tag, [tvm.nd.array(np.float32(3)), ConstructorValue(nil.tag, [], nil)], cons)
    made = call(given_list)
    assert made.constructor is cons and _numbers(made) == [3, 7, 3]


@settings(max_examples=5, deadline=None)
@given(sizes=st.lists(st.integers(1, 3), min_size=1, max_size=5))
def test_a_tree_of_tensors_of_any_heights_is_summed(sizes: list[int]) -> None:
    mod = relay.fromtext(_TREES)
    _, leaf, node = mod.get_type("Tree")
    arrays = [np.random.default_rng(n).random((size, 2), "float32") for n, size in enumerate(sizes)]
    tree = leaf(relay.const(arrays[0]))
    for one in arrays[1:]:
        tree = node(tree, leaf(relay.const(one)))
    made = relay.create_executor("vm", mod).evaluate(mod.get_global_var("sum")(tree))
    np.testing.assert_allclose(made.numpy(), sum(one.sum(0) for one in arrays), rtol=1e-5)


def test_the_evaluator_and_saved_networks_take_values_apart_too(tmp_path: Path) -> None:
    source = _TREES + "def @main(%x: Tensor[(1, 2), float32]) { @sum(Node(Leaf(%x), Node(Leaf(%x), Leaf(%x)))) }"
    mod, x = relay.fromtext(source), np.ones((1, 2), "float32")
    np.testing.assert_array_equal(Evaluator(to_graph(mod))("main", x), [3, 3])
    relay.build(mod, "llvm").export_library(str(tmp_path / "net.so"))
    module = graph_executor.GraphModule(tvm.runtime.load_module(str(tmp_path / "net.so"))["default"](tvm.cpu()))
    module.run(x=x)
    np.testing.assert_array_equal(module.get_output(0).numpy(), [3, 3])


def test_programs_of_types_read_back_from_their_text() -> None:
    mod = tvm.IRModule()
    relay.Prelude(mod)
    again = relay.fromtext(mod.astext())
    assert str(again) == str(mod)
    typed = relay.transform.InferType()(mod)
    # Calls of functions of the module have types once these are looked up.
    assert str(relay.transform.InferType()(relay.fromtext(typed.astext()))["zip"]) == str(typed["zip"])
    for var in mod.get_global_vars():
        tvm.ir.assert_structural_equal(mod[var], again[var])
    assert str(typed["foldl"].checked_type.ret_type) == "A"


def test_what_no_clause_is_for_is_said_when_the_graph_is_made_or_when_it_runs() -> None:
    mod = relay.fromtext(_TREES.replace("Node(%a, %b) => @sum(%a) + @sum(%b),", "Node(Leaf(%a), _) => sum(%a, axis=[0]),"))
    with pytest.raises(DeclarationError, match=r"match of @sum has no clause for Node\(Node\(_, _\), _\): add one, or write `match\?`"):
        relay.create_executor("vm", mod).evaluate(mod.get_global_var("sum"))
    p = relay.Prelude(tvm.IRModule())
    with pytest.raises(ArgumentError, match="no clause matches the value"):
        relay.create_executor("vm", p.mod).evaluate(p.hd(_list(p.mod, [])))


def test_a_match_takes_the_first_clause_and_looks_into_fields() -> None:
    source = """
    type Maybe[A] { Just(A), Nothing }
    def @main(%a: Maybe[(int32, int32)], %b: int32) -> int32 {
      match ((%a, %b)) { (Just((%x, _)), %y) => %x - %y, (_, %y) => %y }
    }
    """
    mod = relay.fromtext(source)
    _, just, nothing = mod.get_type("Maybe")
    run = relay.create_executor("vm", mod).evaluate()
    pair = tvm.runtime.container.ADT(0, [tvm.nd.array(np.int32(9)), tvm.nd.array(np.int32(1))])
    assert int(run(ConstructorValue(just.tag, [pair], just), 4).numpy()) == 5
    assert int(run(ConstructorValue(nothing.tag, [], nothing), 4).numpy()) == 4


def test_recursion_needs_no_stated_result_where_a_branch_tells_it() -> None:
    source = """
    def @total(%n: int32, %acc: int32) { if (%n == 0) { %acc } else { @total(%n - 1, %acc + %n) } }
    def @main(%n: int32) { @total(%n, 0) }
    """
    assert int(relay.create_executor("vm", relay.fromtext(source)).evaluate()(10).numpy()) == 55
    with pytest.raises(DeclarationError, match="@main calls itself: state its ret_type"):
        relay.create_executor("vm", relay.fromtext("def @main(%n: int32) { @main(%n) }")).evaluate()
    with pytest.raises(TypeMismatchError, match=r"the condition of an If is an expression, not False; relay\.equal"):
        relay.If(relay.const(1) == relay.const(2), relay.const(1), relay.const(2))


def test_lists_are_as_long_as_they_are() -> None:
    p = relay.Prelude(tvm.IRModule())
    seed = relay.Var("n", relay.scalar_type("int32"))
    _, some, none = p.mod.get_type("Option")
    is_end = relay.equal(seed, relay.const(0))
    step = relay.Function((seed,), relay.If(is_end, none(), some(relay.Tuple([seed - relay.const(1), seed]))))
    made = relay.create_executor("vm", p.mod).evaluate(p.length(p.unfoldr(step, relay.const(400))))
    assert int(made.numpy()) == 400


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("type A { B } type A { C }", "type A is defined twice"),
        ("type A { B } type C { B }", "constructor B is defined twice"),
        ("type A { B } def @main(%x: A) { match (%x) { C => 1 } }", "no constructor 'C'; there are B"),
        ("type A { B(int32) } def @main(%x: A) { match (%x) { B(_, _) => 1 } }", "a pattern of B has 1 patterns"),
    ],
)
def test_errors_name_the_type_or_the_constructor(text: str, message: str) -> None:
    with pytest.raises(DeclarationError, match=message):
        relay.fromtext(text)


def test_modules_of_types_alone_and_texts_that_are_none() -> None:
    mod = relay.fromtext("type A { B(int32), C }")
    assert str(mod) == "type A {\n  B(int32),\n  C,\n}" and mod.get_constructor(mod.get_type("A")[2].tag).name_hint == "C"
    with pytest.raises(tvm.error.DiagnosticError, match="expected a name"):
        relay.fromtext("type { B }")
    with pytest.raises(ValueError, match=r"no type 'List'; it defines A\. relay\.prelude"):
        mod.get_type("List")
