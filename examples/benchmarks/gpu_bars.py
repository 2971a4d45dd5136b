"""What can be said of kernels for GPUs without one: a table of what is counted in their text, by the assembler and by the emulator.

python examples/benchmarks/gpu_bars.py [--only product ...]

Registers and spills need ptxas (the extra cuda-dev). Times are of this machine's CPU alone.
"""

from __future__ import annotations

import argparse
import importlib.util
import re
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import tensorexpr as tvm
from tensorexpr import auto_scheduler, te, tir, topi
from tensorexpr import meta_schedule as ms
from tensorexpr.meta_schedule.search_strategy.population import Programs
from tensorexpr.te.tensor import Tensor
from tensorexpr.testing.ptx import Emulator, assembled, emulator, longest_loop, ptxas

AMPERE, HOPPER = "cuda -arch=sm_80", "cuda -arch=sm_90a"
Row = tuple[str, str, bool | None]
"""What, how much, and whether the bar holds; None where it can't be told here."""


class FirstBlock(Emulator):
    """An emulated GPU that runs the first block of each grid alone: of large kernels all blocks do the same."""

    def launch(self, code: Any, kernel: str, grid: tuple[int, int, int], block: tuple[int, int, int], arguments: Any, memory: Any) -> None:
        """Run one block."""
        super().launch(code, kernel, (1, 1, 1), block, arguments, memory)


def product(n: int, dtype: str) -> list[Tensor]:
    """A, B and A B, summed in float32."""
    a, b = (te.placeholder((n, n), dtype, name=name) for name in "AB")
    k = te.reduce_axis((0, n), "k")
    return [a, b, te.compute((n, n), lambda i, j: te.sum(a[i, k].astype("float32") * b[k, j].astype("float32"), axis=k), name="C")]


def counted(tensors: Sequence[Tensor], target: str, device: Emulator) -> str:
    """Run the schedule without trials on numbers that don't matter; its PTX."""
    module = tvm.build(list(tensors), target=tvm.target.Target(target), schedule="auto")
    shapes = [tuple(int(extent) for extent in tensor.shape) for tensor in tensors]
    module(*(tvm.nd.array(np.ones(shape, tensor.dtype), device) for shape, tensor in zip(shapes, tensors, strict=True)))
    return str(module.imported_modules[0].get_source("ptx"))


def fit(text: str, arch: str, registers: int) -> Row:
    """Registers and spills by the assembler."""
    if ptxas() is None:
        return f"    registers and spills by ptxas, {arch}", "no ptxas here", None
    used = assembled(text, arch)
    told = f"{used.registers} registers, {used.spilled} bytes spilled" + (", serialized" if "serialized" in used.words else "")
    return f"    by ptxas, {arch}", told, used.registers <= registers and not used.spilled and "serialized" not in used.words


def products() -> Iterator[Row]:
    """4096 x 4096 x 4096 in threads, on the units of a warp, and on those of four."""
    text = counted(product(4096, "float32"), AMPERE, device := FirstBlock())
    loop = longest_loop(text)
    share = loop["fma.rn.f32"] / loop.total()
    yield "float32 4096^3: multiply-adds of the loop, at least 88 %", f"{share:.1%} of {loop.total()}", share >= 0.88
    # two blocks of 256 threads, 65,536 registers
    yield fit(text, "sm_80", 128)
    for target, most in ((AMPERE, 232), (HOPPER, 168)):
        text = counted(product(4096, "bfloat16"), target, device := FirstBlock())
        loop, arch = longest_loop(text), target.split("=")[1]
        units = sum(count for name, count in loop.items() if name.startswith(("mma.sync", "wgmma.mma")))
        if target == AMPERE:
            ratio = loop.total() / units
            yield f"bfloat16 4096^3, {arch}: instructions for each mma, at most 2.1", f"{ratio:.2f} ({units} mma)", ratio <= 2.1
        else:
            yield f"bfloat16 4096^3, {arch}: wgmma in the loop", f"{units} of {loop.total()} instructions", units > 0
        conflicts = device.counters.bank_conflicts
        yield "    bank conflicts of the first block", f"{conflicts} of {device.counters.shared_requests} requests", conflicts == 0
        yield fit(text, arch, most)


def rows() -> Iterator[Row]:
    """Operators that wait for memory: requests of whole sectors, by vectors of 16 bytes."""
    x = te.placeholder((64, 4096), name="X")
    scale, offset = (te.placeholder((4096,), name=name) for name in ("scale", "offset"))
    cases: dict[str, list[Tensor]] = {
        "softmax": [x, topi.nn.softmax(x)],
        "layer norm": [x, scale, offset, topi.nn.layer_norm(x, scale, offset, [1])],
        "sums of rows": [x, topi.sum(x, 1)],
        "sums of columns": [x, topi.sum(x, 0)],
        "elementwise": [x, topi.nn.relu(x)],
    }
    for name, tensors in cases.items():
        text = counted(tensors, AMPERE, device := emulator())
        counters, kinds = device.counters, re.findall(r"\b(?:ld|st)\.global\.(\S+)", text)
        wide = sum("v4" in kind for kind in kinds)
        # vectors of all lanes are 16 sectors; a store of one result for a row, and the element that a norm subtracts, are one
        sectors = counters.global_transactions / counters.global_requests
        told = f"{wide} of {len(kinds)} by 16 bytes, {sectors:.1f} of 16 sectors a request, {counters.bank_conflicts} conflicts"
        holds = wide >= len(kinds) - 2 and 0.9 * 16 <= sectors <= 16 and not counters.bank_conflicts
        yield f"{name}, 64 x 4096 float32: coalesced accesses of 16 bytes", told, holds


