"""LLVM text to object to running code. Property 39: for the CPU that was named."""

from __future__ import annotations

import ctypes
import gc
import subprocess
import sys
from pathlib import Path

import pytest

from tensorexpr.errors import CodegenError, InternalError, TargetError
from tensorexpr.runtime import engine
from tensorexpr.runtime.elf import undefined_symbols
from tensorexpr.target import Target

HERE = Target("llvm")
ARM = Target("llvm -mtriple=aarch64-linux-gnu -mcpu=neoverse-v1")
DOUBLE = "define i32 @twice(i32 %x) {\n%y = mul i32 %x, 2\nret i32 %y\n}"
OUTSIDE = "declare i32 @nobody_has_this(i32)\ndefine i32 @f(i32 %x) {\n%y = call i32 @nobody_has_this(i32 %x)\nret i32 %y\n}"


def call(address: int, value: int) -> int:
    return int(ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_int32)(address)(value))


@pytest.mark.parametrize("level", [0, 1, 2, 3])
def test_text_runs_at_every_level(level: int) -> None:
    compiled = engine.compile_text(DOUBLE, HERE, level)
    assert set(compiled.timings) == {"parse", "optimise", "codegen"}
    code = engine.load_object(compiled.data, ["twice"])
    assert call(code["twice"], 21) == 42


def test_one_name_may_be_loaded_many_times() -> None:
    codes = [engine.load_object(engine.compile_text(DOUBLE.replace("2\n", f"{factor}\n"), HERE, 0).data, ["twice"]) for factor in range(20)]
    assert [call(code["twice"], 3) for code in codes] == [3 * factor for factor in range(20)]


def test_unloaded_code_gives_its_memory_back() -> None:
    data = engine.compile_text(DOUBLE, HERE, 0).data

    def resident() -> int:
        return int(Path("/proc/self/statm").read_text().split()[1]) * 4096

    for _ in range(50):
        engine.load_object(data, ["twice"])
    gc.collect()
    before = resident()
    for _ in range(1000):
        engine.load_object(data, ["twice"])
    gc.collect()
    assert resident() - before < 4 << 20  # each load maps two pages at least: 8 MiB if they stayed


_RINGS = """
import gc
from tensorexpr.runtime import engine
from tensorexpr.target import Target

for first in (0, 1):
    module = engine.parse("define i32 @one() { ret i32 1 }", Target("llvm"))
    ring = [module, module._context][::1 - 2 * first]
    ring.append(ring)
    del module, ring
    gc.collect()
"""


def test_a_module_and_its_context_may_be_finalised_in_any_order() -> None:
    # In a process of its own: it crashed. An exception keeps frames, which keep it: an interrupted build was such a ring.
    subprocess.run([sys.executable, "-c", _RINGS], check=True, timeout=60)


def test_given_symbols_are_called() -> None:
    callback = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_int32)(lambda x: x + 1000)
    address = ctypes.cast(callback, ctypes.c_void_p).value or 0
    code = engine.load_object(engine.compile_text(OUTSIDE, HERE, 0).data, ["f"], {"nobody_has_this": address})
    assert call(code["f"], 7) == 1007


def test_the_math_library_is_there() -> None:
    text = "declare double @cbrt(double)\ndefine double @f(double %x) {\n%y = call double @cbrt(double %x)\nret double %y\n}"
    code = engine.load_object(engine.compile_text(text, HERE, 0).data, ["f"])
    assert ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double)(code["f"])(27.0) == pytest.approx(3.0)


def test_missing_symbol_is_named() -> None:
    with pytest.raises(CodegenError, match="f: the external function nobody_has_this is in no library of this process"):
        engine.load_object(engine.compile_text(OUTSIDE, HERE, 0).data, ["f"])


def test_missing_function_is_an_internal_error() -> None:
    with pytest.raises(InternalError, match="thrice"):
        engine.load_object(engine.compile_text(DOUBLE, HERE, 0).data, ["thrice"])


@pytest.mark.parametrize("text", ["define i32 @f() {\nret i64 0\n}", "define void @f() {\nbr label %f\n}", "nonsense"])
def test_refused_text_is_saved_and_named(text: str) -> None:
    with pytest.raises(InternalError) as error:
        engine.compile_text(text, HERE)
    path = Path(str(error.value).split("saved as ")[1].split(": ")[0])
    assert path.read_text() == text
    path.unlink()


def test_other_architectures_are_compiled_but_not_loaded() -> None:
    assert "ret" in engine.emit_assembly(DOUBLE, ARM)
    assert engine.compile_text(DOUBLE, ARM).data[18] == 183  # ELF's number of AArch64
    if HERE.arch == "x86_64":
        with pytest.raises(TargetError, match="code for aarch64 can't run on this x86_64 machine"):
            engine.check_runs_here(ARM)


def test_a_target_with_missing_features_does_not_run_here() -> None:
    lacking = Target("llvm -mtriple=x86_64-linux-gnu -mcpu=znver5 -mattr=+amx-tile,+avx512fp16")
    if HERE.arch == "x86_64" and not HERE.features & {"amx-tile", "avx512fp16"}:
        with pytest.raises(TargetError, match=r"needs amx-tile, (.*, )?avx512fp16, (.*, )?which this machine"):
            engine.check_runs_here(lacking)
    engine.check_runs_here(HERE)


def test_an_unknown_cpu_is_refused_before_llvm_replaces_it() -> None:
    with pytest.raises(TargetError, match="mcpu 'nonsense' is no x86_64 CPU"):
        engine.compile_text(DOUBLE, Target("llvm -mtriple=x86_64-linux-gnu -mcpu=nonsense"))


def test_39_code_for_one_cpu_holds_no_instruction_of_another() -> None:
    text = "define <16 x float> @f(<16 x float> %x, <16 x float> %y) {\n%z = fadd <16 x float> %x, %y\nret <16 x float> %z\n}"
    registers = {}
    for cpu in ("x86-64", "haswell", "skylake-avx512"):
        assembly = engine.emit_assembly(text, Target(f"llvm -mtriple=x86_64-linux-gnu -mcpu={cpu}"))
        registers[cpu] = {name for name in ("xmm", "ymm", "zmm") if name in assembly}
    assert registers == {"x86-64": {"xmm"}, "haswell": {"ymm"}, "skylake-avx512": {"zmm"}}


def test_undefined_symbols_of_an_object() -> None:
    assert undefined_symbols(engine.compile_text(OUTSIDE, Target("llvm -mtriple=x86_64-linux-gnu"), 0).data) == ["nobody_has_this"]
    assert undefined_symbols(b"no object") == []


def test_bitcode_is_bitcode() -> None:
    assert engine.emit_bitcode(DOUBLE, HERE)[:2] == b"BC"


def test_the_process_ends_cleanly_with_code_loaded() -> None:
    script = (
        "from tensorexpr.runtime import engine; from tensorexpr.target import Target\n"
        f"text = {DOUBLE!r}\n"
        "code = engine.load_object(engine.compile_text(text, Target('llvm'), 0).data, ['twice'])\n"
        "print(len(code.addresses))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "1\n", "")
