"""The backend of `torch.compile`, by the path that programs import it by."""

from ....frontend.torch import dynamo_capture_subgraphs, relax_dynamo

__all__ = ["dynamo_capture_subgraphs", "relax_dynamo"]
