"""The te façade: primitives, their traces, drawing and printing."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tensorexpr import te
from tensorexpr.errors import RecordError, ScheduleError
from tensorexpr.schedule import Schedule, Trace, create_schedule
from tensorexpr.schedule.legality import check_tree
from tensorexpr.te.tensor import Tensor
from tensorexpr.testing import assert_schedule_correct
from tests.programs import chain, matmul_add


def scheduled(args: list[Tensor]) -> Schedule:
    """A schedule that uses most primitives."""
    a, out = args[0], args[-1]
    s = create_schedule(out.op)
    matmul = out.op.input_tensors[0]
    cached = s.cache_read(a, "local", [matmul])
    i, j = s[out].op.axis
    io, jo, ii, ji = s[out].tile(i, j, 4, 8)
    fused = s[out].fuse(io, jo)
    s[out].parallel(fused)
    s[out].vectorize(ji)
    s[matmul].compute_at(s[out], fused)
    (k,) = s[matmul].op.reduce_axis
    ko, ki = s[matmul].split(k, factor=5)
    mi, mj = s[matmul].op.axis
    s[matmul].reorder(ko, mi, ki, mj)
    s[matmul].unroll(ki)
    s[matmul].pragma(ko, "auto_unroll_max_step", 64)
    s[cached].compute_at(s[matmul], ko)
    assert ii is not None
    return s


def test_drawing_shows_the_loop_tree_with_extents() -> None:
    assert str(scheduled(matmul_add())) == (
        "inputs: A [16, 16], B [16, 16], C [16, 16]\n"
        "out [16, 16]\n"
        "  for i.outer.j.outer.fused (0, 8) parallel\n"
        "    matmul [16, 16]\n"
        "      reduce k.outer (0, 4) auto_unroll_max_step=64\n"
        "        A.local [16, 16] in local\n"
        "          for ax0 (0, 16)\n"
        "            for ax1 (0, 16)\n"
        "              A.local = ...\n"
        "        for i (0, 16)\n"
        "          reduce k.inner (0, 5) unroll\n"
        "            for j (0, 16)\n"
        "              matmul += ...\n"
        "    for i.inner (0, 4)\n"
        "      for j.inner (0, 8) vectorize\n"
        "        out = ..."
    )


def test_a_trace_survives_json_and_fits_a_renamed_program() -> None:
    s = scheduled(matmul_add())
    data = json.loads(json.dumps(s.trace.to_json()))
    assert Trace.from_json(data) == s.trace
    other = matmul_add(prefix="other_")
    replayed = Schedule((other[-1].op,), Trace.from_json(data))
    assert str(replayed).replace("other_", "") == str(s)


def test_printed_python_makes_the_same_trace() -> None:
    s = scheduled(matmul_add())
    args = matmul_add()
    out = args[-1]
    names: dict[str, Any] = {"A": args[0], "B": args[1], "C": args[2], "out": out, "matmul": out.op.input_tensors[0]}
    names["s"] = again = create_schedule(out.op)
    exec(s.as_python(), names)
    assert again.trace == s.trace


def test_copies_are_independent() -> None:
    args = matmul_add()
    s = create_schedule(args[-1].op)
    copy = s.copy()
    copy[args[-1]].split(args[-1].op.axis[0], factor=4)
    assert len(s.trace) == 0
    assert len(copy.trace) == 1


def test_a_refused_step_leaves_the_schedule_as_it_was() -> None:
    args = matmul_add()
    s = scheduled(args)
    before, trace = str(s), s.trace
    with pytest.raises(ScheduleError):
        s[args[-1]].split(args[-1].op.axis[0], factor=4)
    assert str(s) == before
    assert s.trace is trace


def test_split_by_nparts_and_names() -> None:
    args = matmul_add()
    s = create_schedule(args[-1].op)
    outer, inner = s[args[-1]].split(args[-1].op.axis[0], nparts=3)
    assert (outer.name, inner.name) == ("i.outer", "i.inner")
    assert "for i.outer (0, 3)" in str(s)
    assert "for i.inner (0, 6)" in str(s)


def test_cache_write_keeps_the_output_and_its_axes() -> None:
    args = matmul_add()
    matmul = args[-1].op.input_tensors[0]
    s = create_schedule(matmul.op)
    cached = s.cache_write(matmul, "local")
    assert [axis.name for axis in s[cached].op.axis] == ["i.c", "j.c"]
    assert [axis.name for axis in s[cached].op.reduce_axis] == ["k"]
    assert s[matmul].op.axis == matmul.op.axis
    assert [stage.op.name for stage in s.stages] == ["A", "B", "matmul.local", "matmul"]


def test_fusing_one_axis_is_that_axis() -> None:
    args = matmul_add()
    s = create_schedule(args[-1].op)
    axis = args[-1].op.axis[0]
    assert s[args[-1]].fuse(axis) is axis


def test_inlining_a_chain() -> None:
    args = chain()
    s = create_schedule(args[-1].op)
    c = args[-1].op.input_tensors[0]
    s[c].compute_inline()
    check_tree(s.tree)
    assert "inlined: C" in str(s)


@pytest.mark.parametrize(
    "data",
    [
        None,
        {},
        ["split"],
        [["split", 0, 0, [None, 2], 7]],
        [["split", "0", 0, [None, 2]]],
        [["split", 0, 0, [None, 2.5]]],
        [["split", 0, 0, [None, True]]],
        [["nothing", 1]],
        [[["split"], 1]],
        [["pragma", 0, 0, "x" * 1000, 1]],
        [["reorder", 0, [[1], 2]]],
    ],
)
def test_hostile_traces_are_record_errors(data: Any) -> None:
    with pytest.raises(RecordError):
        Trace.from_json(data)


def test_replay_names_the_step_that_does_not_fit() -> None:
    args = matmul_add()
    trace = Trace.from_json([["split", 2, 0, [None, 4]], ["split", 2, 0, [None, 4]]])
    with pytest.raises(ScheduleError, match=r"step 1 \(split\): In schedule for matmul: axis 'i' was split or fused"):
        Schedule((args[-1].op,), trace)


def test_all_results_of_a_stage_are_cached_together() -> None:
    a = te.placeholder((8, 4), name="A")
    more, twice = te.compute((8, 4), lambda i, j: (a[i, j] + 1.0, a[i, j] * 2.0), name="P")
    z = te.compute((8, 4), lambda i, j: more[i, j] * twice[i, j], name="Z")
    s = te.create_schedule(z.op)
    cached = s.cache_write([more, twice], "local")
    assert [tensor.op.name for tensor in cached] == ["P.local", "P.local"] and cached[1].value_index == 1
    s[cached[0]].compute_at(s[more], s[more].op.axis[0])
    assert_schedule_correct(s, [a, z])


def test_copies_of_one_tensor_are_numbered_by_their_names() -> None:
    a = te.placeholder((8,), name="A")
    b, c = te.compute((8,), lambda i: a[i] + 1.0, name="B"), te.compute((8,), lambda i: a[i] * 2.0, name="C")
    s = te.create_schedule([b.op, c.op])
    names = [s.cache_read(a, "local", [reader]).op.name for reader in (b, c)]
    assert names == ["A.local", "A.d.local"]
