"""Golden prints of functions of blocks: the layout of TVMScript, and what lowering makes of blocks."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import tensorexpr
from tensorexpr import te
from tests.block_programs import BY_HAND, DECLARED

Golden = Callable[[str, str], None]


@pytest.mark.parametrize("name", DECLARED)
def test_create_prim_func(name: str, golden: Golden) -> None:
    golden(f"blocks/{name}.py", te.create_prim_func(DECLARED[name]()).script())


@pytest.mark.parametrize("name", BY_HAND)
def test_blocks_by_hand(name: str, golden: Golden) -> None:
    golden(f"blocks/{name}.py", BY_HAND[name]().script())


@pytest.mark.parametrize("name", ["matmul_add", "where"])
def test_lowered_declarations(name: str, golden: Golden) -> None:
    golden(f"blocks/{name}_phase_1.py", tensorexpr.lower(te.create_prim_func(DECLARED[name]()), upto=1).script())


@pytest.mark.parametrize("name", BY_HAND)
def test_lowered_blocks_by_hand(name: str, golden: Golden) -> None:
    golden(f"blocks/{name}_phase_1.py", tensorexpr.lower(BY_HAND[name](), upto=1).script())
