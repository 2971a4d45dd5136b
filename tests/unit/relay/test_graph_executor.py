"""The graph executor by the names of a module's functions."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest

import tensorexpr as tvm
from tensorexpr import relay
from tensorexpr.contrib import graph_executor


def test_functions_by_name_as_of_a_module() -> None:
    """`module.module["run"]`, `lib["default"](dev)["set_input"]`: one executor behind both, timed by its "run"."""
    x = relay.var("x", shape=(2,))
    lib = relay.build(tvm.IRModule.from_expr(relay.Function((x,), x + relay.const(1.0))), "llvm")
    made = graph_executor.GraphModule(lib["default"](tvm.cpu()))
    made.module["set_input"]("x", np.ones(2, "float32"))
    made.module["run"]()
    assert made.get_output(0).numpy().tolist() == made.module["get_output"](0).numpy().tolist() == [2, 2]
    assert len(made.module.time_evaluator("run", tvm.cpu(), number=1, repeat=3)().results) == 3
    alone = lib["default"](tvm.cpu())
    alone["set_input"](0, np.full(2, 5, "float32"))
    alone["run"]()
    assert alone["get_output"](0).numpy().tolist() == [6, 6] and alone["get_num_inputs"]() == 1
    with pytest.raises(tvm.TVMError, match="the executable has no function 'walk'; it has main"):
        alone["walk"]


def test_an_executor_goes_with_its_last_user() -> None:
    """It holds a network's arrays, which would stay until Python looks for cycles."""
    x = relay.var("x", shape=(2,))
    lib = relay.build(tvm.IRModule.from_expr(relay.Function((x,), x + relay.const(1.0))), "llvm")
    made = graph_executor.GraphModule(lib["default"](tvm.cpu()))
    gone, machine = weakref.ref(made), made.module
    gc.disable()
    try:
        del made
        assert gone() is None
    finally:
        gc.enable()
    with pytest.raises(tvm.TVMError, match="'run' is of a GraphModule that is gone"):
        machine["run"]()


@pytest.mark.parametrize("kind", ["debug", "graph"])
def test_values_that_a_function_is_shown(kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    seen: list[int] = []
    x = relay.var("x", shape=(), dtype="int32")
    func = relay.Function((x,), relay.op.debug(relay.op.debug(x + x * x, lambda value: seen.append(int(value.numpy())))) + relay.const(1))
    run = relay.create_executor(kind, mod=tvm.IRModule.from_expr(func), target="llvm").evaluate()
    assert int(run(np.int32(2)).numpy()) == 7 and int(run(np.int32(3)).numpy()) == 13 and seen == [6, 12]
    assert "6" in capsys.readouterr().out
    with pytest.raises(tvm.TVMError, match="debug shows values of known types"):
        relay.op.debug(relay.var("y"))


def test_a_misspelt_input_is_said(caplog: pytest.LogCaptureFixture) -> None:
    """Names of parameters that are constants are let go; where an input is zeros, as nobody set it, that is said."""
    x = relay.var("x", shape=(2,))
    lib = relay.build(tvm.IRModule.from_expr(relay.Function((x,), x + relay.const(1.0))), "llvm")
    made = graph_executor.GraphModule(lib["default"](tvm.cpu()))
    made.run(x=np.ones(2, "float32"), w=np.ones(2, "float32"))
    assert not caplog.text
    made = graph_executor.GraphModule(lib["default"](tvm.cpu()))
    made.run(data=np.ones(2, "float32"))
    assert made.get_output(0).numpy().tolist() == [1, 1]
    assert "no inputs data, which were set; x were not, and are zeros. The network has x" in caplog.text
