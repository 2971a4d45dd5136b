"""Property: reading what was printed gives the same program, for programs of every phase."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tensorexpr
from tensorexpr import te, tir
from tensorexpr.script import parse
from tensorexpr.te.dag import post_dfs_order
from tensorexpr.te.operation import ComputeOp, PlaceholderOp
from tensorexpr.te.tensor import Tensor
from tensorexpr.testing.strategies import compute_dags, schedules
from tensorexpr.testing.strategies.dags import LAYERS
from tensorexpr.tir.structural_difference import first_difference
from tests.block_programs import BY_HAND, DECLARED
from tests.effort import share_of
from tests.property.script_programs import Programs

OF_COMPUTES = compute_dags().filter(lambda dag: {type(op) for op in post_dfs_order(dag.outputs)} <= {ComputeOp, PlaceholderOp})


def assert_reads_back(program: tir.PrimFunc | tir.IRModule) -> None:
    """The text of `program` is read as the same program, whose text is the same."""
    text = program.script()
    again = parse(text)
    difference = first_difference(program, again)
    assert difference is None, f"{text}\n{difference}"
    assert again.script() == text
    plain = program.script(syntax_sugar=False)
    difference = first_difference(program, parse(plain))
    assert difference is None, f"{plain}\n{difference}"


def _declared(make: Callable[[], list[Tensor]]) -> tir.PrimFunc:
    return te.create_prim_func(make())


@settings(max_examples=share_of(50), deadline=None, derandomize=True)
@given(st.data())
def test_functions_of_blocks(data: st.DataObject) -> None:
    assert_reads_back(te.create_prim_func(data.draw(OF_COMPUTES).tensors))


@settings(max_examples=share_of(50), deadline=None, derandomize=True)
@given(st.data(), st.sampled_from([0, 1, 2, 3]))
def test_lowered_modules(data: st.DataObject, phase: int) -> None:
    dag = data.draw(compute_dags(layers=tuple(LAYERS)))
    schedule = data.draw(schedules(dag.outputs, max_steps=20))
    assert_reads_back(tensorexpr.lower(schedule, dag.tensors, upto=phase))


@settings(max_examples=share_of(15), deadline=None, derandomize=True)
@given(st.data())
def test_indices_of_64_bits(data: st.DataObject) -> None:
    func = te.create_prim_func(data.draw(OF_COMPUTES).tensors, index_dtype_override="int64")
    assert_reads_back(func)
    assert_reads_back(tensorexpr.lower(func, upto=1))


BLOCKS: dict[str, Callable[[], tir.PrimFunc]] = {**BY_HAND, **{name: partial(_declared, make) for name, make in DECLARED.items()}}


@pytest.mark.parametrize("phase", [None, 0, 1, 2, 3])
@pytest.mark.parametrize("name", BLOCKS)
def test_blocks_through_all_phases(name: str, phase: int | None) -> None:
    func = BLOCKS[name]()
    assert_reads_back(func if phase is None else tensorexpr.lower(func, upto=phase))


@settings(max_examples=share_of(50), deadline=None, derandomize=True)
@given(st.integers(0, 1 << 30), st.booleans())
def test_all_statements_and_expressions(seed: int, blocks: bool) -> None:
    func = Programs(seed).function(blocks)
    name = str(func.attrs["global_symbol"])
    assert_reads_back(func)
    assert_reads_back(tir.IRModule({"main": func, name: func.without_attr("global_symbol")}, {"version": 3}))
