"""Every row of the table of a device as a kernel, compiled one after the other: LLVM ends the process where it can't.

python -m tests.unit.ptx.rows sm_80 prints the name of each row before it is compiled, and "end" at the end.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import tensorexpr as tvm
from tensorexpr import te
from tensorexpr.codegen.platform import DEVICES
from tensorexpr.codegen.ptx_matrix import FRAGMENTS, MMA
from tensorexpr.errors import CodegenError
from tensorexpr.script import from_source
from tensorexpr.target.chips import capability

FLOATS = ("float32", "float64", "float16", "bfloat16")
INTEGERS = ("int8", "uint8", "int32", "uint32", "int64")
_UNARY = (
    *(
        "exp",
        "exp2",
        "exp10",
        "log",
        "log2",
        "log10",
        "log1p",
        "sigmoid",
        "tanh",
        "sinh",
        "cosh",
        "asinh",
        "acosh",
        "atanh",
        "sin",
        "cos",
        "tan",
    ),
    *("asin", "acos", "atan", "erf", "sqrt", "rsqrt", "floor", "ceil", "trunc", "round", "nearbyint", "abs", "isnan", "isinf", "isfinite"),
)
_BINARY = ("pow", "atan2", "hypot", "fmod", "copysign")
_ELEMENT = {"fp16": "float16", "bf16": "bfloat16", "tf32": "float32", "fp32": "float32", "fp64": "float64"}


@dataclass(frozen=True)
class Value:
    """A row that is a value of `count` elements of a dtype, computed for `lanes` elements at once."""

    name: str
    dtype: str
    count: int
    value: Callable[..., Any]
    lanes: int = 1


def _computed(rows: Sequence[Value]) -> tuple[Any, list[Any]]:
    """Values of one dtype as the results of one kernel."""
    dtype, lanes = rows[0].dtype, rows[0].lanes
    inputs = [te.placeholder((256,), dtype, name=f"A{number}") for number in range(max(row.count for row in rows))]

    def values(i: Any) -> Any:
        found = [row.value(*(one[i] for one in inputs[: row.count])) for row in rows]
        return tuple(found) if len(found) > 1 else found[0]

    made = te.compute((256,), values, name="B")
    results = list(made) if len(rows) > 1 else [made]
    s = te.create_schedule(results[0].op)
    stage = s[results[0]]
    bx, tx = stage.split(results[0].op.axis[0], factor=32 * lanes)
    stage.bind(bx, te.thread_axis("blockIdx.x"))
    if lanes > 1:
        tx, v = stage.split(tx, factor=lanes)
        stage.vectorize(v)
    stage.bind(tx, te.thread_axis("threadIdx.x"))
    return s, [*inputs, *results]


def math_rows() -> Iterator[Value]:
    """Functions of floats, of one element and of four."""
    for lanes in (1, 4):
        for dtype in FLOATS if lanes == 1 else FLOATS[:1]:
            for count, names in ((1, _UNARY), (2, _BINARY)):
                for name in names:
                    yield Value(f"{name} {dtype} x{lanes}", dtype, count, getattr(tvm.tir, name), lanes)


def arithmetic_rows() -> Iterator[Value]:
    """Operators and conversions."""
    operators: dict[str, Callable[[Any, Any], Any]] = {
        "add": lambda a, b: a + b,
        "mul": lambda a, b: a * b,
        "sub": lambda a, b: a - b,
        "min": lambda a, b: tvm.te.min(a, b),
        "max": lambda a, b: tvm.te.max(a, b),
        "div": lambda a, b: tvm.tir.div(a, b) if "float" in a.dtype else tvm.tir.floordiv(a, b),
        "select": lambda a, b: tvm.tir.Select(a < b, a, b),
    }
    for dtype in (*FLOATS, *INTEGERS):
        for name, value in operators.items():
            yield Value(f"{name} {dtype}", dtype, 2, value)
        for wanted in (*FLOATS, "int8", "uint32", "int64", "e4m3_float8", "bool"):
            yield Value(f"{dtype} to {wanted}", dtype, 1, lambda a, w=wanted: a.astype(w))
    for dtype in INTEGERS:
        for name in ("popcount", "clz", "abs"):
            yield Value(f"{name} {dtype}", dtype, 1, getattr(tvm.tir, name))


def _kernel(lines: list[str]) -> Any:
    body = "\n".join(f"            {line}" for line in lines)
    return from_source(
        "from tensorexpr.script import tir as T\n@T.prim_func\n"
        'def main(A: T.Buffer((4096,), "int8"), B: T.Buffer((4096,), "int8")):\n'
        '    for bx in T.thread_binding(1, "blockIdx.x"):\n        for tx in T.thread_binding(32, "threadIdx.x"):\n' + body
    )


def mma_rows() -> Iterator[tuple[str, Callable[[], Any]]]:
    """Products of fragments."""
    for (shape, *dtypes), row in MMA.items():
        a, b, c = (_ELEMENT.get(name, name) for name in dtypes)
        named = ", ".join(f'"{name}"' for name in dtypes)
        lines = [f'{name} = T.allocate([16], "{dtype}", "local")' for name, dtype in (("fa", a), ("fb", b), ("fc", c))]
        call = f'T.evaluate(T.ptx_mma("{c}", "{shape}", "row", "col", {named}, fa, 0, fb, 0, fc, 0, False))'
        yield f"mma {shape} {' '.join(dtypes)} >={row.least}", lambda ls=[*lines, call]: _kernel(ls)  # type: ignore[misc]


def wmma_rows() -> Iterator[tuple[str, Callable[[], Any]]]:
    """Loading, multiplying and storing fragments of the hardware's own layout."""
    for shape, part, dtype in FRAGMENTS:
        if part != "a":
            continue
        results = {"float16": ("float16", "float32"), "bfloat16": ("float32",)}.get(dtype, ("int32",))
        m, n, k = shape[1:].replace("n", " ").replace("k", " ").split()
        for result in results:
            lines = [f'fa = T.allocate([512], "{dtype}", "wmma.matrix_a")', f'fb = T.allocate([512], "{dtype}", "wmma.matrix_b")']
            lines.append(f'fc = T.allocate([512], "{result}", "wmma.accumulator")')
            zero = "0" if result == "int32" else "0.0"
            lines.append(f"T.evaluate(T.tvm_fill_fragment(fc, {m}, {n}, {k}, 0, T.{result}({zero})))")
            for name, data, layout in (("fa", "A", "row_major"), ("fb", "B", "col_major")):
                lines.append(f'T.evaluate(T.tvm_load_matrix_sync({name}, {m}, {n}, {k}, 0, T.address_of({data}[0]), 16, "{layout}"))')
            lines.append("T.evaluate(T.tvm_mma_sync(fc, 0, fa, 0, fb, 0, fc, 0))")
            lines.append(f'T.evaluate(T.tvm_store_matrix_sync(fc, {m}, {n}, {k}, 0, T.address_of(B[0]), 16, "row_major"))')
            yield f"wmma {shape} {dtype} {result}", lambda ls=lines: _kernel(ls)  # type: ignore[misc]


