"""Networks without the compiler: loaded by what is beneath it, and called from C."""

from __future__ import annotations

import ctypes
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tensorexpr as tvm
from tensorexpr import relay
from tensorexpr.errors import ArgumentError, TensorExprError

TEXT = """def @main(%x: Tensor[(3, 4), float32], %s: Tensor[(3, 2), float32]) {
  %0 = add(nn.relu(nn.dense(%x, meta[relay.Constant][0])), %s);
  (nn.softmax(%0), reshape(%0, newshape=[6]))
}"""
X = np.linspace(-1, 1, 12).astype("float32").reshape(3, 4)
W = np.linspace(-2, 1, 8).astype("float32").reshape(2, 4)
S = np.ones((3, 2), "float32")

needs_a_compiler = pytest.mark.skipif(shutil.which("cc") is None, reason="needs the system's C compiler, cc")


def built(text: str = TEXT, target: str = "llvm") -> Any:
    mod = relay.parser.parse(text, init_meta_table={"relay.Constant": [tvm.nd.array(W)]})
    return relay.build(mod, target).module


@pytest.fixture(scope="module")
def expected() -> list[Any]:
    return [one.numpy() for one in tvm.relax.VirtualMachine(built())["main"](X, S)]


@needs_a_compiler
def test_a_network_is_loaded_without_the_compiler(tmp_path: Path, expected: list[Any]) -> None:
    built().export_library(tmp_path / "net.so")
    net = tvm.runtime.load(tmp_path / "net.so")
    assert net.inputs == {"x": ((3, 4), "float32"), "s": ((3, 2), "float32")}
    for found in (net(X, S), net(s=S, x=X), net(np.asfortranarray(X), s=S)):
        assert [one.shape for one in found] == [(3, 2), (6,)]
        for one, wanted in zip(found, expected, strict=True):
            np.testing.assert_array_equal(one, wanted)
    for args, message in (((X,), "given are a value"), ((X.T, S), r"input 'x' is \(4, 3\)"), ((X.astype("float64"), S), "float64")):
        with pytest.raises(ArgumentError, match=message):
            net(*args)
    with pytest.raises(ArgumentError, match="given are a value, y"):
        net(X, y=S)


