"""What copies, layouts and padding make of functions; the same as TVM 0.19, but that each block has a name of its own."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tensorexpr import tir
from tests import caching_programs as programs
from tests.caching_programs import Request
from tests.conftest import Golden

Case = tuple[Callable[[], tir.PrimFunc], Request]


def tiled_copies(sch: tir.Schedule) -> object:
    """Operands and result of a tile in copies of their own."""
    i, j, k = sch.get_loops("C")
    (i0, i1), (j0, j1) = sch.split(i, [None, 4]), sch.split(j, [None, 4])
    sch.reorder(i0, j0, i1, j1, k)
    sch.write_at(j0, "C", 0, "local")
    sch.read_at(j0, "C", 0, "shared")
    return sch.read_at(j0, "C", 1, "shared")


def even_matmul() -> tir.PrimFunc:
    """A product whose tiles come out even."""
    return programs.matmul_relu(8, 8, 4)


def fused_padding(sch: tir.Schedule) -> object:
    """One loop for the padded rows and columns."""
    return sch.decompose_padding("P", sch.fuse(*sch.get_loops("P")[2:]))


CASES: dict[str, list[Case]] = {
    "cache_read": [
        (programs.chain, lambda sch: sch.cache_read("B", 0, "local")),
        (programs.two_readers, lambda sch: sch.cache_read("B", "A", "global", consumer_blocks=["D"])),
        (programs.fused, lambda sch: sch.cache_read("C", 0, "global")),
        (programs.nested, lambda sch: sch.cache_read("B", 0, "global")),
    ],
    "cache_write": [
        (programs.matmul_relu, lambda sch: sch.cache_write("D", 0, "local")),
        (programs.matmul_relu, lambda sch: sch.cache_write("C", "C", "global")),
        (programs.fused, lambda sch: sch.cache_write("B", 0, "global", consumer_blocks=["C"])),
        (programs.nested, lambda sch: sch.cache_write("C", 0, "global")),
        (programs.guarded, lambda sch: sch.cache_write("C", 0, "global")),
    ],
    "cache_inplace": [(programs.accumulate, lambda sch: sch.cache_inplace("A", 0, "local"))],
    "cache_index": [
        (programs.resize, lambda sch: sch.cache_index("B", "global")),
        (programs.resize, lambda sch: sch.cache_index("B", "global", 2)),
    ],
    "reindex": [
        (programs.transpose, lambda sch: sch.reindex("B", ("read", 0))),
        (programs.transpose, lambda sch: sch.reindex("B", ("write", 0))),
        (programs.conv, lambda sch: sch.reindex("Y", "P")),
    ],
    "reindex_cache_read": [
        (programs.matmul_relu, lambda sch: sch.reindex_cache_read("C", 0, "shared", lambda i, j, k: (k, i))),
        (programs.nested, lambda sch: sch.reindex_cache_read("C", 0, "local", lambda i, j: (j, i))),
    ],
    "reindex_cache_write": [
        (programs.matmul_relu, lambda sch: sch.reindex_cache_write("C", 0, "shared", lambda i, j, k: (j // 3, i, j % 3))),
        (programs.guarded, lambda sch: sch.reindex_cache_write("C", 0, "global", lambda i: (i // 4, i % 4))),
    ],
    "read_at_write_at": [(even_matmul, tiled_copies)],
    "transform_layout": [
        (programs.chain, lambda sch: sch.transform_layout("B", ("write", 0), lambda i, j: (j // 4, i, j % 4))),
        (programs.conv, lambda sch: sch.transform_layout("Y", "W", lambda o, i, h, w: (o // 2, i // 2, h, w, i % 2, o % 2))),
        (programs.chain, lambda sch: sch.transform_layout("B", "B", lambda i, j: (j // 5, i, j % 5), pad_value=0.0)),
        (programs.fused, lambda sch: sch.transform_layout("B", ("write", 0), lambda i, j: (j // 2, i, j % 2), pad_value=1.0)),
        (programs.chain, lambda sch: sch.transform_layout("B", "A", lambda i, j: (j // 5, i, j % 5), pad_value=0.0)),
    ],
    "transform_block_layout": [
        (programs.chain, lambda sch: sch.transform_block_layout("B", lambda i, j: [i * 12 + j])),
        (
            programs.conv,
            lambda sch: sch.transform_block_layout("Y", lambda n, f, h, w, c, r, s: (n * 36 + h * 6 + w, f, c * 9 + r * 3 + s)),
        ),
    ],
    "pad_einsum": [(programs.matmul_relu, lambda sch: sch.pad_einsum("C", [4, 4, 4]))],
    "decompose_padding": [
        (programs.padding, lambda sch: sch.decompose_padding("B", sch.get_loops("B")[0])),
        (programs.conv, lambda sch: sch.decompose_padding("P", sch.get_loops("P")[3])),
        (programs.conv, fused_padding),
    ],
}


@pytest.mark.parametrize("primitive", CASES)
def test_copies_and_layouts(primitive: str, golden: Golden) -> None:
    texts = []
    for declared, request in CASES[primitive]:
        sch = tir.Schedule(declared())
        before = _body(sch)
        request(sch)
        assert sch.trace is not None
        texts.append(f"{before}\n\n->\n\n{_body(sch)}\n\n{sch.trace.as_python()[-1]}")
    golden(f"tir_schedule/{primitive}.txt", "\n\n\n".join(texts))


def _body(sch: tir.Schedule) -> str:
    """The function without its attributes."""
    lines = sch.mod["main"].script().splitlines()
    start = next(n for n, line in enumerate(lines) if line.startswith("def "))
    return "\n".join(line for line in lines[start:] if "func_attr" not in line and line.strip())
