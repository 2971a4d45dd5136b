"""The worker that turns tensor functions into machine code: `python -m tensorexpr.relax.kernel_worker`.

A "target" frame holds what all kernels share. Each "kernel" frame holds a computation; the answer is "built" with what
`BuiltKernel.to_parts` says, or "failed".
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from typing import Any

from ..errors import DeclarationError
from ..lower.plain_context import context_from_json
from ..schedule.trace import Trace
from ..target import Target
from ..te.operation import PlaceholderOp
from ..te.serialize import dag_from_json
from ..tune.measure.child import connect, parse_arguments, serve
from ..tune.measure.protocol import Frame
from .kernel_schedules import built_kernel
from .regions import regions_from_json, stated_regions
from .tensor_function import function_of_tensors


class KernelService:
    """Builds the kernels of one target, in one PassContext."""

    def __init__(self) -> None:
        self._shared: Mapping[str, Any] = {}

    def target(self, frame: Frame) -> Frame:
        """Take what all kernels share."""
        self._shared = frame.header
        return Frame({"type": "ready"})

    def kernel(self, frame: Frame) -> Frame:
        """Build one."""
        target, context = Target(self._shared["target"]), context_from_json(self._shared["context"])
        tensors = dag_from_json(json.loads(frame.blobs[0]))
        inputs = [tensor for tensor in tensors if isinstance(tensor.op, PlaceholderOp)]
        # Arguments go by place, and those of the builder's calls are in this order.
        if tensors[: len(inputs)] != tuple(inputs):
            raise DeclarationError(f"{frame.header['symbol']}: inputs stand behind results, which the builder does itself")
        func = function_of_tensors(inputs, tensors[len(inputs) :])
        regions = regions_from_json(frame.header["regions"])
        func = stated_regions(func, regions) if regions else func
        steps = frame.header["recorded"]
        with context:
            recorded = None if steps is None else Trace.from_json(steps)
            made = built_kernel(func, frame.header["symbol"], target, frame.header["constants"], recorded)
        said, blobs = made.to_parts()
        return Frame({"type": "built", "kernel": said}, blobs)


def main() -> int:
    """Serve until the builder closes the pipe."""
    channel = connect(parse_arguments())
    service = KernelService()
    serve(channel, {"target": service.target, "kernel": service.kernel})
    return 0


if __name__ == "__main__":
    sys.exit(main())
