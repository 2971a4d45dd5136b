"""The design spaces of a product, as TVM 0.19 makes them, and what postprocessing makes of one program of each."""

from __future__ import annotations

from tensorexpr import meta_schedule as ms
from tensorexpr.meta_schedule.search_strategy.population import Programs
from tests.conftest import Golden
from tests.design_space_programs import spaces_of
from tests.meta_schedule_programs import matmul

# Without dot products, for which there are other spaces.
TARGET = "llvm -mtriple=x86_64-unknown-linux-gnu -mcpu=x86-64-v3 --num-cores=4"


def test_the_design_spaces_of_a_product(golden: Golden) -> None:
    task = ms.TuneContext(matmul(64), target=TARGET, space_generator="post-order-apply", rand_state=1)
    golden("meta_schedule/spaces_of_matmul.txt", "\n\n".join(str(space.trace) for space in spaces_of(task)))


def test_programs_of_a_product(golden: Golden) -> None:
    task = ms.TuneContext(matmul(64), target=TARGET, space_generator="post-order-apply", rand_state=1)
    programs = Programs(task)
    found = []
    for space in spaces_of(task):
        assert space.trace is not None
        made = programs.replayed(space.trace)
        assert made is not None
        found.append(made.sch.mod.script())
    golden("meta_schedule/programs_of_matmul.txt", "\n\n".join(found))
