"""Machine: what targets say of a processor, by its name, by the system, by options."""

from __future__ import annotations

import logging

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tensorexpr import processor
from tensorexpr.errors import TargetError
from tensorexpr.target import Target
from tensorexpr.target.cores import CORES
from tensorexpr.target.machine import Cache, Machine, machine_of, without_caches

X86 = "llvm -mtriple=x86_64-linux-gnu"
ARM = "llvm -mtriple=aarch64-linux-gnu"


def _platform(cpu: str) -> str:
    return ARM if cpu.startswith(("cortex", "neoverse", "apple")) else X86


def machine(text: str) -> Machine:
    return Target(text).machine


@settings(deadline=None)  # LLVM is asked about a CPU once
@given(st.sampled_from(sorted(CORES)), st.integers(1, 64))
def test_resolved_targets_describe_the_same_machine_anywhere(cpu: str, cores: int) -> None:
    target = Target(f"{_platform(cpu)} -mcpu={cpu} -num-cores={cores}")
    written = target.resolved()
    assert Target(str(written)) == written == Target(written.export()) == written.resolved()
    assert written.machine == target.machine


@given(st.integers(1, 1 << 20), st.sampled_from((1, 1 << 10, 1 << 20)), st.integers(1, 64))
@example(1280, 1 << 10, 20)
def test_caches_are_read_as_written(count: int, unit: int, ways: int) -> None:
    text = f"{processor.size_text(count * unit)}/{ways}"
    assert processor.parse_cache(text) == (count * unit, ways)
    assert str(Cache(count * unit, ways, 1.0)) == text


@given(st.sampled_from((1, 2, 4, 8, 12)), st.sampled_from((64, 256, 4096)), st.integers(1, 1 << 16))
def test_rows_that_a_cache_holds_meet_no_more_than_its_ways(ways: int, sets_bytes: int, apart: int) -> None:
    """So many lines at that distance fall into each set at most, when they begin at a line."""
    cache = Cache(ways * sets_bytes, ways, 1.0)
    rows = cache.rows(apart * 64)
    sets = [row * apart % (sets_bytes // 64) for row in range(rows)]
    assert max(sets.count(number) for number in set(sets)) <= ways
    assert rows <= cache.size // 64


def test_options_come_before_the_system_and_the_system_before_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processor, "caches", lambda: {1: (1 << 14, 4), 2: (1 << 18, 8)})
    machine_of.cache_clear()
    try:
        here = machine("llvm -l2=3M/12")
        assert [str(cache) for cache in here.caches[:2]] == ["16K/4", "3M/12"]
        assert [str(cache) for cache in machine(f"{X86} -mcpu=znver5 -l3=16M/16").caches] == ["48K/12", "1M/16", "16M/16"]
    finally:
        machine_of.cache_clear()


def test_another_cpu_is_not_this_machine() -> None:
    other = "znver5" if processor.host_cpu() != "znver5" else "haswell"
    assert str(machine(f"{X86} -mcpu={other}").caches[0]) == CORES[other].l1d


def test_a_wide_vector_takes_a_narrow_pipe_more_than_once() -> None:
    assert machine(f"{X86} -mcpu=znver4").fma_per_cycle == 1.0  # two pipes of 256 bits for vectors of 512
    assert machine(f"{X86} -mcpu=znver4 -vector-width=256").fma_per_cycle == 2.0
    assert machine(f"{X86} -mcpu=znver5").fma_per_cycle == 2.0
    assert machine(f"{X86} -mcpu=znver1").loads_per_cycle == 1.0


@pytest.mark.parametrize(
    "cpu, registers, masks", [("znver3", 16, False), ("znver5", 32, True), ("skylake-avx512", 32, True), ("haswell", 16, False)]
)
def test_registers(cpu: str, registers: int, masks: bool) -> None:
    found = machine(f"{X86} -mcpu={cpu}")
    assert (found.vector_registers, found.mask_registers) == (registers, masks)


@settings(deadline=None)
@given(st.sampled_from(sorted(CORES)), st.integers(1, 4))
def test_a_register_tile_fits_the_registers_and_one_more_row_does_not(cpu: str, vectors: int) -> None:
    found = _of_core(cpu)
    rows = found.tile_rows(vectors)
    assert (
        rows * vectors + vectors + found.scalar_registers
        <= found.vector_registers
        < (rows + 1) * vectors + vectors + found.scalar_registers
    )


@pytest.mark.parametrize(
    "cpu, rows", [("x86-64-v2", (13, 6, 3)), ("znver3", (14, 6, 4)), ("znver5", (30, 14, 9)), ("neoverse-n1", (28, 13, 8))]
)
def test_rows_of_register_tiles(cpu: str, rows: tuple[int, ...]) -> None:
    """Without a fused multiply-add the product takes a register: 4 x 3 spills, 6 x 2 just fits. NEON loads scalars in pairs."""
    found = machine(f"{X86} -mcpu={cpu}") if cpu == "x86-64-v2" else _of_core(cpu)
    assert tuple(found.tile_rows(vectors) for vectors in (1, 2, 3)) == rows


def _of_core(cpu: str) -> Machine:
    return machine(f"{_platform(cpu)} -mcpu={cpu}")


def test_an_unknown_core_is_a_slow_one_and_that_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    machine_of.cache_clear()
    with caplog.at_level(logging.WARNING):
        for cores in (1, 2):
            found = machine(f"{X86} -mcpu=barcelona -num-cores={cores}")
    assert found.core == "" and found.fma_per_cycle == 1.0
    assert sum("barcelona" in record.message for record in caplog.records) == 1
    assert machine(f"{X86} -mcpu=x86-64-v2").core == ""  # means any such CPU: nothing to warn of
    assert not any("x86-64" in record.message for record in caplog.records)


def test_a_step_waits_for_its_slowest_part() -> None:
    zen = machine(f"{X86} -mcpu=znver3")
    assert zen.step_cycles(multiply_adds=2, loads=2) == zen.fma_latency
    assert zen.step_cycles(multiply_adds=12, loads=8) == 6.0
    assert zen.step_cycles(multiply_adds=12, loads=15) == 7.5


def test_texts_without_caches_tell_models_of_a_cpu_from_other_cpus() -> None:
    small, large = (str(Target(f"{X86} -mcpu=znver3 -l3={size}/16").resolved()) for size in ("16M", "32M"))
    assert small != large and without_caches(small) == without_caches(large)
    assert without_caches(str(Target(f"{X86} -mcpu=znver2").resolved())) != without_caches(small)


@pytest.mark.parametrize("text", ["-l1d=0", "-l1d=32K", "-l2=512Q/8", "-l3=8M/0", "-l1d=-1/8", "-l1d=99999999999999999999G/1"])
def test_caches_that_are_none_are_refused(text: str) -> None:
    with pytest.raises(TargetError, match="takes the bytes and ways of a cache, such as 32K/8"):
        Target(f"llvm {text}")


def test_vectors_wider_than_the_registers_are_refused() -> None:
    with pytest.raises(TargetError, match=r"-vector-width=512, but the widest registers of znver3 have 256 bits"):
        _ = Target(f"{X86} -mcpu=znver3 -vector-width=512").vector_bits
