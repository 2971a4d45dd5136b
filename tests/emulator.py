"""Objects for AArch64 in a program of C that runs under an emulator: many kernels in one process.

Debian has what it takes in qemu-user, gcc-aarch64-linux-gnu and libc6-dev-arm64-cross; where they aren't, tests of `needs_emulator` are
left out.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tensorexpr.codegen.emit import emit_module
from tensorexpr.runtime import engine
from tensorexpr.runtime.header import c_header
from tensorexpr.target import Target
from tensorexpr.tir.function import PrimFunc

GCC, QEMU, ROOT = "aarch64-linux-gnu-gcc", "qemu-aarch64", Path("/usr/aarch64-linux-gnu")
needs_emulator = pytest.mark.skipif(
    not (shutil.which(GCC) and shutil.which(QEMU) and ROOT.is_dir()),
    reason=f"needs {GCC}, {QEMU} and {ROOT}: Debian's gcc-aarch64-linux-gnu, qemu-user and libc6-dev-arm64-cross",
)
_RUN_SECONDS = 240.0  # an emulator that hangs is said so
CPUS = ("neoverse-n1", "apple-m1")
_PROGRAM = """
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static void *array(FILE *file, long size) {
  char *data = aligned_alloc(64, size / 64 * 64 + 64);
  if (fread(data, 1, size, file) != (size_t)size) exit(99);
  memset(data + size, 0x5a, size / 64 * 64 + 64 - size);
  return data;
}
static void done(FILE *file, const char *data, long size) {
  for (long i = size; i < size / 64 * 64 + 64; i++) if (data[i] != 0x5a) exit(97);
  if (fwrite(data, 1, size, file) != (size_t)size) exit(98);
}
"""


def target_of(cpu: str, cores: int = 2, bits: int = 128) -> Target:
    """A CPU with Linux; registers of more than 128 bits are SVE's."""
    return Target(f"llvm -mtriple=aarch64-unknown-linux-gnu -mcpu={cpu} -vector-width={bits} -num-cores={cores}")


@dataclass(frozen=True)
class Emulated:
    """A call of a function: its header, its name in C, and the arguments; `arrays` are read and written, then come numbers."""

    header: str
    name: str
    arrays: Sequence[npt.NDArray[Any]]
    numbers: Sequence[int] = ()


def run(calls: Sequence[Emulated], objects: Sequence[Path], folder: Path, bits: int = 0) -> list[list[npt.NDArray[Any]]]:
    """The arrays of each call as they are after it, on a CPU whose registers for SVE have so many bits if that isn't 0.

    Raises:
        AssertionError: if a call fails or writes beyond an array.
    """
    lines = [_PROGRAM, *dict.fromkeys(call.header for call in calls)]
    lines.append('int main(void) { FILE *from = fopen("in", "rb"), *to = fopen("out", "wb"); if (!from || !to) return 96;')
    for call in calls:
        names = [f"x{number}" for number in range(len(call.arrays))]
        made = [f"void *{name} = array(from, {array.nbytes});" for name, array in zip(names, call.arrays, strict=True)]
        kept = [f"done(to, {name}, {array.nbytes}); free({name});" for name, array in zip(names, call.arrays, strict=True)]
        words = ", ".join([*names, *map(str, call.numbers)])
        lines.append(f'  {{ {" ".join(made)} fputs("{call.name} ", stderr); if ({call.name}({words})) return 95; {" ".join(kept)} }}')
    (folder / "main.c").write_text("\n".join([*lines, "  return fclose(to); }\n"]))
    with (folder / "in").open("wb") as file:
        for call in calls:
            for array in call.arrays:
                file.write(np.ascontiguousarray(array).tobytes())
    link = [GCC, "-w", "main.c", *map(str, objects), "-fopenmp", "-lm", "-o", "main"]
    subprocess.run(link, cwd=folder, check=True)
    # threads that wait for each other by spinning would take the emulator's time from one another
    cpu = f"max,sve-default-vector-length={bits // 8}" if bits else "max"
    command = [QEMU, "-cpu", cpu, "-L", str(ROOT), "-E", f"LD_LIBRARY_PATH={folder},OMP_WAIT_POLICY=passive", "./main"]
    ran = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=_RUN_SECONDS)
    assert ran.returncode == 0, f"exit code {ran.returncode} after {ran.stderr}"
    data, place = (folder / "out").read_bytes(), 0
    results: list[list[npt.NDArray[Any]]] = []
    for call in calls:
        results.append([])
        for array in call.arrays:
            results[-1].append(np.frombuffer(data, array.dtype, array.size, place).reshape(array.shape))
            place += array.nbytes
    return results


def run_functions(
    calls: Sequence[tuple[PrimFunc, Sequence[npt.NDArray[Any]], Sequence[int]]], target: Target, folder: Path, opt_level: int = 3
) -> list[list[npt.NDArray[Any]]]:
    """`run` of functions that are compiled as they are, as one module: each with its arrays and numbers."""
    named = {f"f{number}": call[0].with_attr("global_symbol", f"f{number}") for number, call in enumerate(calls)}
    emitted = emit_module(named, target)
    path = folder / "functions.o"
    path.write_bytes(engine.compile_text(emitted.text, target, opt_level).data)
    header = c_header(emitted.signatures.values(), "functions")
    return run([Emulated(header, name, call[1], call[2]) for name, call in zip(named, calls, strict=True)], [path], folder, target.sve_bits)
