"""Networks with random weights, for tests and measurements."""

from .networks import bert_layer, resnet50

__all__ = ["bert_layer", "resnet50"]
