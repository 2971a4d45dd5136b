"""Spills counted in objects: none in small kernels, many where registers run out."""

from __future__ import annotations

import pytest

from tensorexpr.codegen.spills import count_spills
from tensorexpr.runtime import engine
from tensorexpr.target import Target
from tensorexpr.tune.measure.spills import spills_in_object

TARGETS = {
    "avx512": "llvm -mcpu=znver5 -mtriple=x86_64-unknown-linux-gnu",
    "avx2": "llvm -mcpu=haswell -mtriple=x86_64-unknown-linux-gnu",
    "sse": "llvm -mcpu=nehalem -mtriple=x86_64-unknown-linux-gnu",
    "neon": "llvm -mcpu=neoverse-n1 -mtriple=aarch64-unknown-linux-gnu",
}


def kernel(accumulators: int, lanes: int) -> str:
    """A loop that adds a vector to each of some accumulators, stored at the end."""
    vector = f"<{lanes} x float>"
    phis = [f"  %x{n} = phi {vector} [ zeroinitializer, %entry ], [ %y{n}, %loop ]" for n in range(accumulators)]
    adds = [f"  %y{n} = fadd {vector} %x{n}, %v{n % 2}" for n in range(accumulators)]
    stores = [
        f"  %p{n} = getelementptr {vector}, ptr %out, i64 {n}\n  store {vector} %y{n}, ptr %p{n}, align 4" for n in range(accumulators)
    ]
    return "\n".join(
        [
            "define void @f(ptr %in, ptr %out, i64 %count) {\nentry:\n  br label %loop\nloop:",
            "  %i = phi i64 [ 0, %entry ], [ %next, %loop ]",
            *phis,
            f"  %a = getelementptr {vector}, ptr %in, i64 %i\n  %v0 = load {vector}, ptr %a, align 4",
            f"  %b = getelementptr {vector}, ptr %a, i64 1\n  %v1 = load {vector}, ptr %b, align 4",
            *adds,
            "  %next = add i64 %i, 2\n  %more = icmp ult i64 %next, %count\n  br i1 %more, label %loop, label %exit\nexit:",
            *stores,
            "  ret void\n}",
        ]
    )


@pytest.mark.parametrize("name", TARGETS)
def test_a_tile_that_fits_has_no_spills(name: str) -> None:
    target = Target(TARGETS[name])
    lanes = target.vector_bits // 32
    assert spills_in_object(engine.compile_text(kernel(target.vector_registers - 4, lanes), target, 0).data) == 0


@pytest.mark.parametrize("name", TARGETS)
def test_a_tile_that_is_too_large_shows(name: str) -> None:
    target = Target(TARGETS[name])
    text = kernel(2 * target.vector_registers, target.vector_bits // 32)
    found = spills_in_object(engine.compile_text(text, target, 0).data)
    in_loops = count_spills(engine.emit_assembly(text, target, 0)).total
    assert found >= in_loops >= target.vector_registers // 2
    assert found <= 3 * in_loops


@pytest.mark.parametrize("data", [b"", b"MZ whatever", b"\x7fELF\x01\x01" + bytes(64)])
def test_other_formats_count_nothing(data: bytes) -> None:
    assert spills_in_object(data) == 0
