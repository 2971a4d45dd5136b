"""Modules: functions by name, the entry, sources, timing."""

from __future__ import annotations

import re
import time
from typing import Any

import numpy as np
import pytest

from tensorexpr import runtime
from tensorexpr.errors import ArgumentError, TargetError
from tensorexpr.runtime import engine
from tensorexpr.runtime.code import CompiledCode
from tensorexpr.runtime.entries import entries_text
from tensorexpr.runtime.module import Module
from tensorexpr.runtime.timing import BenchmarkResult, Evaluator
from tensorexpr.target import Target

from .functions import buffer, module_of, signature


def two_functions(*names: str) -> Module:
    """A module of functions that do nothing."""
    described = {name: signature(name=name) for name in names}
    text = "\n".join(f'define i32 @"{name}"() {{\nret i32 0\n}}' for name in names) + entries_text(described.values())
    target = Target("llvm")
    return Module(CompiledCode(text, engine.compile_text(text, target, 0).data, described, target))


def test_functions_by_name(add_one: Module) -> None:
    array = np.zeros(1, np.float32)
    for function in (add_one, add_one["add_one"], add_one["main"], add_one["default_function"], add_one.entry_func):
        function(array)
    assert array.tolist() == [5]
    assert (add_one.entry_name, add_one.function_names) == ("add_one", ["add_one"])
    assert add_one["main"] is add_one.get_function("add_one")
    assert repr(add_one["main"]) == "<function add_one of a built module>"
    assert "add_one" in repr(add_one)


def test_entry_of_several_functions() -> None:
    module = two_functions("main", "other.x")
    assert module.entry_name == "main"
    module["other.x"]()
    assert module.implements_function("other.x") and not module.implements_function("default_function")
    with pytest.raises(ArgumentError, match=r"the module has no function 'third'; it has main, other\.x") as caught:
        module["third"]
    assert isinstance(caught.value, AttributeError)  # which programs of TVM catch
    with pytest.raises(ArgumentError, match=r"no entry function: choose one by mod\[name\] from a, b"):
        two_functions("a", "b")()


def test_sources(add_one: Module) -> None:
    assert "fadd float" in add_one.get_source() == add_one.get_source("ll")
    assert add_one.get_source("asm") == add_one.get_source("s")
    assert "add_one__packed" in add_one.get_source("asm")
    with pytest.raises(ArgumentError, match="no source format 'c'; there are 'll'"):
        add_one.get_source("c")


def test_properties(add_one: Module) -> None:
    assert (add_one.type_key, add_one.format, add_one.target) == ("llvm", "o", Target("llvm"))
    add_one(np.zeros(1, np.float32))
    assert add_one.timings["load"] > 0


def test_a_module_for_another_machine_is_made_but_not_run() -> None:
    target = Target("llvm -mtriple=aarch64-linux-gnu" if Target("llvm").arch == "x86_64" else "llvm -mtriple=x86_64-linux-gnu")
    described = signature(name="f")
    text = "define i32 @f() {\nret i32 0\n}\n" + entries_text([described])
    module = Module(CompiledCode(text, engine.compile_text(text, target).data, {"f": described}, target))
    assert "f__packed" in module.get_source("asm")
    with pytest.raises(TargetError, match="can't run on this"):
        module()


def test_time_evaluator_counts_its_calls(add_one: Module) -> None:
    array = np.zeros(1, np.float32)
    result = add_one.time_evaluator("main", runtime.cpu(), number=7, repeat=3)(array)
    assert array[0] == 1 + 3 * 7  # one untimed call comes first
    assert len(result.results) == 3
    assert result.min <= result.median <= result.max and result.min <= result.mean <= result.max


def test_time_evaluator_fills_its_time(add_one: Module) -> None:
    array = np.zeros(1, np.float32)
    start = time.perf_counter()
    result = add_one.time_evaluator("main", number=1, repeat=2, min_repeat_ms=5)(array)
    assert time.perf_counter() - start >= 2 * 5e-3
    assert array[0] > 2 * 5e-3 / max(result.results) * 0.99


