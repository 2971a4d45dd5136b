"""Models of ONNX become graphs."""

from ...frontend.onnx.importer import from_onnx

__all__ = ["from_onnx"]