def other_rows() -> Iterator[tuple[str, Callable[[], Any]]]:
    """Barriers, exchanges, copies, matrix loads."""
    shared = 's = T.allocate([1024], "int8", "shared")'
    for scope in ("shared", "shared.dyn", "warp"):
        yield f"barrier {scope}", lambda sc=scope: _kernel([f'T.evaluate(T.tvm_storage_sync("{sc}"))'])  # type: ignore[misc]
    for name in ("tvm_warp_shuffle", "tvm_warp_shuffle_up", "tvm_warp_shuffle_down"):
        for dtype in ("int8", "float16", "float32", "int64", "float64"):
            moved = f'T.{name}(T.uint32(0xFFFFFFFF), T.Cast("{dtype}", A[tx]), 1, 32, 32)'
            yield f"{name} {dtype}", lambda v=moved: _kernel([f'B[tx] = T.Cast("int8", {v})'])  # type: ignore[misc]
    for size in (4, 8, 16):
        for condition in ("", ", A[tx] == 0"):
            call = f'T.evaluate(T.ptx_cp_async("int8", s, tx * {size}, A.data, tx * {size}, {size}{condition}))'
            lines = [shared, call, "T.evaluate(T.ptx_commit_group())", "T.evaluate(T.ptx_wait_group(0))"]
            yield f"cp.async {size}{condition}", lambda ls=lines: _kernel(ls)  # type: ignore[misc]
    for count in (1, 2, 4):
        for trans in (False, True):
            lines = [shared, 'f = T.allocate([64], "int8", "local")']
            lines.append(f'T.evaluate(T.ptx_ldmatrix("int8", {trans}, {count}, ".b16", f, 0, s, tx * 16))')
            yield f"ldmatrix x{count} {trans}", lambda ls=lines: _kernel(ls)  # type: ignore[misc]
    yield "activemask", lambda: _kernel(['B[tx] = T.Cast("int8", T.tvm_warp_activemask())'])
    yield "dp4a", lambda: _kernel(['B[tx] = T.Cast("int8", T.dp4a(T.Cast("int32", A[tx]), 3, 4))'])
    yield "atomic", lambda: _kernel(["T.evaluate(T.atomic_add(T.address_of(B[tx * 4]), T.int32(1)))"])


def main(arch: str) -> None:
    """Compile every row for an architecture."""
    assert DEVICES
    refused = 0
    for rows in (mma_rows, wmma_rows, other_rows):
        for name, make in rows():
            print(name, flush=True)
            refused += _refusal(name, arch, lambda made=make: (made(), None)) is not None  # type: ignore[misc]
    values = [*math_rows(), *arithmetic_rows()] if capability(arch) == 80 else []
    for key in dict.fromkeys((row.dtype, row.lanes) for row in values):
        together = [row for row in values if (row.dtype, row.lanes) == key]
        print(*(row.name for row in together), sep=", ", flush=True)
        if _refusal("", arch, lambda rows=together: _computed(rows)) is not None:  # type: ignore[misc]
            for row in together:
                print(row.name, flush=True)
                refused += _refusal(row.name, arch, lambda one=row: _computed([one])) is not None  # type: ignore[misc]
    print(f"end {refused}", flush=True)


def _refusal(name: str, arch: str, make: Callable[[], tuple[Any, Any]]) -> str | None:
    """Compile one kernel; why not, if it is refused, which is printed for a kernel that has a name."""
    schedule, args = make()
    try:
        text = tvm.build(schedule, args, target=f"cuda -arch={arch}").get_source()
    except CodegenError as error:
        if name:
            print(f"refused {name}: {error}", flush=True)
        return str(error)
    assert "llvm" not in text.split("NVPTX Back-End")[1], text  # a call of an intrinsic that LLVM doesn't know
    return None


if __name__ == "__main__":
    main(sys.argv[1])
