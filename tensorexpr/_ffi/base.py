"""The error that programs of TVM catch, where they import it from."""

from ..error import TVMError

__all__ = ["TVMError"]
