"""The interpreter of Relay by its names: what evaluates functions of a module, and the values that it returns."""

from __future__ import annotations

from ...relax.ops.cells import RefValue
from ..build_module import Interpreter
from ..values import ConstructorValue

Executor = Interpreter

__all__ = ["ConstructorValue", "Executor", "Interpreter", "RefValue"]
