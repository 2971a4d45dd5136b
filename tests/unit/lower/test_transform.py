"""`transform`: passes as users make and apply them."""

from __future__ import annotations

from typing import Any

import pytest

from tensorexpr.errors import LoweringError
from tensorexpr.lower import transform
from tensorexpr.lower.context import PassContext
from tensorexpr.lower.passes import Pass
from tensorexpr.target import Target
from tensorexpr.tir.expr import IntImm
from tensorexpr.tir.function import IRModule, PrimFunc
from tensorexpr.tir.stmt import AssertStmt, For

from .builder import flat, func, load, loop, loops, matmul, parallel, statements, store, unrolled

A, B = flat("A", 8), flat("B", 8)


def _module() -> IRModule:
    return IRModule(
        {"f": func(unrolled("i", 2, lambda i: store(B, load(A, i), i)), A, B), "g": func(parallel("p", 2, lambda p: store(B, 1.0, p)), B)}
    )


def test_prim_func_pass_sees_function_module_and_context() -> None:
    seen: list[tuple[bool, bool, bool]] = []

    @transform.prim_func_pass(opt_level=1, name="mine")
    def look(function: PrimFunc, mod: IRModule, ctx: PassContext) -> PrimFunc:
        seen.append((isinstance(function, PrimFunc), "f" in mod, ctx is PassContext.current()))
        return function.with_attr("looked", True)

    assert (look.info.name, look.info.opt_level) == ("mine", 1)
    result = look(_module())
    assert seen == [(True, True, True)] * 2
    assert result["g"].attrs["looked"]


def test_prim_func_pass_of_a_class() -> None:
    class Marker:
        def transform_function(self, function: PrimFunc, mod: IRModule, ctx: PassContext) -> PrimFunc:
            return function.with_attr("marked", 1)

    marker = transform.prim_func_pass(opt_level=0)(Marker)()
    assert marker(_module())["f"].attrs["marked"] == 1


def test_prim_func_pass_without_decorator() -> None:
    same = transform.prim_func_pass(lambda f, m, c: f, opt_level=0, name="same")
    mod = _module()
    assert same(mod) is mod


def test_module_pass() -> None:
    @transform.module_pass(opt_level=0)
    def drop(mod: IRModule, ctx: PassContext) -> IRModule:
        return IRModule({"f": mod["f"]})

    assert "g" not in drop(_module())


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: transform.prim_func_pass(lambda f, m, c: f), "give an opt_level"),
        (
            lambda: transform.prim_func_pass(lambda f, m, c: 3, opt_level=0, name="bad")(_module()),
            "pass bad returned int 3 for function 'f'",
        ),
        (lambda: transform.module_pass(lambda m, c: None, opt_level=0, name="bad")(_module()), "pass bad returned None"),
        (lambda: transform.prim_func_pass(int, opt_level=0), "the pass class int needs a method transform_function"),
        (lambda: transform.Sequential([lambda f: f]), "Sequential takes passes, not"),  # type: ignore[list-item]
        (lambda: transform.ApplyPassToFunction(transform.Simplify(), "h.*", True)(_module()), "no function matches 'h.*'; there are f, g"),
    ],
)
def test_mistakes(make: Any, message: str) -> None:
    with pytest.raises(LoweringError, match=message):
        make()


def test_sequential_respects_levels_and_requirements() -> None:
    ran: list[str] = []

    def note(name: str, level: int, required: list[str] | None = None) -> Pass:
        def body(function: PrimFunc, mod: IRModule, ctx: PassContext) -> PrimFunc:
            ran.append(f"{name}:{len(loops(function))}")
            return function

        made: Pass = transform.prim_func_pass(body, opt_level=level, name=name, required=required)
        return made

    mod = IRModule({"f": _module()["f"]})
    both = transform.Sequential([note("a", 0), note("b", 3), note("c", 1, ["tir.UnrollLoop"])])
    with PassContext(opt_level=2):
        both(mod)
    assert ran == ["a:1", "c:0"]
    ran.clear()
    with PassContext(opt_level=2, required_pass=["b"], disabled_pass=["a"]):
        both(mod)
    assert ran == ["b:1", "c:0"]


def test_unknown_requirement() -> None:
    needy = transform.prim_func_pass(lambda f, m, c: f, opt_level=0, name="needy", required=["tir.Magic"])
    with pytest.raises(LoweringError, match=r"pass needy requires 'tir\.Magic', which is none of"):
        transform.Sequential([needy])(_module())


def test_factories_apply_to_modules() -> None:
    assert loops(transform.UnrollLoop()(_module())["f"]) == []
    assert loops(transform.ConvertForLoopsToSerial()(_module())["g"]) == ["p 0:2"]
    guarded = transform.InstrumentBoundCheckers()(IRModule({"f": func(loop("i", 9, lambda i: store(B, 1.0, i)), B)}))
    assert statements(guarded["f"], AssertStmt)
    assert not statements(transform.SkipAssert()(guarded)["f"], AssertStmt)
    tile = IRModule({"main": matmul(8, 32, 4, 4, 16, 8)})
    chain = [
        transform.VectorizeLoop(),
        transform.UnrollRegisterTile(),
        transform.UnrollLoop(),
        transform.RegisterPromotion(),
        transform.StorageRewrite(),
    ]
    assert "register" in transform.Sequential(chain)(tile)["main"].script()
    assert "VECTORIZED" not in str(loops(transform.VectorizeLoop(False)(tile)["main"]))


ARGUMENTS: dict[str, tuple[Any, ...]] = {
    "BindTarget": (Target("llvm"),),
    "InjectCopyIntrin": ("memcpy", lambda *ends: None),
    "LiftAttrScope": ("scope",),
    "ThreadSync": ("shared",),
}


@pytest.mark.parametrize("name", sorted(transform.PASSES))
def test_every_factory_makes_a_pass_that_runs(name: str) -> None:
    one = getattr(transform, name)(*ARGUMENTS.get(name, ()))
    assert one.name.startswith("tir.")
    assert isinstance(one(transform.BindTarget(Target("llvm"))(_module())), IRModule)  # calling conventions are those of a target


def test_narrow_data_type_takes_bits() -> None:
    wide = IRModule({"f": func(loop("i", 4, lambda i: store(B, 1.0, i), dtype="int64"), B)})
    assert transform.NarrowDataType(64)(wide) is wide
    assert statements(transform.NarrowDataType(32)(wide)["f"], For)[0].extent is IntImm("int32", 4)


def test_apply_filter_and_single_functions() -> None:
    mod = _module()
    assert transform.Apply(lambda f: f.with_attr("x", 1))(mod)["f"].attrs["x"] == 1
    assert "g" not in transform.Filter(lambda f: len(f.params) == 2)(mod)
    only = transform.ApplyPassToFunction(transform.UnrollLoop(), "g")(mod)
    assert only["f"] is mod["f"]


def test_print_ir(capsys: pytest.CaptureFixture[str]) -> None:
    transform.PrintIR("## here")(_module())
    assert capsys.readouterr().out.startswith("## here\n")
