"""Programs of functions as values compute the same without them, and have none."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tensorexpr as tvm
from tensorexpr import relay
from tensorexpr.errors import DeclarationError
from tensorexpr.relay import transform
from tensorexpr.relay.visitor import walk

LIBRARY = """
#[version = "0.0.5"]
type List[A] { Cons(A, List[A]), Nil, }
def @id[A](%x: A) -> A { %x }
def @twice[A](%f: fn(A) -> A) -> fn(A) -> A { fn (%x: A) -> A { %f(%f(%x)) } }
def @compose[A, B, C](%f: fn(A) -> B, %g: fn(B) -> C) -> fn(A) -> C { fn (%x: A) -> C { %g(%f(%x)) } }
def @map[A, B](%f: fn(A) -> B, %xs: List[A]) -> List[B] {
  match (%xs) { Cons(%x, %rest) => Cons(%f(%x), @map(%f, %rest)), Nil => Nil, }
}
def @fold[A, B](%f: fn(B, A) -> B, %start: B, %xs: List[A]) -> B {
  match (%xs) { Cons(%x, %rest) => @fold(%f, %f(%start, %x), %rest), Nil => %start, }
}
def @sum_by(%f: fn(int32) -> int32, %k: List[int32]) -> int32 {
  match (%k) { Cons(%x, %rest) => %0 = fn(%n) { %x + %f(%n) }; @sum_by(%0, %rest), Nil => %f(0), }
}
"""
# What "main" is of %n, an int32, and its result for 5.
PROGRAMS = {
    "@compose(fn (%x: int32) -> int32 { %x + %n }, @id)(3)": 8,
    "@sum_by(@id, Cons(%n, Cons(2, Nil)))": 7,
    "@fold(fn (%a: int32, %b: int32) -> int32 { %a * 10 + %b }, 0, @map(fn (%x: int32) -> int32 { %x + %n }, Cons(1, Cons(2, Nil))))": 67,
    "let %add = fn (%x: int32) -> int32 { %x + %n }; (%add(1), @twice(%add)(0), @twice(@twice(%add))(0))": (6, 10, 20),
    "@fold(fn (%a: int32, %f: fn(int32) -> int32) -> int32 { %f(%a) }, 1, Cons(@id, Cons(fn (%x: int32) -> int32 { %x * %n }, Nil)))": 5,
    "if (%n < 3) { @id } else { fn (%x: int32) -> int32 { %x * %n } }(4)": 20,
    "let %f = ref(fn (%x: int32) -> int32 { %x + 1 }); let %g = ref_read(%f); %g(%n)": 6,
    "(fn (%f: fn(int32) -> int32, %x: int32) { %f(%x) })(fn (%y) { %y + %y }, %n)": 10,
    "%0 = (fn (%x: int32) -> int32 { %x - %n }, 2); %0.0(%0.1)": -3,
}


def evaluated(mod: Any, value: int) -> Any:
    """What "main" returns, as Python has it."""
    found = relay.create_executor("debug", mod=mod).evaluate()(np.int32(value))
    return tuple(int(one.numpy()) for one in found) if isinstance(found, (tuple, list)) or hasattr(found, "fields") else int(found.numpy())


def has_functions(typ: Any) -> bool:
    """Whether a type has a function's in it."""
    found: list[Any] = []

    class Functions(relay.TypeVisitor):  # type: ignore[misc]
        def visit_func_type(self, typ: Any) -> None:
            found.append(typ)

    Functions().visit(typ)
    return bool(found)


def functional(mod: Any) -> list[Any]:
    """Calls of what "main" reaches that take or return functions."""
    waiting, seen, found = ["main"], set[str](), []
    while waiting:
        name = waiting.pop()
        seen.add(name)
        for node in walk(mod[name]):
            if isinstance(node, tvm.ir.GlobalVar) and node.name_hint not in seen:
                waiting.append(node.name_hint)
            if isinstance(node, relay.Call) and any(has_functions(one.checked_type) for one in (node, *node.args)):
                found.append(node)
    return found


@pytest.mark.parametrize("program", PROGRAMS)
def test_it_computes_the_same(program: str) -> None:
    mod = transform.InferType()(relay.fromtext(f"{LIBRARY}\ndef @main(%n: int32) {{ {program} }}"))
    wanted = PROGRAMS[program]
    assert evaluated(mod, 5) == wanted
    mod["main"] = transform.Defunctionalization(mod["main"], mod)
    mod = transform.InferType()(mod)
    assert evaluated(mod, 5) == wanted
    assert not functional(mod)


def test_what_is_refused() -> None:
    mod = transform.InferType()(relay.fromtext(f"{LIBRARY}\ndef @main(%f: fn(int32) -> int32) -> int32 {{ %f(2) }}"))
    with pytest.raises(DeclarationError, match="begins at a function that takes no functions"):
        transform.Defunctionalization(mod["main"], mod)
    again = "let %g = fn (%i: int32) -> int32 { if (%i < 1) { %i } else { %g(%i - 1) } }; %g(%n)"
    mod = transform.InferType()(relay.fromtext(f"def @main(%n: int32) -> int32 {{ {again} }}"))
    with pytest.raises(DeclarationError, match="%g calls itself; LambdaLift makes a function of the module of it"):
        transform.Defunctionalization(mod["main"], mod)
    lifted = transform.InferType()(transform.LambdaLift()(mod))
    lifted["main"] = transform.Defunctionalization(lifted["main"], lifted)
    assert evaluated(lifted, 3) == 0