def test_time_evaluator_prepares_before_each_repeat(add_one: Module) -> None:
    seen: list[float] = []
    runtime.register_func("tests.prepare", lambda x: seen.append(float(x[0])), override=True)
    add_one.time_evaluator("main", number=2, repeat=3, f_preproc="tests.prepare")(np.zeros(1, np.float32))
    assert seen == [1, 3, 5]
    runtime.remove_global_func("tests.prepare")
    with pytest.raises(ArgumentError, match=r"no function 'tests\.prepare' is registered"):
        add_one.time_evaluator("main", f_preproc="tests.prepare")(np.zeros(1, np.float32))


@pytest.mark.parametrize("options", [{"cache_flush_bytes": 1 << 16}, {"f_preproc": "cache_flush_cpu_non_first_arg"}])
def test_time_evaluator_flushes_without_changing_results(add_one: Module, options: dict[str, Any]) -> None:
    array = np.zeros(1, np.float32)
    add_one.time_evaluator("main", number=1, repeat=2, **options)(array)
    assert array[0] == 3


def test_time_evaluator_cools_down(add_one: Module) -> None:
    start = time.perf_counter()
    evaluate = add_one.time_evaluator("main", number=1, repeat=4, cooldown_interval_ms=10, repeats_to_cooldown=2)
    evaluate(np.zeros(1, np.float32))
    assert time.perf_counter() - start >= 2 * 10e-3


def test_time_evaluator_checks_arguments_and_codes(add_one: Module) -> None:
    with pytest.raises(ArgumentError, match="has dtype float64"):
        add_one.time_evaluator("main")(np.zeros(1))
    failing = module_of(signature(errors=("it failed",)), "ret i32 1")
    with pytest.raises(ArgumentError, match="f: it failed"):
        failing.time_evaluator("main")()
    with pytest.raises(ArgumentError, match="number is 0, needs at least 1"):
        add_one.time_evaluator("main", number=0)


def test_a_clock_that_stands_still_ends(monkeypatch: pytest.MonkeyPatch, add_one: Module) -> None:
    counts: list[int] = []

    def seconds(self: Evaluator, words: Any, number: int) -> float:
        counts.append(number)
        return 0.0

    monkeypatch.setattr(Evaluator, "_seconds", seconds)
    result = add_one.time_evaluator("main", number=1, min_repeat_ms=1, limit_zero_time_iterations=4)(np.zeros(1, np.float32))
    assert result.mean == 0
    assert counts[0] == 1 and len(counts) == 1 + 5 and counts[1:] == sorted(counts[1:])


def test_benchmark_result_is_a_table() -> None:
    result = BenchmarkResult((0.001, 0.003))
    assert (result.mean, result.median, result.min, result.max, result.std) == (0.002, 0.002, 0.001, 0.003, 0.001)
    lines = str(result).splitlines()
    assert lines[0] == "Execution time summary:"
    assert re.split(r"\s{2,}", lines[1].strip()) == ["mean (ms)", "median (ms)", "max (ms)", "min (ms)", "std (ms)"]
    assert lines[2].split() == ["2.0000", "2.0000", "3.0000", "1.0000", "1.0000"]


def test_short_times_show_digits() -> None:
    assert str(BenchmarkResult((1.234e-8,))).splitlines()[2].split()[0] == "1.234e-05"


def test_a_timed_function_gets_its_arguments_unchanged() -> None:
    described = signature(buffer("out", (1,), "int64", written=True))
    body = "%v = load i64, ptr %0\n%w = add i64 %v, 1\nstore i64 %w, ptr %0\nret i32 0"
    out = np.zeros(1, np.int64)
    module_of(described, body).time_evaluator("f", number=1000, repeat=1)(out)
    assert out[0] == 1001
