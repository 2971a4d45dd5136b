"""What te.extern, its schedules and its records refuse: one test for each message."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tensorexpr as tvm
from tensorexpr import te, tir
from tensorexpr.errors import DeclarationError, LoweringError, RecordError, ScheduleError, TypeMismatchError
from tensorexpr.schedule import Stage
from tensorexpr.te.reference import evaluate
from tensorexpr.te.serialize import dag_from_json, dag_to_json
from tensorexpr.te.tensor import Tensor

Buffers = list[tir.Buffer]


def copying(ins: Buffers, outs: Buffers) -> tir.Stmt:
    ib = tir.ir_builder.create()
    with ib.for_range(0, 4, name="i") as i:
        ib.buffer_ptr(outs[0])[i] = ib.buffer_ptr(ins[0])[i]
    return ib.get()


def given(dtype: str = "float32") -> Tensor:
    return te.placeholder((4,), dtype, name="a")


def writes_input(ins: Buffers, outs: Buffers) -> tir.Stmt:
    return tir.BufferStore(ins[0], ins[0][0], (tir.const(1),))


def wild(ins: Buffers, outs: Buffers) -> tir.Stmt:
    ib = tir.ir_builder.create()
    ib.buffer_ptr(outs[0])[0] = ib.pointer("float32", "nowhere")[0]
    return ib.get()


A = given()
OTHER = te.placeholder((4,), name="other")
DECLARATIONS: list[tuple[Callable[[], Any], str]] = [
    (lambda: te.extern((4,), [3], copying, name="c"), "extern c: the input 3 is no tensor"),  # type: ignore[list-item]
    (lambda: te.extern((4,), [], copying, name="c"), "its inputs have the dtypes of none; say which one the outputs have"),
    (lambda: te.extern((4,), [A, te.placeholder((4,), "int8")], copying), "its inputs have the dtypes float32, int8; say which"),
    (lambda: te.extern([(4,), (4,)], [A], copying, dtype=["int8"]), "2 shapes and 1 dtypes; give one dtype for each output"),
    (lambda: te.extern((4,), [A], copying, dtype="float32x4"), "elements are scalars, not float32x4"),
    (lambda: te.extern((4,), [A], lambda ins, outs: None), "returned None; it must return a statement"),  # type: ignore[arg-type,return-value]
    (lambda: te.extern((4,), [A], writes_input), "it writes a, which is an input; write the buffers in outs"),
    (lambda: te.extern((4,), [A], wild), "nothing defines the memory nowhere; use ins, outs or ib.allocate"),
    (
        lambda: te.extern((4,), [A], lambda ins, outs: tir.BufferStore(outs[0], OTHER(0), (tir.const(0),))),
        r"it reads other\[0\], of a tensor; list the tensor in `inputs`",
    ),
    (lambda: te.extern((4,), [A], copying, in_buffers=[tir.decl_buffer((4,))] * 2), "1 inputs and 2 in_buffers"),
    (
        lambda: te.extern((4,), [A], copying, in_buffers=[tir.decl_buffer((4, 1), name="x")]),
        r"the buffer x \(float32, 2 dimensions\) can't hold a \(float32, 1 dimensions\)",
    ),
    (lambda: shared_memory(), "two of its buffers share their memory"),
    (lambda: te.extern_primfunc([A], function(reads=False, writes=False)), "the function writes none of its buffers"),
    (lambda: te.extern_primfunc([A], function(reads=False, writes=True)), r"1 input tensors, but the function reads 0 buffers \(none\)"),
    (lambda: te.extern_primfunc([te.placeholder((5,), name="b")], function()), "dimension 0 of b has extent 5, but source has 4"),
]


def shared_memory() -> Any:
    buffer = tir.decl_buffer((4,), name="x")
    return te.extern((4,), [A], copying, in_buffers=[buffer], out_buffers=[tir.decl_buffer((4,), data=buffer.data)])


def function(reads: bool = True, writes: bool = True) -> tir.PrimFunc:
    source, target = tir.decl_buffer((4,), name="source"), tir.decl_buffer((4,), name="target")
    value = source[0] if reads else tir.const(1.0)
    body = tir.BufferStore(target, value, (tir.const(0),)) if writes else tir.Evaluate(value)
    handles = {tir.Var("source", "handle"): source, tir.Var("target", "handle"): target}
    return tir.PrimFunc(tuple(handles), body, None, handles)


@pytest.mark.parametrize(("declare", "message"), DECLARATIONS, ids=[message[:40] for _, message in DECLARATIONS])
def test_declarations(declare: Callable[[], Any], message: str) -> None:
    with pytest.raises(DeclarationError, match=message):
        declare()


def test_a_missing_scalar() -> None:
    scale = te.var("scale", "float32")
    c = te.extern((4,), [A], lambda ins, outs: tir.BufferStore(outs[0], ins[0][0] * scale, (tir.const(0),)))
    with pytest.raises(DeclarationError, match="the variable scale has no value; give it one among the inputs"):
        evaluate([c], {A: np.zeros(4, np.float32)})


def program() -> tuple[te.Schedule, Tensor, Tensor]:
    before = te.compute((4,), lambda i: A[i] + 1.0, name="before")
    return te.create_schedule([(c := te.extern((4,), [before], copying, name="c")).op]), before, c


PRIMITIVES: list[tuple[str, Callable[[te.Schedule, Stage, Tensor], Any]]] = [
    ("split", lambda s, c, before: c.split(before.op.axis[0], 2)),
    ("parallel", lambda s, c, before: c.parallel(before.op.axis[0])),
    ("reorder", lambda s, c, before: c.reorder(before.op.axis[0])),
    ("compute_at", lambda s, c, before: c.compute_at(s[before], before.op.axis[0])),
    ("compute_inline", lambda s, c, before: c.compute_inline()),
    ("compute_at", lambda s, c, before: s[before].compute_at(c, before.op.axis[0])),
    ("cache_write", lambda s, c, before: s.cache_write(c.op.output(0), "local")),
]


@pytest.mark.parametrize(("name", "apply"), PRIMITIVES, ids=[f"{n}-{name}" for n, (name, _) in enumerate(PRIMITIVES)])
def test_an_extern_has_no_loops_to_schedule(name: str, apply: Callable[[te.Schedule, Stage, Tensor], Any]) -> None:
    schedule, before, c = program()
    with pytest.raises(ScheduleError, match=f"In schedule for c: {name} needs loops to schedule, but the stage is an extern"):
        apply(schedule, schedule[c], before)
    assert len(schedule.trace) == 0


def test_what_an_extern_reads_is_not_inlined() -> None:
    schedule, before, _ = program()
    with pytest.raises(ScheduleError, match="In schedule for before: the extern c reads all of it from memory, so it can't be inlined"):
        schedule[before].compute_inline()


def addressed(in_buffers: Any = None) -> tuple[te.Schedule, Tensor, Tensor]:
    before = te.compute((4, 3), lambda i, j: OTHER[i] + 1.0, name="before")
    made = te.extern((4, 3), [before], lambda ins, outs: tir.call_packed("f", ins[0], outs[0]), name="c", in_buffers=in_buffers)
    return te.create_schedule([made.op]), before, made


def test_rows_apart_behind_an_address() -> None:
    schedule, before, made = addressed()
    schedule[before].storage_align(before.op.axis[0], 8, 0)
    with pytest.raises(ScheduleError, match=r"storage_align keeps its rows apart, but the extern c takes its address .*in_buffers"):
        tvm.lower(schedule, [OTHER, made])


def test_bound_strides_behind_an_address() -> None:
    schedule, _, made = addressed()
    strided = tir.decl_buffer((4, 3), name="wide", strides=[8, 1])
    with pytest.raises(LoweringError, match="extern c takes the address of c, which it knows as compact, but wide has strides"):
        tvm.lower(schedule, [OTHER, made], binds={made: strided})


def test_calls_take_what_can_be_passed() -> None:
    with pytest.raises(DeclarationError, match="takes the name of a registered function first"):
        tir.call_packed(3)
    with pytest.raises(DeclarationError, match=r"call_packed\('f'\): the argument .* is no buffer, number or string"):
        tir.call_packed("f", tir.Ramp(tir.const(0), tir.const(1), 4))
    with pytest.raises(DeclarationError, match="trace takes a list of scalars"):
        te.trace([])
    with pytest.raises(DeclarationError, match="trace takes scalars, not"):
        te.trace([tir.Ramp(tir.const(0), tir.const(1), 4)])


BUILTINS: list[tuple[Callable[[], Any], str]] = [
    (lambda: tir.lookup_param("w"), "no table of linked parameters; pass the array"),
    (lambda: tir.ldexp(1.0, 2.5), "takes an integer exponent"),
    (lambda: tir.q_multiply_shift(1.5, 2, 31, 0), "a fixed-point product takes int32"),
    (lambda: tir.q_multiply_shift(1, 2, 31, te.var("s")), "is no constant; use q_multiply_shift_per_axis"),
    (lambda: tir.vectorlow(None, tir.const(1.0)), "takes a vector of an even number of lanes"),
    (lambda: tir.vectorhigh("float32x4", tir.Broadcast(tir.const(1.0), 4)), "is float32x2, not float32x4"),
    (lambda: tir.vectorcombine(None, tir.const(1.0), tir.const(1)), "vectorcombine of float32 and int32"),
    (lambda: tir.large_uint_imm("uint32", 0, 1), "4294967296 is no uint32"),
    (lambda: tir.isnullptr(tir.const(1)), "isnullptr takes a handle"),
    (lambda: tir.atomic_add(tir.const(1), 1), "takes an element of a buffer"),
]


@pytest.mark.parametrize(("build", "message"), BUILTINS, ids=[message[:30] for _, message in BUILTINS])
def test_builtins(build: Callable[[], Any], message: str) -> None:
    with pytest.raises((DeclarationError, TypeMismatchError), match=message):
        build()


def record(body: Callable[[Buffers, Buffers], Any] = copying) -> Any:
    return json.loads(json.dumps(dag_to_json([te.extern((4,), [A], body, name="c")])))


@pytest.mark.parametrize("name", ["system", "abort", "memcpy"])
def test_a_record_calls_no_foreign_function(name: str) -> None:
    data = record(lambda ins, outs: tir.call_extern("int32", name, outs[0].data))
    with pytest.raises(RecordError, match=f"calls the C function '{name}'; a file may call functions of the math library only"):
        dag_from_json(data)


def test_a_compute_of_a_record_calls_no_foreign_function() -> None:
    data = dag_to_json([te.compute((4,), lambda i: tir.call_pure_extern("int32", "system", "true"), name="c")])
    with pytest.raises(RecordError, match="calls the C function 'system'"):
        dag_from_json(data)


def mutations() -> list[tuple[str, Callable[[Any], None], str]]:
    def at(*path: Any, value: Any) -> Callable[[Any], None]:
        def change(op: Any) -> None:
            for key in path[:-1]:
                op = op[key]
            op[path[-1]] = value

        return change

    return [
        ("body", at("statement", "body", value=["Jump", 1]), "'Jump' is no statement"),
        ("fields", at("statement", "body", value=["Evaluate", 1, 2]), "Evaluate has 1 fields, not 2"),
        ("kind", at("statement", "body", 4, value=9), "9 is no integer from 0 to 3"),
        ("scope", at("statement", "pointers", 0, 2, value="moon"), "a pointer is"),
        ("rank", at("statement", "buffers", 0, 4, value=[0, 0]), "1 dimensions and 2 strides"),
        ("alignment", at("statement", "buffers", 0, 6, value=3), "is no power of two"),
        ("outputs", at("outputs", value=0), "from 1 to 256 outputs"),
        ("inputs", at("inputs", value=[[0, 3]]), "no tensor"),
        ("document", at("statement", value={"rows": []}), "has the fields rows, pointers, buffers, body"),
    ]


@pytest.mark.parametrize(("name", "change", "message"), mutations(), ids=[name for name, _, _ in mutations()])
def test_records_are_checked(name: str, change: Callable[[Any], None], message: str) -> None:
    data = record()
    change(data["ops"][1])
    with pytest.raises(RecordError, match=message):
        dag_from_json(data)


def test_deep_records_are_refused() -> None:
    data = record()
    body = data["ops"][1]["statement"]["body"]
    for _ in range(300):
        body = ["SeqStmt", [body, body]] if body[0] != "SeqStmt" else ["DeclBuffer", 0, body]
    data["ops"][1]["statement"]["body"] = body
    with pytest.raises(RecordError, match="nested deeper than 200"):
        dag_from_json(data)
