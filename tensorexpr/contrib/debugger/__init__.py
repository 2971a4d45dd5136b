"""Executors that tell what each call took."""

from ...later import later

__getattr__, __dir__ = later(__name__, {}, submodules="debug_executor debug_runtime")
