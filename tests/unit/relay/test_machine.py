"""The virtual machine by Relay's names."""

from __future__ import annotations

import numpy as np
import pytest

import tensorexpr as tvm
from tensorexpr import relay
from tensorexpr.errors import ArgumentError
from tensorexpr.runtime import profiler_vm
from tensorexpr.runtime.vm import VirtualMachine


def test_inputs_one_by_one_results_in_arrays_and_a_benchmark() -> None:
    a, b = (relay.var(name, shape=(3,)) for name in "ab")
    machine = VirtualMachine(relay.vm.compile(relay.Function((a, b), a - b), "llvm"), tvm.cpu())
    ones, out = np.ones(3, "float32"), tvm.nd.empty((3,))
    machine.set_one_input("main", "b", ones)
    machine.set_one_input("main", 0, 3 * ones)
    np.testing.assert_array_equal(machine.invoke("main").numpy(), 2 * ones)
    assert (machine.get_input_index("b"), machine.get_input_index("c")) == (1, -1)
    assert machine.benchmark(tvm.cpu(), number=1, repeat=2).mean > 0
    machine.invoke_with_outputs("main", {"a": 5 * ones, "b": ones}, [out])
    np.testing.assert_array_equal(out.numpy(), 4 * ones)
    with pytest.raises(ArgumentError, match="main has no parameter 'c'; it has a, b"):
        machine.set_one_input("main", "c", ones)
    with pytest.raises(ArgumentError, match="sets one argument; given are 1"):
        machine.set_one_input("main", "b")
    with pytest.raises(ArgumentError, match="main has 1 results, and there are 2 arrays"):
        machine.invoke_with_outputs("main", {"a": ones, "b": ones}, [out, out])


def test_a_machine_that_measures_each_call() -> None:
    a, b = (relay.var(name, shape=(3,)) for name in "ab")
    machine = profiler_vm.VirtualMachineProfiler(relay.vm.compile(relay.Function((a, b), a - b), "llvm"), tvm.cpu())
    ones = np.ones(3, "float32")
    assert "subtract" in str(machine.profile(3 * ones, ones, func_name="main"))
    assert "subtract" in str(machine.profile())
    np.testing.assert_array_equal(machine.invoke("main").numpy(), 2 * ones)
