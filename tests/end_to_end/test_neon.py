"""Kernels for a Neoverse N1 run under an emulator and give what the reference gives.

Debian has what it takes in qemu-user, gcc-aarch64-linux-gnu and libc6-dev-arm64-cross.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tensorexpr.driver.bench.ours import empty_outputs, random_inputs
from tensorexpr.runtime.build import build
from tensorexpr.target import Target
from tensorexpr.te.reference import evaluate
from tensorexpr.testing import assert_close, tolerance_of
from tensorexpr.topi.schedules import default_schedule
from tensorexpr.workloads import Case

GCC, EMULATOR, ROOT = "aarch64-linux-gnu-gcc", "qemu-aarch64", Path("/usr/aarch64-linux-gnu")
TARGET = Target("llvm -mtriple=aarch64-unknown-linux-gnu -mcpu=neoverse-n1 -num-cores=2")
CASES = [
    Case("product", "suite.gemm", (13, 37, 21)),
    Case("transposed operand", "suite.batch_gemm", (2, 9, 33, 17, True)),
    Case("convolution", "suite.conv2d_bias_relu", (1, 3, 4, 6, 9, 3, 1, 1), (1, 2)),
    Case("depthwise", "suite.depthwise_nchw", (1, 3, 9, 13, 3, 1, 1)),
    Case("softmax", "suite.softmax", (3, 29)),
    Case("transpose", "suite.transpose", (9, 14)),
    Case("int8", "suite.gemm_low", (9, 32, 20, "uint8", "int8", "int32"), (1,)),
    Case("signed bytes", "suite.gemm_low", (9, 32, 20, "int8", "int8", "int32"), (1,)),
    Case("unsigned bytes", "suite.gemm_low", (9, 32, 19, "uint8", "uint8", "int32"), (1,)),
    Case("bfloat16", "suite.gemm_low", (9, 32, 20, "bfloat16", "bfloat16", "float32"), (1,)),
]
PROGRAM = """
#include <stdio.h>
#include <stdlib.h>
#include "libkernel.h"
static void *array(const char *name, long size) {
  void *data = aligned_alloc(64, (size + 63) / 64 * 64);
  FILE *file = fopen(name, "rb");
  if (file && fread(data, 1, size, file) != (size_t)size) exit(2);
  return data;
}
int main(void) {
%s
  FILE *file = fopen("out", "wb");
  return file == NULL || fwrite(%s, 1, %d, file) != %d || fclose(file);
}
"""


def link(name: str, objects: list[str]) -> None:
    subprocess.run([GCC, "-shared", "-fopenmp", "-o", name, *objects, "-lm"], check=True)


def run_emulated(case: Case, folder: Path, inputs: list[Any]) -> Any:
    """The result of a case whose library is linked to a program of C."""
    tensors = case.tensors()
    module = build(default_schedule(tensors, TARGET), tensors, TARGET, name="kernel")
    module.export_library(folder / "libkernel.so", fcompile=link)
    (output,) = empty_outputs(case)
    for number, array in enumerate(inputs):
        array.tofile(folder / str(number))
    sizes = [array.nbytes for array in (*inputs, output)]
    lines = [f'  void *x{number} = array("{number}", {size});' for number, size in enumerate(sizes)]
    lines.append(f"  if (kernel({', '.join(f'x{number}' for number in range(len(sizes)))})) return 3;")
    last = len(sizes) - 1
    (folder / "main.c").write_text(PROGRAM % ("\n".join(lines), f"x{last}", sizes[-1], sizes[-1]))
    subprocess.run([GCC, "main.c", "-fopenmp", "-L.", "-lkernel", "-lm", "-o", "main"], cwd=folder, check=True)
    # Threads that wait for each other by spinning would take the emulator's time from one another.
    settings = f"LD_LIBRARY_PATH={folder},OMP_WAIT_POLICY=passive"
    subprocess.run([EMULATOR, "-L", str(ROOT), "-E", settings, "./main"], cwd=folder, check=True)
    return np.fromfile(folder / "out", output.dtype).reshape(output.shape)


@pytest.mark.skipif(not (shutil.which(GCC) and shutil.which(EMULATOR) and ROOT.is_dir()), reason=f"needs {GCC} and {EMULATOR}")
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_kernels_for_neon_agree_with_the_reference(case: Case, tmp_path: Path) -> None:
    inputs, tensors = random_inputs(case), case.tensors()
    (wanted,) = evaluate(tensors[-1:], dict(zip(tensors, inputs, strict=False)))
    assert_close(run_emulated(case, tmp_path, inputs), wanted, tolerance_of(tensors[-1]))
