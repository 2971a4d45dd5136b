"""Constants that a library is exported without."""

from __future__ import annotations

import gc
from pathlib import Path

import numpy as np
import pytest

import tensorexpr as tvm
from tensorexpr import relax, relay
from tensorexpr.errors import ArgumentError, RecordError, TensorExprError


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, np.ndarray, np.ndarray]:
    """A library without its two large constants, the file of these, and they themselves."""
    folder = tmp_path_factory.mktemp("late")
    summand, weight = (np.random.default_rng(n).standard_normal((20, 20), "float32") for n in range(2))
    x = relay.var("x", shape=(20, 20))
    body = relay.nn.dense(x + relay.const(summand), relay.const(weight)) * relay.const(np.array([2], "float32"))
    executable = relay.vm.compile(relay.Function((x,), body), "llvm")
    executable.move_late_bound_consts(folder / "constants", byte_limit=256)
    executable.mod.export_library(folder / "net.so")
    return folder / "net.so", folder / "constants", summand, weight


def _checked(executable: relax.Executable, summand: np.ndarray, weight: np.ndarray) -> None:
    x = np.random.default_rng(2).standard_normal((20, 20), "float32")
    found = relay.vm.VirtualMachine(executable, tvm.cpu()).invoke("main", x)
    np.testing.assert_allclose(found.numpy(), (x + summand) @ weight.T * 2, rtol=1e-4, atol=1e-4)


def test_they_are_loaded_from_their_file(exported: tuple[Path, Path, np.ndarray, np.ndarray]) -> None:
    library, constants, *arrays = exported
    loaded = tvm.runtime.load_module(str(library))
    with pytest.raises(ArgumentError, match="exported without const_0, const_1: load_late_bound_consts"):
        relax.VirtualMachine(loaded, tvm.cpu())["main"]
    loaded["load_late_bound_consts"](str(constants))
    _checked(loaded, *arrays)
    with pytest.raises(TensorExprError, match="lacks weights that are kept apart"):
        tvm.runtime.load(str(library))
    with pytest.raises(RecordError):
        loaded.load_late_bound_consts(library)


def test_they_are_set_from_arrays(exported: tuple[Path, Path, np.ndarray, np.ndarray]) -> None:
    library, constants, *arrays = exported
    given = relay.load_param_dict(constants.read_bytes())
    named = tvm.runtime.vm.Executable(tvm.runtime.load_module(str(library)))
    with pytest.raises(ArgumentError, match="'const_9' is no constant that was kept apart; those are const_0, const_1"):
        named.load_late_bound_consts_from_map({**given, "const_9": given["const_0"]})
    with pytest.raises(ArgumentError, match=r"const_1 is float32 of shape \(20, .*, not float32 of \(1,\)"):
        named.load_late_bound_consts_from_map({**given, "const_1": np.zeros(1, "float32")})
    assert named.missing == {"const_0", "const_1"}  # neither call set one of them
    named["load_late_bound_consts_from_map"](given)
    _checked(named, *arrays)


def test_small_ones_stay_in_the_library(tmp_path: Path) -> None:
    x = relay.var("x", shape=(1,))
    executable = relay.vm.compile(relay.Function((x,), x + relay.const(np.array([3], "float32"))), "llvm")
    assert executable.get_late_bound_consts(byte_limit=5) == {}
    executable.export_library(tmp_path / "net.so")
    loaded = tvm.runtime.load_module(str(tmp_path / "net.so"))
    loaded["load_late_bound_consts_from_map"]({})
    assert relax.VirtualMachine(loaded, tvm.cpu())["main"](np.array([4], "float32")).numpy() == 7


def test_a_library_may_be_loaded_twice(tmp_path: Path) -> None:
    """The system loads a file once, and its tables of constants with it: those of the first were used when they were gone."""
    x, weight = relay.var("x", shape=(1, 64)), np.random.default_rng(0).standard_normal((2048, 64), "float32")
    path = tmp_path / "net.so"
    relay.vm.compile(relay.Function((x,), relay.nn.dense(x, relay.const(weight))), "llvm").export_library(path)
    machine = relax.VirtualMachine(tvm.runtime.load_module(str(path)), tvm.cpu())
    given = np.ones((1, 64), "float32")
    expected = machine["main"](given).numpy()
    for _ in range(2):
        for other in (relax.VirtualMachine(tvm.runtime.load_module(str(path)), tvm.cpu())["main"], tvm.runtime.load(path)):
            other(given)
        del other
        gc.collect()
        np.testing.assert_array_equal(machine["main"](given).numpy(), expected)


def test_libraries_of_one_file_have_constants_of_their_own(exported: tuple[Path, Path, np.ndarray, np.ndarray]) -> None:
    library, constants, summand, weight = exported
    given = relay.load_param_dict(constants.read_bytes())
    first, second = (tvm.runtime.load_module(str(library)) for _ in range(2))
    first.load_late_bound_consts_from_map(given)
    second.load_late_bound_consts_from_map({**given, "const_0": np.zeros((20, 20), "float32")})
    _checked(second, np.zeros_like(summand), weight)
    _checked(first, summand, weight)
