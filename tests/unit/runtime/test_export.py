"""Modules as files, and back; and that a library needs nothing of ours to run. Property 39."""

from __future__ import annotations

import ctypes
import dataclasses
import json
import shutil
import subprocess
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tensorexpr.codegen.signature import BufferParam, Signature
from tensorexpr.errors import ArgumentError, TargetError, TensorExprError
from tensorexpr.runtime import binding, load_module, sidecar
from tensorexpr.runtime.code import CompiledCode
from tensorexpr.runtime.header import c_header
from tensorexpr.runtime.module import Module
from tensorexpr.target import Target
from tensorexpr.tir.expr import Var
from tests.effort import share_of

from .functions import buffer, module_of, scalar, signature

PARALLEL = """
declare void @GOMP_parallel(ptr, ptr, i32, i32)
define internal void @body(ptr %p) {
  %old = atomicrmw add ptr %p, i32 1 monotonic
  ret void
}
"""


def needs_compiler() -> None:
    """Leave out a test that links on a machine that can't."""
    if not shutil.which("cc"):
        pytest.skip("no C compiler")


@pytest.mark.parametrize("name", ["x.o", "x.tar", "x.so"])
def test_round_trip(add_one: Module, tmp_path: Path, name: str) -> None:
    needs_compiler()
    add_one.export_library(tmp_path / name)
    assert (tmp_path / "x.h").exists() == (name != "x.tar")
    loaded = load_module(tmp_path / name)
    array = np.zeros(2, np.float32)
    loaded(array)
    loaded["add_one"](array)
    assert array.tolist() == [2, 0]
    assert loaded.target == add_one.target.resolved()
    assert loaded.time_evaluator("main", number=3)(array).mean >= 0
    with pytest.raises(ArgumentError, match="add_one: argument a"):
        loaded(np.zeros(2))
    with pytest.raises(TensorExprError, match="was loaded from a file and has no source"):
        loaded.get_source()


def test_save_formats(add_one: Module, tmp_path: Path) -> None:
    for kind in ("o", "ll", "s", "bc"):
        add_one.save(tmp_path / f"x.{kind}")
    add_one.save(str(tmp_path / "assembly"), "asm")
    assert (tmp_path / "x.o").read_bytes()[:4] == b"\x7fELF"
    assert (tmp_path / "x.ll").read_text() == add_one.get_source()
    assert (tmp_path / "x.s").read_text() == (tmp_path / "assembly").read_text() == add_one.get_source("s")
    assert (tmp_path / "x.bc").read_bytes()[:2] == b"BC"
    load_module(tmp_path / "x.o")(np.zeros(1, np.float32))
    with pytest.raises(ArgumentError, match="save: no format 'pdf'; there are o, ll"):
        add_one.save(tmp_path / "x.pdf")


def test_a_c_program_calls_a_parallel_library(tmp_path: Path) -> None:
    needs_compiler()
    described = signature(buffer("count", (1,), "int32", written=True), name="count_threads")
    body = "call void @GOMP_parallel(ptr @body, ptr %0, i32 2, i32 0)\nret i32 0"
    module_of(described, body, PARALLEL).export_library(tmp_path / "libcount.so")
    program = (
        '#include <stdio.h>\n#include "libcount.h"\nint main(void) { int32_t n = 0; int bad = count_threads(&n); printf("%d %d", bad, n); }'
    )
    (tmp_path / "main.c").write_text(program)
    words = ["cc", "-Wall", "-Werror", "main.c", "-L.", "-lcount", f"-Wl,-rpath,{tmp_path}", "-o", "main"]
    subprocess.run(words, cwd=tmp_path, check=True)
    done = subprocess.run([str(tmp_path / "main")], capture_output=True, text=True, check=True)
    assert done.stdout == "0 2"
    linked = subprocess.run(["ldd", str(tmp_path / "libcount.so")], capture_output=True, text=True, check=True).stdout
    assert "python" not in linked and "LLVM" not in linked


def test_own_linker(add_one: Module, tmp_path: Path) -> None:
    seen: list[Any] = []

    def link(name: str, objects: list[str], **options: Any) -> None:
        seen.append((name, [Path(path).name for path in objects], options))
        Path(name).write_bytes(Path(objects[0]).read_bytes())

    add_one.export_library(tmp_path / "x.bin", fcompile=link, level=3)
    assert seen == [(str(tmp_path / "x.bin"), ["module.o"], {"level": 3})]
    assert (tmp_path / "x.h").exists() and (tmp_path / "x.bin.json").exists()


def test_linker_options(add_one: Module, tmp_path: Path) -> None:
    needs_compiler()
    add_one.export_library(tmp_path / "x.so", options=["-Wl,-soname,libother.so"])
    with pytest.raises(ArgumentError, match="export_library: no option level; known: options"):
        add_one.export_library(tmp_path / "x.so", level=3)
    with pytest.raises(TensorExprError, match=r"x\.so: `.*` failed: .*--no-such-option"):
        add_one.export_library(tmp_path / "x.so", options=["--no-such-option"])


