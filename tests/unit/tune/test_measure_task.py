"""What can be measured, and what is refused at the door."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tensorexpr import te
from tensorexpr.errors import TargetError, TuningError
from tensorexpr.target import Target
from tensorexpr.te.identity import dag_key
from tensorexpr.te.serialize import dag_from_json
from tensorexpr.tune.measure import MeasureTask

from .programs import elementwise, matmul

A, C = elementwise(8)
N = te.var("n")
SYMBOLIC = te.placeholder((N,), name="S")


def test_what_travels_is_the_same_computation() -> None:
    args = matmul(16)
    data = MeasureTask(args, Target("llvm")).to_json()
    assert dag_key(dag_from_json(data["dag"])) == dag_key(args)
    assert data["target"] == str(Target("llvm").resolved())


@pytest.mark.parametrize(
    ("args", "inputs", "message"),
    [
        ((A, 3), {}, "measured on tensors; argument 3 is a int"),
        ((A,), {}, "no argument is a computed tensor"),
        ((SYMBOLIC, te.compute((N,), lambda i: SYMBOLIC[i], name="D")), {}, "S has symbolic extents: n"),
        ((A, C), {C: np.zeros(8, np.float32)}, "no placeholder among the arguments"),
        ((A, C), {A: np.zeros(8)}, "the array given for A is float64[8]; it needs float32[8]"),
        ((A, C), {A: np.zeros(9, np.float32)}, "is float32[9]; it needs float32[8]"),
    ],
)
def test_what_can_not_be_measured_is_refused(args: Any, inputs: Any, message: str) -> None:
    with pytest.raises(TuningError) as caught:
        MeasureTask(args, Target("llvm"), inputs)
    assert message in str(caught.value)


def test_another_machine_is_refused() -> None:
    arch = "aarch64" if Target("llvm").arch == "x86_64" else "x86_64"
    with pytest.raises(TargetError, match="can't run on this"):
        MeasureTask((A, C), Target(f"llvm -mtriple={arch}-unknown-linux-gnu -mcpu=generic"))
