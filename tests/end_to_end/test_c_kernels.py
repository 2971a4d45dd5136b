"""Operators of all suites in C give what the reference gives, and the guide's example prints what it says."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tensorexpr import te
from tensorexpr.driver.bench.ours import empty_outputs, random_inputs
from tensorexpr.lower.pipeline import lower_for_cpu
from tensorexpr.te.reference import evaluate
from tensorexpr.testing import assert_close, tolerance_of
from tensorexpr.tir.function import PrimFunc
from tests.c_compiler import C, in_c, needs_compiler, strictly
from tests.end_to_end.documents import run_blocks

from .test_aarch64 import CASES

__all__ = ["strictly"]


@needs_compiler
@pytest.mark.usefixtures("strictly")
def test_kernels_in_c_agree_with_the_reference() -> None:
    functions: dict[str, PrimFunc] = {}
    for number, case in enumerate(CASES):
        tensors = case.tensors()
        schedule = te.create_schedule([tensor.op for tensor in tensors[-len(empty_outputs(case)) :]])
        with C:
            ((_, functions[f"k{number}"]),) = lower_for_cpu(schedule, tensors, f"k{number}").functions_items()
    module = in_c(functions)
    for number, case in enumerate(CASES):
        tensors, outputs = case.tensors(), empty_outputs(case)
        inputs, got = random_inputs(case), [np.zeros_like(output) for output in outputs]
        module[f"k{number}"](*inputs, *got)
        results = tensors[-len(outputs) :]
        wanted = evaluate(results, dict(zip(tensors[: -len(outputs)], inputs, strict=True)))
        for tensor, have, want in zip(results, got, wanted, strict=True):
            assert_close(have, want, tolerance_of(tensor), case.name)


def test_the_guide_to_c_text_shows_what_it_says() -> None:
    printed, others = run_blocks((Path(__file__).parents[2] / "docs/guides/c.md").read_text())
    assert printed.rstrip("\n") == others[0].rstrip("\n")