def test_without_a_compiler(add_one: Module, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CC", raising=False)
    with pytest.raises(TensorExprError, match=r"needs a C compiler, and there is no cc, gcc, clang; install one, set CC, .*save\('x\.o'\)"):
        add_one.export_library(tmp_path / "x.so")
    assert list(tmp_path.iterdir()) == []


def test_linking_for_another_platform(add_one: Module, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code = add_one._source()
    there = Target("llvm -mtriple=aarch64-unknown-none -mcpu=generic")
    cross = Module(dataclasses.replace(code, target=there))
    # CC is this machine's: it makes no libraries for others
    monkeypatch.setenv("CC", "cc")
    with pytest.raises(TensorExprError, match=r"a C compiler for aarch64-unknown-none, .* no aarch64-unknown-none-gcc; .* one with cc="):
        cross.export_library(tmp_path / "x.so")
    cross.export_library(tmp_path / "x.o")
    assert (tmp_path / "x.h").exists()
    monkeypatch.setenv("PATH", str(tmp_path))
    there = Target("llvm -mtriple=aarch64-unknown-linux-gnu -mcpu=neoverse-n1")
    compiler = tmp_path / "aarch64-linux-gnu-gcc"
    compiler.write_text("#!/bin/sh\nexec /bin/false\n")
    compiler.chmod(0o755)
    with pytest.raises(TensorExprError, match=r"/aarch64-linux-gnu-gcc -shared .* failed"):
        Module(dataclasses.replace(code, target=there)).export_library(tmp_path / "x.so")


def spoil_format(described: dict[str, Any]) -> None:
    described["format"] = 99


def spoil_digest(described: dict[str, Any]) -> None:
    described["sha256"] = "0" * 64


def spoil_functions(described: dict[str, Any]) -> None:
    described["functions"] = [{"name": "f"}]


def spoil_alignment(described: dict[str, Any]) -> None:
    described["functions"][0]["params"][0]["alignment"] = 3


def spoil_dtype(described: dict[str, Any]) -> None:
    described["functions"][0]["params"][0]["dtype"] = "float31"


def spoil_symbol(described: dict[str, Any]) -> None:
    described["functions"][0]["symbols"] = ["v9"]


def spoil_extent(described: dict[str, Any]) -> None:
    described["functions"][0]["params"][0]["shape"] = [10_000]


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (spoil_format, "has format 99, this version of tensorexpr reads 1"),
        (spoil_digest, "bytes are not those that its description was written for"),
        (spoil_functions, "lacks 'variables' as a dict"),
        (spoil_alignment, "alignment 3, which is no power of two"),
        (spoil_dtype, "'float31' is no dtype"),
        (spoil_symbol, "'v9' where a variable is needed"),
        (spoil_extent, "does not describe functions"),
    ],
)
def test_a_spoilt_description_is_refused(add_one: Module, tmp_path: Path, spoil: Callable[[Any], None], message: str) -> None:
    add_one.save(tmp_path / "x.o")
    path = tmp_path / "x.o.json"
    described = json.loads(path.read_text())
    spoil(described)
    path.write_text(json.dumps(described))
    with pytest.raises(sidecar.SidecarError) as error:
        load_module(tmp_path / "x.o")
    assert message in str(error.value) and "x.o" in str(error.value)


def test_changed_bytes_are_not_loaded(add_one: Module, tmp_path: Path) -> None:
    add_one.save(tmp_path / "x.o")
    data = bytearray((tmp_path / "x.o").read_bytes())
    data[-1] ^= 1
    (tmp_path / "x.o").write_bytes(data)
    with pytest.raises(sidecar.SidecarError, match="export it again"):
        load_module(tmp_path / "x.o")


def test_39_a_library_of_another_cpu_is_not_loaded(add_one: Module, tmp_path: Path) -> None:
    add_one.save(tmp_path / "x.o")
    path = tmp_path / "x.o.json"
    described = json.loads(path.read_text())
    # One only Intel's CPUs have, the other one only AMD's had.
    described["target"] = {"kind": "llvm", "mtriple": "x86_64-unknown-linux-gnu", "mcpu": "znver5", "mattr": ["+amx-tile", "+tbm"]}
    path.write_text(json.dumps(described))
    with pytest.raises(TargetError):
        load_module(tmp_path / "x.o")


@pytest.mark.parametrize(
    ("text", "message"),
    [(b"{", "is no JSON"), (b"[]", "lacks 'format'"), (b"[" * 100_000, "is no JSON"), (b" " * (2 << 20), "at most 1048576 are read")],
)
def test_what_is_no_description(text: bytes, message: str) -> None:
    with pytest.raises(sidecar.SidecarError, match=message):
        sidecar.read(text, b"")


def test_missing_files(add_one: Module, tmp_path: Path) -> None:
    add_one.save(tmp_path / "x.o")
    (tmp_path / "x.o.json").unlink()
    for name in ("x.o", "nothing.so", "nothing.tar"):
        with pytest.raises(TensorExprError, match="No such file"):
            load_module(tmp_path / name)
    with pytest.raises(ArgumentError, match="no format 'dll'"):
        load_module(tmp_path / "x.dll")


