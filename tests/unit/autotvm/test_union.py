"""A template beside other spaces: its configurations are programs of blocks, and records say whose they are."""

from __future__ import annotations

import pytest

import tensorexpr as tvm
from tensorexpr import te
from tensorexpr.autotvm.space_generator import TemplatePrograms, TemplateSpaces
from tensorexpr.errors import TuningError
from tensorexpr.meta_schedule import TuneContext
from tensorexpr.meta_schedule.origin import space_of
from tensorexpr.schedule.blocks import Schedule
from tests.autotvm_templates import TARGET, matmul, packed, product


def programs(template: object, n: int) -> TemplatePrograms:
    mod = tvm.IRModule({"main": te.create_prim_func(list(product(n)))})
    generator = TemplateSpaces(template, (n,))
    generator.adopt(TuneContext(mod, target=TARGET, rand_state=1))
    (space,) = generator.generate_design_space(mod)
    assert isinstance(space, TemplatePrograms)
    return space


def test_configurations_are_programs_of_blocks() -> None:
    space = programs(matmul, 16)
    rows = space.evolve(6)
    assert len(rows) == 6
    for row in rows:
        sch = space.to_schedule(row)
        assert sch is not None and space_of(sch.trace) == "TemplateSpace(tests/matmul)"
        again = Schedule(space.mod)
        assert sch.trace is not None
        sch.trace.apply_to_schedule(again, remove_postproc=False)
        tvm.ir.assert_structural_equal(again.mod, sch.mod)
    space.learn(rows, [float(n + 1) for n in range(6)])
    assert not set(space.sample(6)) & set(rows)


def test_a_template_of_another_computation_is_refused() -> None:
    with pytest.raises(TuningError, match="isn't what the template"):
        programs(packed, 16)
