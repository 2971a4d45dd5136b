"""`te.hybrid`: tensors that functions in Python's syntax compute. What is here lives in `tensorexpr.script.hybrid`, a higher row."""

from ...later import later

__all__ = ["HybridModule", "build", "parse", "script", "source_to_op"]

__getattr__, __dir__ = later(__name__, {"tensorexpr.script.hybrid": " ".join(__all__)})