def test_archives_of_something_else(tmp_path: Path) -> None:
    (tmp_path / "x.tar").write_bytes(b"no archive")
    with pytest.raises(TensorExprError, match="no archive of a module"):
        load_module(tmp_path / "x.tar")
    with tarfile.open(tmp_path / "y.tar", "w") as archive:
        archive.add(tmp_path / "x.tar", "other")
    with pytest.raises(TensorExprError, match="no archive of a module"):
        load_module(tmp_path / "y.tar")


N, M, S = Var("n", "int64"), Var("n"), Var("s")
EVERYTHING = signature(
    buffer("a", (N, M * 2 + 1), "bfloat16", strides=(S, 1)),
    buffer("b", (3,), "bool", written=True, alignment=16),
    buffer("double", (), "float64", written=True),
    buffer("a", (N,), "uint8"),
    scalar("count", "int32"),
    scalar("scale", "float32"),
    symbols=(N, M, S),
    name="everything",
    errors=("one */ two",),
)


def describe(described: Signature) -> tuple[Any, ...]:
    """What a signature says, apart from the identity of its variables."""
    params = [
        (*map(binding.text, (*p.shape, *p.strides, p.elem_offset)), p.name, p.dtype, p.alignment, p.is_read, p.is_written)
        if isinstance(p, BufferParam)
        else (p.name, p.dtype, p.var.name)
        for p in described.params
    ]
    return described.name, params, [(var.name, var.dtype) for var in described.symbols], described.errors


def written(described: Signature) -> bytes:
    """The description of a library that holds nothing but a signature."""
    return sidecar.write(CompiledCode("", b"data", {described.name: described}, Target("llvm")), b"data").encode()


def test_signatures_survive_their_description() -> None:
    read = sidecar.read(written(EVERYTHING), b"data").signatures["everything"]
    assert describe(read) == describe(EVERYTHING)
    assert isinstance(read.params[0], BufferParam) and read.params[0].shape[0] is read.symbols[0]
    assert read.symbols[0] is not read.symbols[1]
    assert len(binding.make_plan(read).steps) == len(binding.make_plan(EVERYTHING).steps)


@settings(deadline=None, derandomize=True, max_examples=share_of(200))
@given(st.data())
def test_a_mutated_description_is_refused_or_read_but_never_crashes(data: st.DataObject) -> None:
    described = json.loads(written(EVERYTHING))
    node = described["functions"][0]
    while isinstance(node, (dict, list)) and node:
        key = data.draw(st.sampled_from(sorted(node) if isinstance(node, dict) else range(len(node))))
        if not isinstance(node[key], (dict, list)) or data.draw(st.booleans()):
            node[key] = data.draw(st.sampled_from([None, -1, 10**30, "x", "v0", [], {}, True, 1.5, ["Var", "n"], [[0, 0]]]))
            break
        node = node[key]
    try:
        read = sidecar.read(json.dumps(described).encode(), b"data")
    except sidecar.SidecarError:
        return
    assert all(isinstance(one, Signature) for one in read.signatures.values())


def test_header_compiles_and_says_what_is_needed(tmp_path: Path) -> None:
    needs_compiler()
    odd = signature(buffer("int", (1,)), name="odd.name")
    keyword = signature(buffer("x", (1,)), name="register")
    text = c_header([EVERYTHING, odd, keyword], "my-lib")
    assert "int32_t everything(const uint16_t *a, uint8_t *b, double *_double, const uint8_t *a_, int64_t count, double scale, " in text
    assert "a: bfloat16[n, ((n * 2) + 1)], read, strides (s, 1) elements, aligned to 2 bytes" in text
    assert "Returns 1: one * / two" in text
    assert "Written arrays must not overlap any other." in text
    (tmp_path / "x.h").write_text(text)
    for flags in (["-x", "c", "-std=c99", "-pedantic-errors", "-Wno-pedantic"], ["-x", "c++"]):
        subprocess.run(["cc", *flags, "-Wall", "-Werror", "-fsyntax-only", str(tmp_path / "x.h")], check=True)


def test_exported_functions_have_the_c_form(tmp_path: Path) -> None:
    needs_compiler()
    described = signature(buffer("out", (N,), "int64", written=True), scalar("x", "float64"), symbols=(N,), name="plain")
    body = "%i = fptosi double %1 to i64\n%s = add i64 %i, %2\nstore i64 %s, ptr %0\nret i32 7"
    module_of(described, body).export_library(tmp_path / "p.so")
    function = ctypes.CDLL(str(tmp_path / "p.so")).plain
    function.argtypes = (ctypes.c_void_p, ctypes.c_double, ctypes.c_int64)
    out = np.zeros(1, np.int64)
    assert (function(out.ctypes.data, 2.5, 40), out[0]) == (7, 42)