def quickest(runs: dict[str, Callable[[], Any]], turns: int = 15) -> dict[str, float]:
    """Milliseconds of functions in turn, the 20th percentile."""
    times: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(turns):
        for name, run in runs.items():
            start = time.perf_counter()
            run()
            times[name].append(1e3 * (time.perf_counter() - start))
    return {name: float(np.percentile(taken, 20)) for name, taken in times.items()}


def on_cpu() -> Iterator[Row]:
    """The product of examples/from_tvm/gpu_gemm.py by blocks and threads, and the same tiles as a schedule for CPUs."""
    found = importlib.util.spec_from_file_location("gpu_gemm", Path(__file__).parents[1] / "from_tvm" / "gpu_gemm.py")
    assert found is not None and found.loader is not None
    example = importlib.util.module_from_spec(found)
    found.loader.exec_module(example)
    n = 512
    schedule, args = example.gemm(n)
    blocks = tvm.build(schedule, args, target="llvm")
    c = args[2]
    s = te.create_schedule(c.op)
    sums = s.cache_write(c, "local")
    i, j = s[c].op.axis
    (by, i), (bx, j) = s[c].split(i, example.TILE), s[c].split(j, example.TILE)
    (ty, i), (tx, j) = s[c].split(i, example.THREADS), s[c].split(j, example.THREADS)
    s[c].reorder(by, bx, ty, tx, i, j)
    s[c].parallel(s[c].fuse(by, bx))
    s[c].vectorize(j)
    s[sums].compute_at(s[c], tx)
    (k,), (i, j) = s[sums].op.reduce_axis, s[sums].op.axis
    s[sums].reorder(k, i, j)
    s[sums].unroll(i)
    s[sums].vectorize(j)
    plain = tvm.build(s, args, target="llvm")
    values = np.random.default_rng(0).random((2, n, n), np.float32)
    given = [*map(tvm.nd.array, values), tvm.nd.empty((n, n), "float32")]
    for made in (blocks, plain):
        made(*given)
        np.testing.assert_allclose(given[2].numpy(), values[0].T @ values[1], rtol=1e-4)
    times = quickest({"blocks": lambda: blocks(*given), "plain": lambda: plain(*given)})
    ratio = times["blocks"] / times["plain"]
    yield (
        "512^3 by blocks on this CPU, at most 3x",
        f"{times['blocks']:.1f} ms, {times['plain']:.1f} with the same tiles: {ratio:.1f}x",
        ratio <= 3,
    )


def emulated() -> Iterator[Row]:
    """Warp instructions in a second of processor time."""
    for dtype in ("float32", "bfloat16"):
        tensors, device, speeds = product(128, dtype), emulator(), []
        module = tvm.build(tensors, target=tvm.target.Target(AMPERE), schedule="auto")
        given = [tvm.nd.array(np.ones((128, 128), tensor.dtype), device) for tensor in tensors]
        for _ in range(5):
            start = time.process_time()
            module(*given)
            speeds.append(device.counters.instructions / (time.process_time() - start))
        speed = float(np.median(speeds))
        yield f"the emulator, {dtype} 128^3: 50,000 warp instructions a second", f"{speed:,.0f}", speed >= 50_000


def draws() -> Iterator[Row]:
    """Programs that searches draw, and how many of them keep within the chip's limits."""
    a, w = te.placeholder((1, 64, 56, 56), name="A"), te.placeholder((64, 64, 3, 3), name="W")
    convolution = [a, w, topi.nn.conv2d_nchw(a, w, 1, 1, 1)]
    random, target = np.random.default_rng(0), tvm.target.Target("nvidia/nvidia-a100")
    for name, tensors in {"float32 1024^3": product(1024, "float32"), "convolution": convolution}.items():
        task = auto_scheduler.SearchTask(compute_dag=tensors, target=target)
        valid = drawn = 0
        for sketch in auto_scheduler.SketchPolicy(task, verbose=0).spaces():
            rows = sketch.sample(500, random)
            drawn, valid = drawn + len(rows), valid + int(sketch.features(rows, target).valid.sum())
        yield f"auto_scheduler, {name}: 90 % of draws within the limits", f"{valid} of {drawn}", valid >= 0.9 * drawn
    for name, tensors, kind in (
        ("float32 1024^3", product(1024, "float32"), "cuda"),
        ("convolution", convolution, "cuda"),
        ("float16 1024^3", product(1024, "float16"), "cuda-tensorcore"),
    ):
        generator = ms.space_generator.PostOrderApply(sch_rules=kind, postprocs=kind, mutator_probs=kind)
        mod = tir.IRModule({"main": te.create_prim_func(tensors)})
        context = ms.TuneContext(mod=mod, target=target, space_generator=generator, num_threads=1, rand_state=1)
        programs, spaces = Programs(context), [space for space in context.generate_design_space() if isinstance(space, tir.Schedule)]
        passed = sum(programs.drawn_of(spaces) is not None for _ in range(20))
        yield f"meta_schedule, {kind}, {name}: 90 % of draws pass", f"{passed} of 20", passed >= 18


PARTS = {"products": products, "rows": rows, "cpu": on_cpu, "emulator": emulated, "draws": draws}


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS))
    failed = 0
    for part in parser.parse_args().only:
        for what, told, holds in PARTS[part]():
            failed += holds is False
            print(f"{what:72} {told:64} {'' if holds is None else 'holds' if holds else 'MISSED'}", flush=True)
    print(f"{failed} bars are missed" if failed else "all bars hold")


if __name__ == "__main__":
    main()
