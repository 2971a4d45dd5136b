"""The description beside a saved library: what it holds, for which machine, and the hash of its bytes.

JSON only. It is read strictly, and before the library is loaded: loading runs code.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from ..codegen.signature import BufferParam, Param, ScalarParam, Signature
from ..errors import TensorExprError
from ..target import Target
from ..tir.dtype import parse_dtype
from ..tir.expr import Add, BinaryExpr, Cast, Div, FloorDiv, FloorMod, IntImm, Max, Min, Mod, Mul, PrimExpr, Sub, Var
from .code import CompiledCode

# Raised when the packed entries or the meaning of a signature change.
FORMAT = 1
_MAX_BYTES = 1 << 20
_OPERATORS = {cls.__name__: cls for cls in (Add, Sub, Mul, Div, Mod, FloorDiv, FloorMod, Min, Max)}
_T = TypeVar("_T")


class SidecarError(TensorExprError):
    """A library whose description is missing, torn, of another version, or of other bytes."""


@dataclass(frozen=True)
class Description:
    """What a sidecar says."""

    target: Target
    signatures: Mapping[str, Signature]


def write(code: CompiledCode, data: bytes) -> str:
    """The description of a library of these bytes, as JSON text."""
    functions = [_Writer().signature(signature) for signature in code.signatures.values()]
    target = code.target.resolved().export()
    described = {
        "format": FORMAT,
        "sha256": _digest(data),
        "target": target,
        "features": sorted(code.target.features),
        "functions": functions,
    }
    return json.dumps(described, indent=1)


def read(text: bytes, data: bytes) -> Description:
    """The description, if it is one of these bytes.

    Raises:
        SidecarError: if it is not, or is torn.
        TargetError: if it is for a target that is not known here.
    """
    if len(text) > _MAX_BYTES:
        raise SidecarError(f"the description is {len(text)} bytes long; at most {_MAX_BYTES} are read")
    try:
        described = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise SidecarError(f"the description is no JSON: {error}") from None
    version = _field(described, "format", int)
    if version != FORMAT:
        raise SidecarError(f"the description has format {version}, this version of tensorexpr reads {FORMAT}; export the library again")
    if not hmac.compare_digest(_field(described, "sha256", str).encode(), _digest(data).encode()):
        raise SidecarError("the library's bytes are not those that its description was written for; export it again")
    functions = [_Reader().signature(entry) for entry in _field(described, "functions", list)]
    return Description(Target(_field(described, "target", dict)), {signature.name: signature for signature in functions})


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _field(record: Any, name: str, kind: type[_T]) -> _T:
    value = record.get(name) if isinstance(record, dict) else None
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise SidecarError(f"the description lacks {name!r} as a {kind.__name__}")
    return value


class _Writer:
    """Writes one signature; variables become numbers, so that two of one name stay two."""

    def __init__(self) -> None:
        self._variables: dict[Var, int] = {}

    def signature(self, signature: Signature) -> dict[str, Any]:
        params = [self._param(param) for param in signature.params]
        symbols = [self._expr(var) for var in signature.symbols]
        variables = [{"name": var.name, "dtype": var.dtype} for var in self._variables]
        errors = list(signature.errors)
        return {"name": signature.name, "variables": variables, "params": params, "symbols": symbols, "errors": errors}

    def _param(self, param: Param) -> dict[str, Any]:
        if isinstance(param, ScalarParam):
            return {"name": param.name, "dtype": param.dtype, "var": self._expr(param.var)}
        return {
            "name": param.name,
            "dtype": param.dtype,
            "shape": [self._expr(extent) for extent in param.shape],
            "strides": [self._expr(stride) for stride in param.strides],
            "elem_offset": self._expr(param.elem_offset),
            "alignment": param.alignment,
            "is_read": param.is_read,
            "is_written": param.is_written,
        }

    def _expr(self, expr: PrimExpr) -> Any:
        match expr:
            case IntImm():
                return {"int": expr.value, "dtype": expr.dtype}
            case Var():
                return {"var": self._variables.setdefault(expr, len(self._variables))}
            case Cast():
                return {"cast": expr.dtype, "value": self._expr(expr.value)}
            case BinaryExpr() if type(expr).__name__ in _OPERATORS:
                return {"op": type(expr).__name__, "a": self._expr(expr.a), "b": self._expr(expr.b)}
        raise SidecarError(f"the extent {expr} can't be written into a library's description")


class _Reader:
    """Reads one signature, trusting nothing."""

    def __init__(self) -> None:
        self._variables: list[Var] = []

    def signature(self, record: Any) -> Signature:
        self._variables = [Var(_field(entry, "name", str), self._dtype(entry)) for entry in _field(record, "variables", list)]
        params = tuple(self._param(entry) for entry in _field(record, "params", list))
        symbols = tuple(self._var(entry) for entry in _field(record, "symbols", list))
        errors = tuple(str(message) for message in _field(record, "errors", list))
        return Signature(_field(record, "name", str), params, symbols, errors)

    def _param(self, record: Any) -> Param:
        name, dtype = _field(record, "name", str), self._dtype(record)
        if "var" in record:
            return ScalarParam(name, dtype, self._var(record["var"]))
        shape, strides = (tuple(self._expr(entry) for entry in _field(record, key, list)) for key in ("shape", "strides"))
        flags = (_field(record, "is_read", bool), _field(record, "is_written", bool))
        return BufferParam(name, dtype, shape, strides, self._expr(record.get("elem_offset")), self._alignment(record), *flags)

    def _alignment(self, record: Any) -> int:
        alignment = _field(record, "alignment", int)
        if alignment < 1 or alignment & (alignment - 1):
            raise SidecarError(f"the description has the alignment {alignment}, which is no power of two")
        return alignment

    def _dtype(self, record: Any) -> str:
        dtype = _field(record, "dtype", str)
        parse_dtype(dtype)
        return dtype

    def _var(self, record: Any) -> Var:
        expr = self._expr(record)
        if not isinstance(expr, Var):
            raise SidecarError(f"the description has {record!r} where a variable is needed")
        return expr

    def _expr(self, record: Any) -> PrimExpr:
        match record:
            case {"int": int(value), "dtype": str(dtype)}:
                return IntImm(dtype, value)
            case {"var": int(number)} if 0 <= number < len(self._variables):
                return self._variables[number]
            case {"cast": str(dtype), "value": value}:
                return Cast(dtype, self._expr(value))
            case {"op": str(name), "a": left, "b": right} if name in _OPERATORS:
                return _OPERATORS[name](self._expr(left), self._expr(right))
        raise SidecarError(f"the description has {str(record)[:60]!r} where an expression is needed")
