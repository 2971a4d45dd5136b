"""What primitives on nests, reductions and memory make of functions; as TVM 0.19 does it, but where a test of errors says otherwise."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tensorexpr import tir
from tests import loop_programs as programs
from tests.conftest import Golden

Request = Callable[[tir.Schedule], object]
Case = tuple[tir.PrimFunc, Request]


def tiled(sch: tir.Schedule, factor: int = 4) -> tuple[list[tir.schedule.LoopRV], list[tir.schedule.LoopRV]]:
    """The matmul's loops in two, the outer ones first."""
    pairs = [sch.split(loop, [None, factor]) for loop in sch.get_loops("C")]
    outer, inner = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    sch.reorder(*outer, *inner)
    return outer, inner


def decomposed_tiles(sch: tir.Schedule) -> object:
    """The first values before the outer loop of the reduction, in vectors."""
    outer, inner = tiled(sch)
    sch.vectorize(inner[1])
    return sch.decompose_reduction("C", outer[2])


def tensorized(sch: tir.Schedule) -> object:
    """Products of 4 x 4 by an intrinsic."""
    outer, inner = tiled(sch)
    sch.decompose_reduction("C", outer[2])
    return sch.tensorize(inner[0], programs.register_dot())


def second(sch: tir.Schedule, block: str, place: int = -1) -> tir.schedule.LoopRV:
    """A loop of a block."""
    return sch.get_loops(block)[place]


def rolled(sch: tir.Schedule) -> object:
    """Tiles of two windows of three."""
    outer, _ = sch.split(sch.get_loops("C")[0], [None, 2])
    sch.compute_at("B", outer)
    return sch.rolling_buffer("B", 0)


CASES: dict[str, list[Case]] = {
    "rolling_buffer": [(programs.windows, rolled)],
    "merge": [
        (programs.tiles, lambda sch: sch.merge(second(sch, "B"), second(sch, "C"))),
        (programs.chain, lambda sch: sch.merge(second(sch, "B", 0), second(sch, "C", 0))),
    ],
    "loop_partition": [
        (programs.chain, lambda sch: sch.loop_partition(second(sch, "B"), [2, None])),
        (programs.matmul, lambda sch: sch.loop_partition(second(sch, "C"), [4, 4])),
    ],
    "add_unit_loop": [(programs.tiles, lambda sch: (sch.add_unit_loop(sch.get_block("B")), sch.add_unit_loop(second(sch, "C", 0))))],
    "reorder_block_iter_var": [(programs.matmul, lambda sch: sch.reorder_block_iter_var(sch.get_block("C"), [2, 1, 0]))],
    "decompose_reduction": [
        (programs.matmul, lambda sch: sch.decompose_reduction("C", second(sch, "C", 1))),
        (programs.matmul, decomposed_tiles),
        (programs.biased, lambda sch: sch.decompose_reduction("C", second(sch, "C"))),
    ],
    "rfactor": [
        (programs.matmul, lambda sch: sch.rfactor(sch.split(second(sch, "C"), [None, 4])[0], 1)),
        (programs.matmul, lambda sch: sch.rfactor(second(sch, "C"), -1)),
        (programs.argmax, lambda sch: sch.rfactor(sch.split(second(sch, "P"), [None, 4])[1], 1)),
    ],
    "blockize": [
        (programs.matmul, lambda sch: sch.blockize(tiled(sch)[1][0])),
        (programs.chain, lambda sch: sch.blockize(second(sch, "B"))),
        (programs.tiles, lambda sch: sch.blockize([sch.get_block("B"), sch.get_block("C")])),
    ],
    "tensorize": [(programs.matmul, tensorized)],
    "set_scope": [(programs.chain, lambda sch: sch.set_scope("B", "B", "local"))],
    "storage_align": [(programs.chain, lambda sch: sch.storage_align("B", 0, 0, 32, 1))],
    "annotate_buffer_access": [
        (programs.chain, lambda sch: sch.annotate_buffer_access(sch.get_block("C"), 0, "read", lambda i, j: ((i, i + 2), j)))
    ],
    "unsafe_set_dtype": [(programs.chain, lambda sch: sch.unsafe_set_dtype("B", 0, "float16"))],
    "unsafe_hide_buffer_access": [(programs.chain, lambda sch: sch.unsafe_hide_buffer_access(sch.get_block("C"), "read", [0]))],
    "set_axis_separator": [(programs.chain, lambda sch: sch.set_axis_separator("B", ("write", 0), []))],
}


@pytest.mark.parametrize("primitive", CASES)
def test_nests_reductions_and_memory(primitive: str, golden: Golden) -> None:
    texts = []
    for func, request in CASES[primitive]:
        sch = tir.Schedule(func)
        before = _body(sch)
        request(sch)
        assert sch.trace is not None
        texts.append(f"{before}\n\n->\n\n{_body(sch)}\n\n{sch.trace.as_python()[-1]}")
    golden(f"tir_schedule/{primitive}.txt", "\n\n\n".join(texts))


def _body(sch: tir.Schedule) -> str:
    """The function without its attributes."""
    lines = next(iter(sch.mod.functions.values())).script().splitlines()
    start = next(n for n, line in enumerate(lines) if line.startswith("def "))
    return "\n".join(line for line in lines[start:] if "func_attr" not in line and line.strip())
