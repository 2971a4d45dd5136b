"""Counting spills in assembly that is written here, line by line."""

from __future__ import annotations

from tensorexpr.codegen.spills import SpillReport, count_spills
from tensorexpr.testing.machine_code import hot_loop

_X86 = """
f:
	pushq	%rbp
	vmovups	%zmm0, 64(%rsp)
.LBB0_1:
	vmovups	%zmm1, 128(%rsp)
	vfmadd231ps	192(%rsp), %zmm2, %zmm3
	vmovups	(%rsi,%rax,4), %zmm4
	vmovaps	%xmm5, (%rsp)
	vmovups	64(%rsp,%rax,4), %zmm6
	movq	%rax, 8(%rsp)
	vmovups	-64(%rbp), %ymm1
.LBB0_2:
	jne	.LBB0_1
	vmovups	64(%rsp), %zmm0
	retq
"""


def test_moves_through_stack_slots_inside_loops_count() -> None:
    assert count_spills(_X86) == SpillReport(stores=2, loads=1)
    assert count_spills(_X86).total == 3


def test_rbp_counts_where_it_is_the_frame_pointer() -> None:
    framed = _X86.replace("\tpushq\t%rbp\n", "\tpushq\t%rbp\n\tmovq\t%rsp, %rbp\n")
    assert count_spills(framed) == SpillReport(stores=2, loads=2)
    loops = [hot_loop(_X86), hot_loop(framed)]
    assert [loop.spills for loop in loops if loop is not None] == [3, 4]


def test_comments_of_the_assembler_do_not_matter() -> None:
    commented = _X86.replace("%zmm1, 128(%rsp)", "%zmm1, 128(%rsp)                  # 64-byte Spill")
    assert count_spills(commented) == count_spills(_X86)


def test_code_without_loops_has_none() -> None:
    assert count_spills(_X86.replace("jne", "#ne")).total == 0


def test_aarch64() -> None:
    text = """
f:
.LBB0_1:
	str	q0, [sp, #16]
	ldp	q1, q2, [sp, #32]
	ldr	q3, [x0], #16
	ldr	x4, [sp, #8]
	stp	d8, d9, [sp]
	b.ne	.LBB0_1
	ldr	q0, [sp, #16]
	ret
"""
    assert count_spills(text) == SpillReport(stores=2, loads=1)
