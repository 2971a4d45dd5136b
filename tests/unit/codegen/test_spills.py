"""Counting spills in assembly that is written here, line by line."""

from __future__ import annotations

import pytest

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


_LOOP = """
f:
.LBB0_1:
	vmovups	(%rsi,%rax,4), %ymm1
	vptest	%ymm1, %ymm2
	{jump}
.LBB0_2:
	vfmadd231ps	%ymm1, %ymm2, %ymm3
	addq	$8, %rax
	jne	.LBB0_1
	retq
.LBB0_3:
	vaddps	%ymm1, %ymm1, %ymm1
	{back}
"""


@pytest.mark.parametrize(
    ("jump", "back", "guards", "detours"),
    [
        ("nop", "retq", 0, 0),
        ("jne	.LBB0_2", "retq", 1, 0),  # over a part of the loop
        ("jne	.LBB0_3", "retq", 1, 0),  # out of it for good
        ("jne	.LBB0_3", "jmp	.LBB0_2", 0, 1),
        ("jne	.LBB0_3", "jmp	.LBB0_1", 0, 1),
    ],
)
def test_detours_come_back_and_guards_do_not(jump: str, back: str, guards: int, detours: int) -> None:
    loop = hot_loop(_LOOP.format(jump=jump, back=back))
    assert loop is not None and (loop.guards, loop.detours) == (guards, detours)
    assert loop.vectors == 3  # those on the way round, not those of the detour


def test_a_detour_that_ends_with_the_loop_s_own_jump() -> None:
    text = """
f:
.LBB0_1:
	fmla	v0.4s, v1.4s, v2.4s
	b.gt	.LBB0_3
.LBB0_2:
	fadd	v3.4s, v0.4s, v1.4s
	b.ne	.LBB0_1
	b	.LBB0_4
.LBB0_3:
	fmul	v1.4s, v1.4s, v1.4s
	fadd	v3.4s, v0.4s, v1.4s
	b.ne	.LBB0_1
.LBB0_4:
	ret
"""
    loop = hot_loop(text)
    assert loop is not None and (loop.guards, loop.detours, loop.vectors) == (0, 1, 2)
