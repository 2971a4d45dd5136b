"""Programs of PyTorch become graphs."""

from ....frontend.torch import dynamo_capture_subgraphs, from_exported_program, from_fx, relax_dynamo

__all__ = ["dynamo_capture_subgraphs", "from_exported_program", "from_fx", "relax_dynamo"]
