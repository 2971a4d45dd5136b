"""specs: each rule of each phase, broken once."""

from __future__ import annotations

from typing import Any

import pytest

from tensorexpr.errors import InternalError, LoweringError
from tensorexpr.lower.specs import check_module, check_statements
from tensorexpr.tir.buffer import decl_buffer
from tensorexpr.tir.expr import BufferLoad, IntImm, Let, Ramp, Var
from tensorexpr.tir.function import IRModule, PrimFunc
from tensorexpr.tir.stmt import Allocate, BufferStore, Stmt, seq

from .builder import TRUE, allocate, flat, func, load, loop, realize, store, threads, unrolled, vectorized

B = flat("B", 8)
TWO = decl_buffer((2, 4), "float32", "D")
SHIFTED = decl_buffer((8,), "float32", "S", data=B.data, elem_offset=1)
VECTOR = Ramp(IntImm("int32", 0), IntImm("int32", 1), 4)
WILD = Var("wild")


def _shared_loop() -> Stmt:
    one = loop("i", 2, lambda i: store(B, 1.0, i))
    return seq(one, one)


CASES: list[tuple[int | None, Stmt, str]] = [
    (1, realize("T", [(0, 4)], lambda t: store(t, 1.0, 0)), "a BufferRealize is left"),
    (1, store(TWO, 1.0, 0, 1), "the access to D isn't flat"),
    (1, store(B, load(TWO, 0, 1), 0), "the access to D isn't flat"),
    (1, store(SHIFTED, 1.0, 0), "the access to S isn't flat"),
    (
        1,
        Allocate(flat("T", 4).data, "float32", (IntImm("int32", 2), IntImm("int32", 2)), TRUE, store(B, 1.0, 0)),
        "the allocation T has 2 extents",
    ),
    (2, vectorized("v", 4, lambda v: store(B, 1.0, v)), "the loop v is still VECTORIZED"),
    (2, unrolled("u", 4, lambda u: store(B, 1.0, u)), "the loop u is still UNROLLED"),
    (2, threads("t", 4, lambda t: store(B, 1.0, t), "vthread"), "there is still a loop over vthread"),
    (3, threads("t", 4, lambda t: store(B, 1.0, t), "cthread"), "there is still a loop over cthread"),
    (2, loop("i", 4, lambda i: allocate("R", 4, lambda r: store(r, 1.0, i), scope="register")), "register R is indexed by i"),
    (1, BufferStore(B, BufferLoad(B, (VECTOR,), TRUE), (VECTOR,)), "the predicate of an access to B is bool"),
    (None, store(B, 1.0, WILD), "wild is used in a BufferStore outside its definition"),
    (None, seq(loop("i", 4, lambda i: store(B, 1.0, i)), store(flat("T", 4), 1.0, 0)), "buffer T is accessed outside its allocation"),
    (None, _shared_loop(), "i is defined twice"),
]


def _module(body: Stmt) -> IRModule:
    return IRModule({"main": func(body, B, TWO)})


@pytest.mark.parametrize(("phase", "body", "message"), CASES)
def test_broken_rules(phase: int | None, body: Stmt, message: str) -> None:
    with pytest.raises(InternalError, match=f"after some pass, function 'main': {message}"):
        check_module(_module(body), "some pass", phase, by_user=False)
    with pytest.raises(LoweringError, match=message):
        check_module(_module(body), "some pass", phase, by_user=True)


def test_statements_alone_show_most() -> None:
    with pytest.raises(InternalError, match="the loop v is still VECTORIZED"):
        check_statements(_module(vectorized("v", 4, lambda v: store(B, 1.0, v))), "some pass", 2, by_user=False)


def test_variables_of_shapes_are_defined() -> None:
    n = Var("n")
    sized = decl_buffer((n,), "float32", "A")
    function: PrimFunc = func(loop("i", n, lambda i: store(sized, 1.0, i)), sized)
    check_module(IRModule({"main": function}), "nothing", 3, by_user=False)


def test_lets_hold_inside_expressions() -> None:
    x: Any = Var("x", "float32")
    check_module(_module(store(B, Let(x, load(B, 0), x * x), 0)), "nothing", 3, by_user=False)
