"""OpenVINO: networks, compiled by its CPU plugin for the least latency."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ....target import Target
from ....workloads import Case
from .base import Array, Call, Peer, Unsupported


class OpenVino(Peer):
    """OpenVINO's CPU plugin in float32."""

    name = "openvino"

    def __init__(self, target: Target) -> None:
        super().__init__(target)
        import openvino

        self._core: Any = openvino.Core()
        self.version = str(openvino.__version__).split("-")[0]

    def prepare(self, case: Case, arrays: Sequence[Array]) -> Call:
        """See `Peer.prepare`."""
        raise Unsupported("measured for networks")

    def network(self, model: Any, feeds: Mapping[str, Array]) -> Call:
        """See `Peer.network`."""
        read = self._core.read_model(model.SerializeToString(), b"")
        read.reshape({place: list(one.shape) for place, one in enumerate(feeds.values())})
        # By default it computes in bfloat16 where the CPU has products of these; all others here compute in float32.
        how = {"PERFORMANCE_HINT": "LATENCY", "NUM_STREAMS": 1, "INFERENCE_NUM_THREADS": self.threads, "INFERENCE_PRECISION_HINT": "f32"}
        request, given = self._core.compile_model(read, "CPU", how).create_infer_request(), list(feeds.values())
        return lambda: next(iter(request.infer(given).values()))
