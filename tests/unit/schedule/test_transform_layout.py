"""What transform_layout makes of stages, their readers, their loops and the code."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest

import tensorexpr as tvm
from tensorexpr import te
from tensorexpr.schedule import Schedule, Trace, create_schedule
from tensorexpr.te.tensor import Tensor
from tensorexpr.testing.check import assert_schedule_correct
from tests.packing import packed_convolution, packed_groups, packed_matmul


def copied(pad_value: float | None = None) -> tuple[Schedule, Tensor, list[Tensor]]:
    """A stage of 3 x 10 elements between a placeholder and its reader."""
    a = te.placeholder((3, 10), name="A")
    b = te.compute((3, 10), lambda i, j: a[i, j] * 2.0, name="B")
    c = te.compute((3, 10), lambda i, j: b[i, 9 - j] + 1.0, name="C")
    s = create_schedule(c.op)
    s[b].transform_layout(lambda i, j: [j // 4, i, j % 4], pad_value)
    return s, b, [a, c]


def test_new_axes_are_the_loops() -> None:
    s, b, _ = copied()
    assert [axis.name for axis in s[b].leaf_iter_vars] == ["j.o", "i", "j.i"]
    assert [str(axis.dom.extent) for axis in s[b].op.axis if axis.dom] == ["3", "3", "4"]
    assert s[b].op is s[b].origin_op
    assert s[s[b].op].id == s[b].id == s[b.op].id


def test_returns_the_new_axes() -> None:
    s, b, _ = copied()
    axes = s[b].transform_layout(lambda a, i, b: [i, a, b])
    assert axes == list(s[b].op.axis)
    assert [axis.name for axis in axes] == ["i", "j.o", "j.i"]


@pytest.mark.parametrize("pad_value", [None, 0, 3.5])
def test_padding_is_stored(pad_value: float | None) -> None:
    s, _, args = copied(pad_value)
    text = str(tvm.lower(s, args, upto=0))
    assert f"T.float32({float(pad_value or 0)})" in text
    assert "B = T.Buffer((3, 3, 4))" in text
    assert "B[(9 - j) // 4, i, (9 - j) % 4]" in text
    assert_schedule_correct(s, args)


def test_a_layout_that_is_filled_has_no_condition() -> None:
    a = te.placeholder((3, 8), name="A")
    b = te.compute((3, 8), lambda i, j: a[i, j] * 2.0, name="B")
    c = te.compute((3, 8), lambda i, j: b[i, j], name="C")
    s = create_schedule(c.op)
    s[b].transform_layout(lambda i, j: [j // 4, te.AXIS_SEPARATOR, i, j % 4], pad_value=7)
    assert "if" not in str(tvm.lower(s, [a, c], upto=0)).split("def main")[1].replace("Buffer", "")
    assert_schedule_correct(s, [a, c])


@pytest.mark.parametrize(("pad_value", "inits"), [(None, 0), (0, 0), (5, 1)])
def test_padded_reductions_add_nothing_to_the_padding(pad_value: int | None, inits: int) -> None:
    a = te.placeholder((10, 6), name="A")
    k = te.reduce_axis((0, 6), name="k")
    b = te.compute((10,), lambda i: te.sum(a[i, k], axis=k), name="B")
    c = te.compute((10,), lambda i: b[i] * 2.0, name="C")
    s = create_schedule(c.op)
    s[b].transform_layout(lambda i: [i // 4, i % 4], pad_value)
    text = str(tvm.lower(s, [a, c], upto=0))
    assert text.count("if_then_else") == inits
    assert text.count("if T.likely(i_o * 4 + i_i < 10)") == 1
    assert_schedule_correct(s, [a, c])


def test_sums_that_may_be_anything_in_the_padding_have_no_condition() -> None:
    """Where what they read exists there too: a copy that was padded before. A division may trap on what is no element."""
    for division in (False, True):
        a = te.placeholder((6, 10), "int32", name="A")
        k = te.reduce_axis((0, 6), name="k")
        b = te.compute((10,), lambda i, a=a, k=k, division=division: te.sum(7 // a[k, i] if division else a[k, i], axis=k), name="B")
        c = te.compute((10,), lambda i, b=b: b[i] * 2, name="C")
        s = create_schedule(c.op)
        copy = s.cache_read(a, "global", [b])
        s[copy].transform_layout(lambda k, i: [i // 4, k, i % 4], pad_value=0)
        s[b].transform_layout(lambda i: [i // 4, i % 4])
        assert str(tvm.lower(s, [a, c], upto=0)).count("if T.likely(i_o * 4 + i_i < 10)") == division
        if not division:
            assert_schedule_correct(s, [a, c])


def test_several_outputs_move_together() -> None:
    a = te.placeholder((7,), name="A")
    b, d = te.compute((7,), lambda i: (a[i] + 1.0, a[i] * 2.0), name="B")
    c = te.compute((7,), lambda i: b[i] + d[6 - i], name="C")
    s = create_schedule(c.op)
    s[b].transform_layout(lambda i: [i % 3, i // 3], pad_value=1)
    assert_schedule_correct(s, [a, c])


def test_several_readers_and_repeated_transforms() -> None:
    a = te.placeholder((6, 10), name="A")
    b = te.compute((6, 10), lambda i, j: a[i, j] * 2 + 1, name="B")
    k = te.reduce_axis((0, 10), name="k")
    r = te.compute((6,), lambda i: te.sum(b[i, k], axis=k), name="R")
    c = te.compute((6, 10), lambda i, j: b[i, j] + b[5 - i, j] + r[i], name="C")
    d = te.compute((6, 10), lambda i, j: b[i, 9 - j] * c[i, j], name="D")
    s = create_schedule(d.op)
    s[b].transform_layout(lambda i, j: [j // 4, i, j % 4], pad_value=7)
    s[b].transform_layout(lambda x, y, z: [x * 6 + y, z])
    s[r].transform_layout(lambda i: [i // 4, i % 4], pad_value=3)
    s[c].transform_layout(lambda i, j: [(i * 10 + j) // 8, (i * 10 + j) % 8])
    assert_schedule_correct(s, [a, d])
    assert s.explain().count("storage: the layout") == 4


def test_inlined_readers_follow() -> None:
    a = te.placeholder((5, 6), name="A")
    b = te.compute((5, 6), lambda i, j: a[i, j] + 1.0, name="B")
    c = te.compute((5, 6), lambda i, j: b[i, j] * 2.0, name="C")
    d = te.compute((5, 6), lambda i, j: c[i, j] - 1.0, name="D")
    s = create_schedule(d.op)
    s[c].compute_inline()
    s[b].transform_layout(lambda i, j: [j, i])
    assert_schedule_correct(s, [a, d])


def test_a_copy_of_a_padded_stage_is_read_in_its_layout() -> None:
    s, b, args = copied(0)
    copy = s.cache_read(s[b].op.output(0), "local", [args[-1]])
    assert [str(extent) for extent in copy.shape] == ["3", "3", "4"]
    assert_schedule_correct(s, args)


def test_infinite_padding() -> None:
    s, b, args = copied(float("-inf"))
    assert s.trace.to_json()[0][-1] == "-inf"
    assert Trace.from_json(json.loads(json.dumps(s.trace.to_json()))) == s.trace
    replayed = create_schedule(args[-1].op)
    exec(s.as_python(), {"A": args[0], "B": b, "C": args[1], "s": replayed})
    assert replayed.trace == s.trace
    assert_schedule_correct(s, args)


def test_symbolic_extents() -> None:
    n = te.size_var("n")
    a = te.placeholder((n, n), name="A")
    b = te.compute((n, n), lambda i, j: a[i, j] + 1.0, name="B")
    c = te.compute((n, n), lambda i, j: b[j, i] * 2.0, name="C")
    s = create_schedule(c.op)
    s[b].transform_layout(lambda i, j: [j // 8, i, j % 8], pad_value=0)
    assert_schedule_correct(s, [a, c], sizes=[{n: 1}, {n: 8}, {n: 13}])


@pytest.mark.parametrize("place", ["root", "parallel loop"])
@pytest.mark.parametrize("columns", [16, 19, 24, 33])
def test_packed_matmul(place: str, columns: int) -> None:
    s, args = packed_matmul(13, 7, columns, place)
    assert_schedule_correct(s, args)


@pytest.mark.parametrize("place", ["root", "parallel loop"])
def test_packed_convolution_and_groups(place: str) -> None:
    for s, args in (packed_convolution(place), packed_groups(place)):
        assert_schedule_correct(s, args)


def test_accumulators_in_another_layout_are_registers() -> None:
    s, args = packed_convolution()
    text = str(tvm.lower(s, args))
    assert 'T.allocate([4], "float32x8", "register")' in text
    assert_schedule_correct(s, args)


def test_json_and_python() -> None:
    for s, args in (packed_matmul(13, 7, 19), packed_convolution(), packed_groups()):
        trace = Trace.from_json(json.loads(json.dumps(s.trace.to_json())))
        assert trace == s.trace
        assert str(Schedule(s.outputs, trace)) == str(s)
        replayed = create_schedule(args[-1].op)
        tensors = {stage.op.name: stage.op.output(0) for stage in replayed.stages}
        exec(s.as_python(), {**tensors, "s": replayed})
        assert replayed.trace == s.trace


def test_cache_write_after_a_transform_prints_the_axes_there_are() -> None:
    s, b, args = copied(0)
    s.cache_write(s[b].op.output(0), "local")
    replayed = create_schedule(args[-1].op)
    exec(s.as_python(), {"A": args[0], "B": b, "C": args[1], "s": replayed})
    assert replayed.trace == s.trace
    assert_schedule_correct(s, args)


def test_the_panel_is_private_and_only_the_result_is_masked() -> None:
    """Of a product whose last panel is half empty, only the stores of C have masks; panels belong to a thread."""
    s, args = packed_matmul(12, 40, 40, "parallel loop", panel=16, rows=4)
    text = str(tvm.lower(s, args))
    body = text.split("for j_outer in T.parallel(3):")[1]
    assert re.search(r'B_global = T.allocate\(\[640\], "float32", "global"\)', body)
    updates = [line for line in body.splitlines() if re.search(r"C_local_1\[\d+\] = C_local_1\[\d+\] \+", line)]
    assert updates and not any("predicate" in line or "//" in line or "%" in line for line in updates)
    assert all("predicate" not in line or "C_1.vstore" in line or "B_1.vload" in line for line in body.splitlines())
    built = tvm.build(s, args)
    assert " idiv" not in hot_loop(built.get_source("asm"))
    arrays = [np.ones(tuple(int(e) for e in t.shape), "float32") for t in args]  # type: ignore[call-overload]
    built(*arrays)
    assert (arrays[2] == 40).all()


def hot_loop(assembly: str) -> str:
    """The lines from the first to the last fused multiplication."""
    lines = assembly.splitlines()
    places = [n for n, line in enumerate(lines) if "fmadd" in line or "fmla" in line]
    return "\n".join(lines[places[0] : places[-1]]) if places else ""


@pytest.mark.parametrize("target", ["input", "output", "both"])
def test_arguments_are_passed_in_their_new_layout(target: str) -> None:
    a = te.placeholder((6, 8), name="A")
    c = te.compute((6, 8), lambda i, j: a[i, j] + 1.0, name="C")
    s = create_schedule(c.op)
    if target in ("input", "both"):
        assert s[a].transform_layout(lambda i, j: [j, i]) == []
    if target in ("output", "both"):
        axes = s[c].transform_layout(lambda i, *, j: [j // 4, i, j % 4])
        s[c].vectorize(axes[-1])
    shapes = [[str(e) for e in b.shape] for b in tvm.lower(s, [a, c])["main"].buffer_map.values()]
    assert shapes == [["6", "8"] if target == "output" else ["8", "6"], ["6", "8"] if target == "input" else ["2", "6", "4"]]
    data = np.arange(48, dtype="float32").reshape(6, 8)
    packed = [s.layout_of(t).map_ndarray(data) for t in (a, c)]
    tvm.build(s, [a, c])(*packed)
    np.testing.assert_array_equal(s.layout_of(c).unmap_ndarray(packed[1], (6, 8)), data + 1)
    assert_schedule_correct(s, [a, c])
    assert_schedule_correct(s, s.arguments([a, c]))


def test_layouts_of_arguments_survive_caches_and_the_printed_program() -> None:
    a = te.placeholder((6, 8), name="A")
    b = te.compute((6, 8), lambda i, j: a[i, j] * 2.0, name="B")
    c = te.compute((6, 8), lambda i, j: b[i, j] + a[i, j], name="C")
    s = create_schedule([b.op, c.op])
    s[a].transform_layout(lambda i, j: [j, te.AXIS_SEPARATOR, i])
    s[b].transform_layout(lambda i, j: [i // 2, j, i % 2])
    copy = s.cache_read(a, "shared", [b, c])
    local = s.cache_write(c, "local")
    s[local].transform_layout(lambda i, j: [j, i])
    s[c].transform_layout(lambda i, j: [j // 3, i, j % 3], pad_value=-1)
    s[copy].compute_inline()
    replayed = create_schedule([b.op, c.op])
    exec(s.as_python(), {"s": replayed, "A": a, "B": b, "C": c, "te": te})
    assert replayed.trace == s.trace
    assert_schedule_correct(s, [a, b, c])
    out = np.zeros((3, 6, 3), "float32")
    tvm.build(s, [a, b, c])(np.ones((8, 6), "float32"), np.zeros((3, 8, 2), "float32"), out)
    assert (out[:2] == 3).all() and (out[2, :, 2] == -1).all()


def test_a_block_of_an_input_has_its_whole_extent() -> None:
    a = te.placeholder((1, 3, 8, 8), name="A")
    c = te.compute(a.shape, lambda *i: a[i] + 1.0, name="C")
    s = create_schedule(c.op)
    s[a].transform_layout(lambda n, c, h, w: [n, c // 4, h, w, c % 4])
    assert "A: T.Buffer((1, 1, 8, 8, 4)" in str(tvm.lower(s, [a, c]))
    assert_schedule_correct(s, [a, c])


def test_an_intermediate_argument_has_its_new_layout_too() -> None:
    s, b, (a, c) = copied(0.0)
    shapes = [", ".join(map(str, buffer.shape)) for buffer in tvm.lower(s, [a, b, c])["main"].buffer_map.values()]
    assert shapes == ["3, 10", "3, 3, 4", "3, 10"]


@pytest.mark.parametrize("vector", [False, True])
def test_separators_give_storage_several_axes(vector: bool) -> None:
    a = te.placeholder((2, 3, 4), name="A")
    c = te.compute((2, 3, 4), lambda i, j, k: a[i, j, k] + 1.0, name="C")
    s = create_schedule(c.op)
    s[a].transform_layout(lambda i, j, k: [k, te.AXIS_SEPARATOR, j, te.AXIS_SEPARATOR, i])
    axes = s[c].transform_layout(lambda i, j, k: [i, j, te.AXIS_SEPARATOR, k])
    if vector:
        s[c].vectorize(axes[-1])
    text = str(tvm.lower(s, [a, c]))
    if not vector:
        assert "C_2[i * 3 + j, k] = A_1[k, j, i] + T.float32(1.0)" in text
    assert_schedule_correct(s, [a, c])


def test_an_input_of_rank_0_has_one_layout() -> None:
    a = te.placeholder((), name="A")
    c = te.compute((3,), lambda i: a() + i, name="C")
    s = create_schedule(c.op)
    s[a].transform_layout(lambda: [])
    assert_schedule_correct(s, [a, c])
