"""What blocks become that are computed elsewhere; the same as TVM 0.19 makes of them, but for conditions with the constant on the right."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tensorexpr import te, tir
from tensorexpr.te.tensor import Tensor
from tests import placement_programs as programs
from tests.conftest import Golden

Case = tuple[Callable[[], list[Tensor]], Callable[[tir.Schedule], object]]


def tiled_stencil(sch: tir.Schedule) -> None:
    """Eight elements and their halo at a time; 20 is no multiple of 8."""
    outer, _ = sch.split(sch.get_loops("C")[0], [None, 8])
    sch.compute_at("B", outer)


def tiled_relu(sch: tir.Schedule) -> None:
    """The product's tile, then its relu."""
    i, j, k = sch.get_loops("C")
    (i0, i1), (j0, j1) = sch.split(i, [None, 4]), sch.split(j, [None, 5])
    sch.reorder(i0, j0, i1, j1, k)
    sch.reverse_compute_at("D", j0)


def sampled(sch: tir.Schedule) -> None:
    """A decision says where."""
    sch.compute_at("B", sch.sample_compute_location("B", decision=1))


CASES: dict[str, list[Case]] = {
    "compute_at": [
        (programs.chain, lambda sch: sch.compute_at("B", sch.get_loops("C")[0])),
        (lambda: programs.chain(1, 8), lambda sch: sch.compute_at("B", sch.get_loops("C")[0], preserve_unit_loops=True)),
        (programs.stencil, tiled_stencil),
        (programs.padded, lambda sch: sch.compute_at("B", sch.get_loops("C")[0])),
        (programs.flattened, lambda sch: sch.compute_at("B", sch.split(sch.get_loops("C")[0], [None, 8])[0])),
        (programs.matmul_relu, lambda sch: sch.compute_at("C", sch.get_loops("D")[1])),
        (programs.scaled_matmul, lambda sch: sch.compute_at("scaled", sch.get_loops("C")[1])),
    ],
    "reverse_compute_at": [
        (programs.chain, lambda sch: sch.reverse_compute_at("C", sch.get_loops("B")[0])),
        (programs.matmul_relu, tiled_relu),
        (programs.part, lambda sch: sch.reverse_compute_at("C", sch.split(sch.get_loops("B")[0], [None, 5])[0])),
        (programs.flattened, lambda sch: sch.reverse_compute_at("C", sch.get_loops("B")[0])),
        (programs.scaled_matmul, lambda sch: sch.reverse_compute_at("C", sch.get_loops("scaled")[1])),
    ],
    "compute_inline": [
        (programs.chain, lambda sch: sch.compute_inline("B")),
        (programs.diamond, lambda sch: sch.compute_inline("B")),
        (programs.scaled_matmul, lambda sch: sch.compute_inline("scaled")),
        (programs.padded, lambda sch: sch.compute_inline("B")),
    ],
    "reverse_compute_inline": [
        (programs.chain, lambda sch: sch.reverse_compute_inline("C")),
        (programs.part, lambda sch: sch.reverse_compute_inline("C")),
        (programs.flattened, lambda sch: sch.reverse_compute_inline("C")),
    ],
    "sample_compute_location": [(programs.chain, sampled)],
}


@pytest.mark.parametrize("primitive", CASES)
def test_blocks_computed_elsewhere(primitive: str, golden: Golden) -> None:
    texts = []
    for declared, request in CASES[primitive]:
        sch = tir.Schedule(te.create_prim_func(declared()))
        before = _body(sch)
        request(sch)
        texts.append(f"{before}\n\n->\n\n{_body(sch)}")
    golden(f"tir_schedule/{primitive}.txt", "\n\n\n".join(texts))


def _body(sch: tir.Schedule) -> str:
    """The function without the lines that say what blocks read and write."""
    lines = sch.mod["main"].script().splitlines()
    start = next(n for n, line in enumerate(lines) if line.startswith("def "))
    return "\n".join(line for line in lines[start:] if "func_attr" not in line and line.strip())
