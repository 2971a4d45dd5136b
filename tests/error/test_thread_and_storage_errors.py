"""One test per thing that bind, thread_axis, double_buffer, storage_align and exact splits refuse, with what it says."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

import tensorexpr as tvm
from tensorexpr import te
from tensorexpr.errors import CodegenError, DeclarationError, LoweringError, RecordError, ScheduleError
from tensorexpr.lower.context import PassContext
from tensorexpr.runtime.build import compile_functions
from tensorexpr.schedule import Schedule, Trace, create_schedule
from tensorexpr.script import from_source
from tensorexpr.te.tensor import Tensor
from tensorexpr.tir.expr import IterVar, Var
from tensorexpr.tir.function import IRModule, PrimFunc
from tensorexpr.tir.stmt import For, ForKind
from tests.unit.lower.builder import flat, func, loop, pipeline_pass, store


class Program:
    """A -> B (twice A) -> total (row sums of B) -> C (B divided by its row's sum), 8 x 12."""

    def __init__(self) -> None:
        self.a = te.placeholder((8, 12), name="A")
        self.b = te.compute((8, 12), lambda i, j: self.a[i, j] * 2.0, name="B")
        k = te.reduce_axis((0, 12), name="k")
        self.total = te.compute((8,), lambda i: te.sum(self.b[i, k], axis=k), name="total")
        self.c = te.compute((8, 12), lambda i, j: self.b[i, j] / self.total[i], name="C")
        self.s: Schedule = create_schedule(self.c.op)
        self.i, self.j = self.c.op.axis
        self.k = k

    def stage(self, tensor: Tensor) -> Any:
        """The stage of a tensor."""
        return self.s[tensor]

    def lower(self, *extra: Tensor) -> None:
        """Lower the schedule."""
        tvm.lower(self.s, [self.a, self.c, *extra])


def thread(*args: Any, **options: Any) -> IterVar:
    """A thread axis."""
    return te.thread_axis(*args, **options)


def steps(*actions: Callable[[], object]) -> None:
    """One request after the other."""
    for action in actions:
        action()


Case = Callable[[Program], object]
BIND: dict[str, tuple[Case, str]] = {
    "no thread axis": (lambda p: p.s[p.c].bind(p.i, p.j), "bind takes a thread axis such as te.thread_axis('vthread')"),
    "no axis": (lambda p: p.s[p.c].bind(p.k, thread("vthread")), "no axis 'k' to bind, it belongs to total"),
    "reduction": (
        lambda p: p.s[p.total].bind(p.k, thread("vthread")),
        "can't bind 'k' to vthread: it is a reduction axis, and its threads would race on one accumulator; bind one of i, or make it "
        "spatial with rfactor",
    ),
    "parallel": (
        lambda p: steps(lambda: p.s[p.c].parallel(p.i), lambda: p.s[p.c].bind(p.i, thread("vthread"))),
        "can't bind 'i' to vthread: it is marked parallel already; bind a serial axis",
    ),
    "twice": (
        lambda p: steps(lambda: p.s[p.c].bind(p.i, thread("blockIdx.x")), lambda: p.s[p.c].bind(p.i, thread("vthread"))),
        "it is bound to blockIdx.x already; bind a serial axis",
    ),
    "one tag": (
        lambda p: steps(lambda: p.s[p.c].bind(p.i, thread("threadIdx.x")), lambda: p.s[p.c].bind(p.j, thread("threadIdx.x"))),
        "can't bind 'j' to threadIdx.x: 'i' is bound to it already; fuse the two axes, or bind 'j' to another tag: blockIdx.x",
    ),
    "vectorize": (
        lambda p: steps(lambda: p.s[p.c].bind(p.i, thread("vthread")), lambda: p.s[p.c].vectorize(p.i)),
        "can't vectorize 'i': it is bound to vthread already; vectorize another axis",
    ),
    "split": (
        lambda p: steps(lambda: p.s[p.c].bind(p.i, thread("vthread")), lambda: p.s[p.c].split(p.i, factor=2)),
        "axis 'i' is marked bound already; split it first",
    ),
    "domain": (
        lambda p: p.s[p.c].bind(p.i, thread((2, 4), "vthread")),
        "the thread axis 'vthread' has the domain 2 to 4; threads count from 0 to a constant",
    ),
    "no threads": (lambda p: p.s[p.c].bind(p.i, thread((0, 0), "vthread")), "can't bind 'i' to 0 threads; the extent of a thread axis"),
    "inlined": (
        lambda p: steps(p.s[p.b].compute_inline, lambda: p.s[p.b].bind(p.b.op.axis[0], thread("vthread"))),
        "bind needs loops, but the stage is inlined",
    ),
    "nested": (
        lambda p: steps(
            lambda: p.s[p.c].bind(p.i, thread("threadIdx.x")),
            lambda: p.s[p.b].compute_at(p.s[p.c], p.j),
            lambda: p.s[p.total].compute_at(p.s[p.c], p.i),
            lambda: p.s[p.b].compute_at(p.s[p.c], p.i),
            lambda: p.s[p.b].bind(p.b.op.axis[0], thread("threadIdx.x")),
            p.lower,
        ),
        "In schedule for B: its axis 'i' is bound to threadIdx.x inside the axis 'i' of C, which is bound to it too; compute B outside",
    ),
    "extent": (
        lambda p: steps(lambda: p.s[p.c].bind(p.i, thread((0, 4), "vthread", name="t")), p.lower),
        "In schedule for C: axis 'i' of extent 8 is bound to vthread, whose thread axis 't' has the extent 4; split the axis by that",
    ),
    "extents of a kernel": (
        lambda p: steps(
            lambda: p.s[p.c].bind(p.i, thread("blockIdx.x")),
            lambda: p.s[p.total].compute_at(p.s[p.c], p.i),
            lambda: p.s[p.b].compute_at(p.s[p.c], p.i),
            lambda: p.s[p.c].bind(p.s[p.c].split(p.j, factor=4)[1], thread("threadIdx.x")),
            lambda: p.s[p.b].bind(p.b.op.axis[1], thread("threadIdx.x")),
            p.lower,
        ),
        "of extent 12 is bound to threadIdx.x, but in the same kernel the axis 'j.inner' of C, of extent 4, is bound to it too; give both",
    ),
    "env_threads": (lambda p: p.s[p.c].env_threads([thread("threadIdx.x")]), "env_threads is for the steps of a scan; bind the stage"),
}  # fmt: skip

STORAGE: dict[str, tuple[Case, str]] = {
    "output": (lambda p: p.s[p.c].double_buffer(), "double_buffer is about storage that the schedule makes, but the elements of an output"),
    "inlined": (
        lambda p: steps(p.s[p.b].compute_inline, p.s[p.b].double_buffer), "double_buffer needs storage, but the stage is inlined"
    ),
    "root": (lambda p: steps(p.s[p.b].double_buffer, p.lower), "overlaps the iterations of a loop, but the stage is computed at the root"),
    "parallel": (
        lambda p: steps(
            lambda: p.s[p.total].compute_at(p.s[p.c], p.i), p.s[p.total].double_buffer, lambda: p.s[p.c].parallel(p.i), p.lower
        ),
        "overlaps the iterations of a serial loop, but it is computed at 'i' of C, which is parallel; compute_at a serial loop inside",
    ),
    "threads": (
        lambda p: steps(
            lambda: p.s[p.total].compute_at(p.s[p.c], p.i), p.s[p.total].double_buffer, lambda: p.s[p.c].bind(p.i, thread("cthread")),
            p.lower,
        ),
        "it is computed at 'i' of C, which is cthread",
    ),
    "made in the same iteration": (
        lambda p: steps(
            lambda: p.s[p.total].compute_at(p.s[p.c], p.i), lambda: p.s[p.b].compute_at(p.s[p.c], p.i), p.s[p.total].double_buffer, p.lower
        ),
        "computes the elements for the next iteration of 'i' early, but they are made of B, which is computed in that same iteration; "
        "double_buffer B at that loop too, or compute it inside total",
    ),
    "placeholder": (lambda p: p.s[p.a].double_buffer(), "double_buffer: A is a placeholder"),
    "align output": (lambda p: p.s[p.c].storage_align(p.i, 8, 1), "storage_align is about storage that the schedule makes"),
    "align reduction": (
        lambda p: p.s[p.total].storage_align(p.k, 8, 1), "storage_align takes a dimension of the stage's storage, not 'k'; dimensions: i"
    ),
    "align part": (
        lambda p: p.s[p.b].storage_align(p.s[p.b].split(p.b.op.axis[1], factor=4)[1], 8, 1),
        "takes a dimension of the stage's storage, not 'j.inner'; dimensions: i, j",
    ),
    "factor": (lambda p: p.s[p.b].storage_align(p.b.op.axis[0], 0, 0), "factor 0 and offset 0; it takes a factor of 1 to 65536 elements"),
    "offset": (lambda p: p.s[p.b].storage_align(p.b.op.axis[0], 4, 4), "factor 4 and offset 4; it takes a factor of 1"),
    "no integer": (
        lambda p: p.s[p.b].storage_align(p.b.op.axis[0], 2.5, 0),  # type: ignore[arg-type]
        "storage_align takes integers, not factor 2.5 and offset 0",
    ),
}  # fmt: skip

SPLIT: dict[str, tuple[Case, str]] = {
    "tail": (
        lambda p: p.s[p.c].split(p.j, factor=5, disable_predication=True),
        "split of 'j' with disable_predication would run 3 x 5 iterations for an extent of 12, and what lies past the end would be written "
        "out of bounds; give a factor that is known to divide the extent, or keep the guard",
    ),
    "tail of a part": (
        lambda p: steps(
            lambda: p.s[p.total].compute_at(p.s[p.c], p.i),
            lambda: p.s[p.total].split(p.k, factor=5, disable_predication=True),
            p.lower,
        ),
        "split of 'k' with disable_predication would run 3 x 5 iterations for an extent of 12",
    ),
    "balanced": (
        lambda p: p.s[p.c].split(p.j, factor=5, disable_predication=True, balanced=True),
        "a balanced split guards its smaller tiles; leave disable_predication out",
    ),
}  # fmt: skip
CASES = {
    f"{group}: {name}": case for group, cases in (("bind", BIND), ("storage", STORAGE), ("split", SPLIT)) for name, case in cases.items()
}


@pytest.mark.parametrize("name", CASES)
def test_refused(name: str) -> None:
    request, message = CASES[name]
    with pytest.raises(ScheduleError, match=re.escape(message)):
        request(Program())


def test_symbolic_sizes() -> None:
    n = te.var("n")
    a = te.placeholder((n,), name="A")
    b = te.compute((n,), lambda i: a[i] + 1.0, name="B")
    s = create_schedule(b.op)
    with pytest.raises(ScheduleError, match=r"would run .* x 4 iterations for an extent of n"):
        s[b].split(b.op.axis[0], factor=4, disable_predication=True)
    s[b].bind(b.op.axis[0], te.thread_axis("vthread"))
    with pytest.raises(ScheduleError, match="of extent n is bound to vthread, but the number of virtual threads is a constant; split the"):
        tvm.lower(s, [a, b])


def test_double_buffer_takes_one_output() -> None:
    a = te.placeholder((8,), name="A")
    b, d = te.compute((8,), lambda i: (a[i] + 1.0, a[i] * 2.0), name="B")
    c = te.compute((8,), lambda i: b[i] + d[i], name="C")
    s = create_schedule(c.op)
    with pytest.raises(ScheduleError, match="double_buffer takes a stage with one output, this one has 2"):
        s[b].double_buffer()


def test_the_caller_lays_out_arguments() -> None:
    p = Program()
    p.s[p.b].storage_align(p.b.op.axis[0], 8, 1)
    with pytest.raises(LoweringError, match="B is an argument, so the caller lays it out: leave storage_align out"):
        p.lower(p.b)


@pytest.mark.parametrize(
    "line, message",
    [
        (
            'for i in T.thread_binding(8, "blockIdx.x"):',
            r"the loop over i is bound to blockIdx\.x, .* no such threads; run it with parallel\(",
        ),
        (
            'with T.launch_thread("blockIdx.x", 8) as i:',
            r"T\.launch_thread starts blockIdx\.x, .* no such threads; write a loop of T\.parallel",
        ),
    ],
    ids=["loop", "launch"],
)
def test_a_cpu_has_no_threads_that_were_not_made_loops(line: str, message: str) -> None:
    made = from_source(f'@T.prim_func\ndef main(A: T.Buffer((8,), "float32")):\n    {line}\n        A[i] = 1.0\n')
    assert isinstance(made, PrimFunc)
    with pytest.raises(CodegenError, match=message):
        compile_functions({"main": made}, tvm.target.Target("llvm"))


@pytest.mark.parametrize("tag", ["", "warp", 3])
def test_thread_axis_takes_a_tag(tag: Any) -> None:
    with pytest.raises(DeclarationError, match=r"thread_axis takes a tag of threads, not .*; tags: blockIdx.x, .y, .z"):
        te.thread_axis((0, 4), tag)


@pytest.mark.parametrize("dom", [(1, 2, 3), 2.5, object()])
def test_thread_axis_takes_a_domain(dom: Any) -> None:
    with pytest.raises(DeclarationError, match="thread_axis takes its domain as a number"):
        te.thread_axis(dom, "vthread")


def test_an_unknown_tag_in_a_record() -> None:
    p = Program()
    with pytest.raises(ScheduleError, match="to 'warp', which is no tag of threads"):
        Schedule(p.s.outputs, Trace.from_json([["bind", 3, 0, "warp", "t", None]]))
    with pytest.raises(RecordError, match="field extent"):
        Trace.from_json([["bind", 3, 0, "vthread", "t", "4"]])


def test_split_loop_is_even() -> None:
    p = Program()
    p.s[p.total].compute_at(p.s[p.c], p.i)
    p.s[p.total].double_buffer()
    with (
        PassContext(config={"tir.InjectDoubleBuffer": {"split_loop": 3}}),
        pytest.raises(LoweringError, match="0, 1 or an even number, not 3"),
    ):
        p.lower()


def test_a_foreign_program_with_a_variable_number_of_threads() -> None:
    out = flat("O", 8)
    n = Var("n")
    plain = loop("t", n, lambda t: store(out, 1.0, t))
    threads = For(plain.loop_var, plain.min, n, ForKind.THREAD_BINDING, plain.body, te.thread_axis("vthread"))
    start = func(threads, out)
    with pytest.raises(LoweringError, match="the loop t over vthread has the extent n; the number of virtual threads is a constant"):
        pipeline_pass("InjectVirtualThread")(IRModule({"main": start}))