@needs_a_compiler
def test_loading_imports_neither_llvm_nor_sympy(tmp_path: Path) -> None:
    built().export_library(tmp_path / "net.so")
    program = (
        "import sys, numpy; from tensorexpr import runtime\n"
        f"net = runtime.load({str(tmp_path / 'net.so')!r})\n"
        "net(*(numpy.zeros(shape, dtype) for shape, dtype in net.inputs.values()))\n"
        "names = 'llvmlite', 'sympy', 'tensorexpr.relax', 'tensorexpr.lower.pipeline', 'tensorexpr.tir', 'tensorexpr.target'\n"
        "print([name for name in names if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=100, check=True)
    assert done.stdout.strip() == "[]"


@needs_a_compiler
def test_networks_that_only_the_virtual_machine_runs(tmp_path: Path) -> None:
    executable = built("def @main(%x: Tensor[(n, 4), float32]) { nn.relu(%x) }")
    executable.export_library(tmp_path / "net.so")
    with pytest.raises(TensorExprError, match="has open shapes or control flow"):
        tvm.runtime.load(tmp_path / "net.so")
    with pytest.raises(TensorExprError, match="C can't run this network: it has open shapes"):
        executable.export_c(tmp_path / "net.o")
    with pytest.raises(ArgumentError, match="'2nd' is no name of C"):
        executable.export_c(tmp_path / "2nd.o")
    (tmp_path / "other.so").write_bytes(b"no library")
    with pytest.raises(TensorExprError, match="is no exported network"):
        tvm.runtime.load(tmp_path / "other.so")


PROGRAM = r"""
#include <stdio.h>
#include "net.h"

int main(void) {
  _Alignas(64) static float x[3][4], s[3][2], y[3][2], z[6];
  const void *inputs[NET_INPUTS] = {x, s};
  void *outputs[NET_OUTPUTS] = {y, z};
  if (fread(x, 1, sizeof x, stdin) != sizeof x || fread(s, 1, sizeof s, stdin) != sizeof s) return 1;
  int32_t code = net_run(inputs, outputs);
  fwrite(y, 1, sizeof y, stdout);
  fwrite(z, 1, sizeof z, stdout);
  return code;
}
"""


@needs_a_compiler
@pytest.mark.parametrize(("kind", "target"), [("so", "llvm"), ("o", "llvm"), ("so", "c"), ("c", "c")])
def test_a_c_program_runs_a_network(tmp_path: Path, kind: str, target: str, expected: list[Any]) -> None:
    executable = built(target=target)
    header = executable.export_c(tmp_path / f"net.{kind}")
    if target == "c":  # whose C compiler sums in its own order
        expected = [one.numpy() for one in tvm.relax.VirtualMachine(executable)["main"](X, S)]
    assert "[1] s: float[3][2] (float32)" in Path(header).read_text()
    (tmp_path / "main.c").write_text(PROGRAM)
    words = ["cc", "-O2", "main.c", f"./net.{kind}", "-fopenmp", "-lm", "-o", "main"]
    subprocess.run(words, cwd=tmp_path, check=True, capture_output=True, timeout=100)
    done = subprocess.run(["./main"], cwd=tmp_path, input=X.tobytes() + S.tobytes(), capture_output=True, timeout=100, check=True)
    assert done.stdout == b"".join(one.tobytes() for one in expected)
    example = re.findall(r"^ \*   (?!\[)(.*)$", Path(header).read_text(), re.MULTILINE)
    (tmp_path / "main.c").write_text("\n".join(example))
    subprocess.run(words, cwd=tmp_path, check=True, capture_output=True, timeout=100)
    subprocess.run(["./main"], cwd=tmp_path, check=True, timeout=100)


TWO = r"""
#include <stdio.h>
#include "one.h"
#include "two.h"

int main(void) {
  _Alignas(64) static float x[3][4] = {{1, 2, 3, 4}, {5, 6, 7, 8}, {9, 10, 11, 12}}, y[2][3][4];
  const void *inputs[] = {x};
  void *first[] = {y[0]}, *second[] = {y[1]};
  int32_t code = one_run(inputs, first) | two_run(inputs, second);
  printf("%g %g", y[0][2][3], y[1][2][3]);
  return code;
}
"""


@needs_a_compiler
@pytest.mark.parametrize("kind", ["so", "o"])
def test_a_c_program_has_several_networks(tmp_path: Path, kind: str) -> None:
    """Their kernels have names in common: of two libraries the first one's were called by both, and two objects weren't linked."""
    x, two = relay.var("x", shape=(3, 4)), relay.const(np.full((3, 4), 2, "float32"))
    for name, body in (("one", x + two), ("two", x * two)):
        relay.build(relay.Function((x,), body), "llvm").module.export_c(tmp_path / f"{name}.{kind}")
    (tmp_path / "main.c").write_text(TWO)
    words = ["cc", "main.c", f"./one.{kind}", f"./two.{kind}", "-fopenmp", "-lm", "-o", "main"]
    subprocess.run(words, cwd=tmp_path, check=True, capture_output=True, timeout=100)
    done = subprocess.run(["./main"], cwd=tmp_path, capture_output=True, timeout=100, check=True)
    assert done.stdout == b"14 24"


@needs_a_compiler
def test_c_text_has_constants_of_all_dtypes_exactly(tmp_path: Path) -> None:
    """Values at the ends of each dtype, which C spells in its own ways, through a concatenation that copies them."""
    rng, parts, results = np.random.default_rng(0), [], []
    for dtype in ("int8", "uint8", "int16", "int32", "uint32", "int64", "uint64", "float16", "float32", "float64", "bool"):
        value = rng.integers(0, 2**8, 13).astype(dtype)
        if np.dtype(dtype).kind in "iu":
            value[:2] = np.iinfo(dtype).min, np.iinfo(dtype).max
        elif dtype != "bool":
            value = rng.standard_normal(13).astype(dtype)
            value[:6] = np.nan, np.inf, -np.inf, -0.0, np.finfo(dtype).smallest_subnormal, np.finfo(dtype).max
        x = relay.var(f"x_{dtype}", shape=(2,), dtype=dtype)
        parts.append((x, value))
        results.append(relay.concatenate(relay.Tuple([x, relay.const(value)]), 0))
    func = relay.Function(tuple(x for x, _ in parts), relay.Tuple(results))
    built = relay.build(func, "c")
    executable = built.module
    header = executable.export_c(tmp_path / "net.c")
    words = ["cc", "-std=c99", "-Wall", "-Werror", "-pedantic", "-fwrapv", "-shared", "-fPIC", "net.c", "-o", "net.so", "-lm"]
    subprocess.run(words, cwd=tmp_path, check=True, timeout=100)
    run = ctypes.CDLL(str(tmp_path / "net.so")).net_run
    given = [np.ones(2, value.dtype) for _, value in parts]
    made = [np.zeros(15, value.dtype) for _, value in parts]
    addresses = [(ctypes.c_void_p * len(given))(*(one.ctypes.data for one in arrays)) for arrays in (given, made)]
    assert run(*addresses) == 0 and Path(header).exists()
    for (_, value), one in zip(parts, made, strict=True):
        np.testing.assert_array_equal(one[2:], value)
        np.testing.assert_array_equal(np.signbit(one[2:]), np.signbit(value)) if value.dtype.kind == "f" else None


def test_c_text_is_of_target_c(tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match="kernels for target llvm are machine code; C text is built for target c"):
        built().export_c(tmp_path / "net.c")
