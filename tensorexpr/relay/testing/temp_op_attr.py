"""An attribute of an operator for a while."""

from __future__ import annotations

from types import TracebackType
from typing import Any

from ...tir.op_registry import Op


class TempOpAttr:
    """A context in which an operator has an attribute: `with TempOpAttr("nn.conv2d", "FTVMAlterOpLayout", f): ...`.

    Args:
        op_name: the operator.
        attr_key: the attribute, such as "FTVMLegalize" or "TOpPattern".
        attr_value: what it is in the context; behind it, it is what it was.
    """

    def __init__(self, op_name: str, attr_key: str, attr_value: Any) -> None:
        self._op, self._key, self._value = Op.of(op_name), attr_key, attr_value
        self._before: Any = None

    def __enter__(self) -> TempOpAttr:
        self._before = self._op.get_attr(self._key)
        self._op.set_attr(self._key, self._value)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._before is None:
            self._op.reset_attr(self._key)
        else:
            self._op.set_attr(self._key, self._before)
