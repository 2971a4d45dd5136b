"""Partial evaluation and continuations: what is left computes the same, and what was known is gone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tensorexpr as tvm
from tensorexpr import relay
from tensorexpr.errors import DeclarationError, TypeMismatchError
from tensorexpr.relay import analysis, partial_eval, transform
from tensorexpr.relay.analysis import Feature

F32 = relay.TensorType((), "float32")


def text(source: str) -> Any:
    return relay.fromtext(f'#[version = "0.0.5"]\n{source}')


def run(mod: Any, *args: Any) -> Any:
    return relay.create_executor(mod=mod).evaluate()(*args)


def evaluated(mod: Any, ignore_impurity: bool = False) -> Any:
    return transform.Sequential([transform.PartialEvaluate(), transform.DeadCodeElimination(True, ignore_impurity)])(mod)


def operators(mod: Any, name: str = "main") -> dict[str, int]:
    return dict(analysis.list_op_freqs(mod[name].body))


POWER = """
def @power(%n: int32, %x: float32) -> float32 {
  if (%n == 0) { 1f } else { @power(%n - 1, %x) * %x }
}
def @main(%x: float32) -> float32 { @power(3, %x) }
"""


def test_a_function_is_followed_while_an_integer_becomes_smaller() -> None:
    mod = text(POWER)
    made = evaluated(mod)
    assert operators(made) == {"multiply": 3}
    np.testing.assert_allclose(run(made, np.float32(3)).numpy(), 27)
    # The function itself, whose number isn't known, still calls itself.
    assert "@power(" in str(made["power"])


@pytest.mark.parametrize("call", ["@loop(%x, 5)", "@loop(%x, -3)"])
def test_what_may_never_end_is_called_when_the_program_runs(call: str) -> None:
    mod = text(f"""
    def @loop(%x: float32, %n: int32) -> float32 {{ if (%x > 100f) {{ %x }} else {{ @loop(%x * 2f, %n + 1) }} }}
    def @main(%x: float32) -> float32 {{ {call} }}
    """)
    made = evaluated(mod)
    assert "@loop(" in str(made["main"])
    np.testing.assert_allclose(run(made, np.float32(3)).numpy(), 192)


def test_functions_that_unfold_to_more_than_anybody_reads_stay_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(partial_eval, "_DEEPEST", 40)
    mod = text("""
    def @sum(%n: int32) -> int32 { if (%n == 0) { 0 } else { %n + @sum(%n - 1) } }
    def @main() -> int32 { @sum(200) }
    """)
    made = evaluated(mod)
    assert "@sum(" in str(made["main"])
    assert int(run(made).numpy()) == 200 * 201 // 2


def test_closures_tuples_and_constructors_go() -> None:
    mod = text("""
    type Pair[A] { Both(A, A), One(A) }
    def @main(%x: float32, %y: float32) -> float32 {
      let %add_x = fn (%z: float32) -> float32 { %x + %z };
      let %twice = fn (%f: fn (float32) -> float32, %z: float32) -> float32 { %f(%f(%z)) };
      match (Both(%twice(%add_x, %y), (%x, %y).1)) { Both(%a, %b) => %a * %b, One(%a) => %a }
    }
    """)
    made = evaluated(mod)
    assert operators(made) == {"add": 2, "multiply": 1}
    assert analysis.detect_feature(made["main"]).isdisjoint({Feature.fMatch, Feature.fConstructor, Feature.fTuple, Feature.fLet})
    np.testing.assert_allclose(run(made, np.float32(2), np.float32(5)).numpy(), 45)


def test_references_are_followed_and_forgotten_where_others_may_write() -> None:
    x = relay.var("x", F32)
    r, f, unused = relay.Var("r"), relay.Var("f"), [relay.Var(f"u{n}") for n in range(3)]
    write = relay.Function((), relay.RefWrite(r, relay.RefRead(r) * relay.const(3.0)))
    known = relay.Let(r, relay.RefCreate(x), relay.Let(f, write, relay.Let(unused[0], f(), relay.RefRead(r))))
    mod = tvm.IRModule.from_expr(relay.Function((x,), known))
    made = evaluated(mod, ignore_impurity=True)
    assert operators(made) == {"multiply": 1}
    np.testing.assert_allclose(run(made, np.float32(5)).numpy(), 15)
    # Which function is called isn't known: what it wrote has to be read.
    c = relay.var("c", relay.TensorType((), "bool"))
    g = relay.Var("g")
    other = relay.Function((), relay.RefWrite(r, relay.const(1.0)))
    chosen = relay.Let(g, relay.If(c, f, other), relay.Let(unused[1], g(), relay.RefRead(r)))
    mod = tvm.IRModule.from_expr(relay.Function((c, x), relay.Let(r, relay.RefCreate(x), relay.Let(f, write, chosen))))
    made = evaluated(mod)
    assert Feature.fRefRead in analysis.detect_feature(made["main"])
    for condition, expected in (True, 15), (False, 1):
        for one in (mod, made):
            np.testing.assert_allclose(run(one, np.array(condition), np.float32(5)).numpy(), expected)


def test_branches_leave_what_neither_of_them_writes() -> None:
    mod = text("""
    def @main(%c: bool, %x: float32) -> float32 {
      let %r = ref(%x);
      let %s = ref(1f);
      let %y = if (%c) { let %w = ref_write(%r, 2f); ref_read(%s) } else { ref_read(%s) };
      ref_read(%r) + (ref_read(%s) + %y)
    }
    """)
    made = evaluated(mod)
    # That of r depends on the branch, that of s is 1.
    assert str(made["main"]).count("ref_read") == 1
    for condition, expected in (True, 4), (False, 12):
        np.testing.assert_allclose(run(made, np.array(condition), np.float32(10)).numpy(), expected)


def test_effects_keep_their_order_in_a_function_that_is_left() -> None:
    x = relay.var("x", F32)
    mod = text("""
    def @main(%c: bool, %x: float32) -> float32 {
      let %r = ref(%x);
      let %f = fn () -> float32 { let %old = ref_read(%r); let %w = ref_write(%r, %old + 1f); %old };
      let %g = if (%c) { %f } else { %f };
      let %a = %g();
      let %b = %g();
      %a * 10f + %b
    }
    """)
    made = evaluated(mod)
    for one in (mod, made):
        np.testing.assert_allclose(run(one, np.array(True), np.float32(4)).numpy(), 45)
    assert x.checked_type == F32


def test_types_of_what_is_unfolded_are_those_of_the_call() -> None:
    mod = tvm.IRModule()
    prelude = relay.prelude.Prelude(mod)
    prelude.mod.import_from_std("nat.rly")
    i = relay.var("i", shape=(3,))
    double = relay.Function([v := relay.var("v", shape=(3,))], v + v)  # type: ignore[arg-type]
    three = relay.testing.make_nat_expr(prelude, 3)
    mod["main"] = relay.Function([i], relay.Call(mod.get_global_var("nat_iterate")(double, three), [i]))  # type: ignore[arg-type, assignment]
    made = evaluated(transform.InferType()(mod))
    assert operators(made) == {"add": 3}
    np.testing.assert_allclose(run(made, np.ones(3, "float32")).numpy(), np.full(3, 8.0))


@pytest.mark.parametrize("number", [0, 1, 5])
def test_continuations(number: int) -> None:
    mod = transform.InferType()(
        text("""
    def @power(%n: int32, %x: float32) -> float32 { if (%n == 0) { 1f } else { @power(%n - 1, %x) * %x } }
    def @main(%n: int32, %x: float32) -> float32 {
      let %f = fn (%y: float32) -> float32 { @power(%n, %y) };
      (%f(%x), if (%x > 0f) { %f(2f) } else { 0f }).1 + %f(%x)
    }
    """)
    )
    handed = transform.to_cps(mod["main"], mod)
    assert len(handed.params) == 3
    assert {var.name_hint for var in mod.get_global_vars()} == {"main", "power", "power_cps"}
    plain = transform.un_cps(handed)
    mod["other"] = plain  # type: ignore[assignment]
    mod = transform.InferType()(mod)
    for x in (3.0, -3.0):
        expected = x**number + (2.0**number if x > 0 else 0)
        got = relay.create_executor(mod=mod).evaluate(mod.get_global_var("other"))(np.int32(number), np.float32(x))
        np.testing.assert_allclose(got.numpy(), expected)


def test_behind_continuations_references_of_branches_are_known() -> None:
    mod = transform.InferType()(
        text("""
    def @main(%c: bool, %x: float32) -> float32 {
      let %r = ref(%x);
      let %u = if (%c) { ref_write(%r, %x + 1f) } else { ref_write(%r, %x * 2f) };
      ref_read(%r)
    }
    """)
    )
    plain = transform.un_cps(transform.to_cps(mod["main"], mod))
    made = evaluated(tvm.IRModule.from_expr(plain), ignore_impurity=True)
    assert analysis.detect_feature(made["main"]).isdisjoint({Feature.fRefCreate, Feature.fRefRead, Feature.fRefWrite})
    for condition, expected in (True, 6), (False, 10):
        np.testing.assert_allclose(run(made, np.array(condition), np.float32(5)).numpy(), expected)


def test_what_has_no_continuation() -> None:
    x = relay.var("x", F32)
    with pytest.raises(TypeMismatchError, match="to_cps takes a function of Relay, not Var"):
        transform.to_cps(x)
    with pytest.raises(DeclarationError, match="@f is no function of Relay in a module that is given"):
        transform.to_cps(relay.Function((x,), relay.Call(relay.GlobalVar("f"), (x,))))
    with pytest.raises(TypeMismatchError, match="un_cps takes a function whose last parameter is a function of one value"):
        transform.un_cps(relay.Function((x,), x))
