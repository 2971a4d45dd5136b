"""The description beside a saved library: what it holds, for which machine, and the hash of its bytes.

JSON only. It is read strictly, and before the library is loaded: loading runs code.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Mapping
from typing import Any, TypeVar

from ..codegen.signature import BufferParam, Param, ScalarParam, Signature
from ..dataclass import dataclass
from ..errors import RecordError, TensorExprError, TypeMismatchError
from ..target import Target
from ..tir.dtype import parse_dtype
from ..tir.expr import Var
from ..tir.serialize import ExprReader, ExprWriter
from .code import CompiledCode

# Raised when the packed entries or the meaning of a signature change.
FORMAT = 1
_MAX_BYTES = 1 << 20
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
    functions = [_Writer(signature).record() for signature in code.signatures.values()]
    described = {"format": FORMAT, "sha256": _digest(data), "target": code.target.resolved().export(), "functions": functions}
    return json.dumps(described, indent=1)


def read(text: bytes, data: bytes) -> Description:
    """The description, if it is one of these bytes.

    Raises:
        SidecarError: if it is not, or is torn.
        TargetError: if it is for a target that is not known here.
    """
    # Before it is parsed, as that takes memory many times its length.
    if len(text) > _MAX_BYTES:
        raise SidecarError(f"the description is {len(text)} bytes long; at most {_MAX_BYTES} are read")
    try:
        described = json.loads(text)
    except (ValueError, RecursionError) as error:
        # Deep nesting ends the parser with RecursionError, not ValueError.
        raise SidecarError(f"the description is no JSON: {error}") from None
    # Before any other field, whose meaning depends on it.
    version = _field(described, "format", int)
    if version != FORMAT:
        raise SidecarError(f"the description has format {version}, this version of tensorexpr reads {FORMAT}; export the library again")
    if not hmac.compare_digest(_field(described, "sha256", str).encode(), _digest(data).encode()):
        raise SidecarError("the library's bytes are not those that its description was written for; export it again")
    try:
        # After the hash, so that what does not belong to these bytes is not interpreted.
        functions = [_Reader(entry).signature() for entry in _field(described, "functions", list)]
    except (RecordError, TypeMismatchError) as error:
        raise SidecarError(f"the description does not describe functions: {error}") from None
    return Description(Target(_field(described, "target", dict)), {signature.name: signature for signature in functions})


def signatures_to_json(signatures: Mapping[str, Signature]) -> Any:
    """Signatures by name as JSON values."""
    return [[name, _Writer(signature).record()] for name, signature in signatures.items()]


def signatures_from_json(records: Any) -> dict[str, Signature]:
    """The signatures of what `signatures_to_json` made.

    Raises:
        SidecarError, RecordError, TypeMismatchError: for anything else.
    """
    if not isinstance(records, list) or any(not isinstance(entry, list) or len(entry) != 2 for entry in records):
        raise SidecarError("the description lists functions as pairs of a name and a signature")
    return {str(name): _Reader(record).signature() for name, record in records}


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _field(record: Any, name: str, kind: type[_T]) -> _T:
    value = record.get(name) if isinstance(record, dict) else None
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):  # True is an int to Python
        raise SidecarError(f"the description lacks {name!r} as a {kind.__name__}")
    return value


class _Writer:
    """Writes one signature; variables are named by number, so that two of one name stay two."""

    def __init__(self, signature: Signature) -> None:
        self._signature = signature
        self._names = {var: f"v{index}" for index, var in enumerate(_variables(signature))}
        self._exprs = ExprWriter(variables=self._names)

    def record(self) -> dict[str, Any]:
        """The signature as JSON values."""
        signature = self._signature
        params = [self._param(param) for param in signature.params]
        return {
            "name": signature.name,
            "variables": {name: {"name": var.name, "dtype": var.dtype} for var, name in self._names.items()},
            "params": params,
            "symbols": [self._names[var] for var in signature.symbols],
            "errors": list(signature.errors),
            "rows": self._exprs.rows,
            **({"returns": signature.returns} if signature.returns else {}),
        }

    def _param(self, param: Param) -> dict[str, Any]:
        if isinstance(param, ScalarParam):
            return {"name": param.name, "dtype": param.dtype, "var": self._names[param.var]}
        return {
            "name": param.name,
            "dtype": param.dtype,
            "shape": [self._exprs.expr(extent) for extent in param.shape],
            "strides": [self._exprs.expr(stride) for stride in param.strides],
            "elem_offset": self._exprs.expr(param.elem_offset),
            "alignment": param.alignment,
            "is_read": param.is_read,
            "is_written": param.is_written,
            "broadcasts": param.broadcasts,
        }


def _variables(signature: Signature) -> list[Var]:
    scalars = [param.var for param in signature.params if isinstance(param, ScalarParam)]
    # A scalar parameter may be a symbol of shapes as well; it is written once.
    return list(dict.fromkeys((*signature.symbols, *scalars)))


class _Reader:
    """Reads one signature, trusting nothing."""

    def __init__(self, record: Any) -> None:
        self._record = record
        variables = _field(record, "variables", dict)
        self._variables = {str(key): Var(_field(entry, "name", str), self._dtype(entry)) for key, entry in variables.items()}
        self._exprs = ExprReader(_field(record, "rows", list), variables=self._variables)

    def signature(self) -> Signature:
        """The signature that was written."""
        params = tuple(self._param(entry) for entry in _field(self._record, "params", list))
        symbols = tuple(self._var(entry) for entry in _field(self._record, "symbols", list))
        errors = tuple(str(message) for message in _field(self._record, "errors", list))
        returns = _field(self._record, "returns", str) if "returns" in self._record else None
        # The caller allocates the last parameter for the result and reads it back as this dtype.
        if returns is not None and not (
            params and isinstance(params[-1], BufferParam) and params[-1].dtype == returns and params[-1].is_written
        ):
            raise SidecarError(f"the description says that a function returns {returns[:20]!r}, which its last parameter does not take")
        return Signature(_field(self._record, "name", str), params, symbols, errors, returns)

    def _param(self, record: Any) -> Param:
        name, dtype = _field(record, "name", str), self._dtype(record)
        if "var" in record:
            return ScalarParam(name, dtype, self._var(record["var"]))
        shape, strides = (tuple(self._exprs.expr(entry) for entry in _field(record, key, list)) for key in ("shape", "strides"))
        flags = (_field(record, "is_read", bool), _field(record, "is_written", bool), _field(record, "broadcasts", bool))
        offset = self._exprs.expr(_field(record, "elem_offset", int))
        return BufferParam(name, dtype, shape, strides, offset, self._alignment(record), *flags)

    def _alignment(self, record: Any) -> int:
        alignment = _field(record, "alignment", int)
        # The native check masks addresses with alignment - 1, which is right for powers of two only.
        if alignment < 1 or alignment & (alignment - 1):
            raise SidecarError(f"the description has the alignment {alignment}, which is no power of two")
        return alignment

    def _dtype(self, record: Any) -> str:
        dtype = _field(record, "dtype", str)
        parse_dtype(dtype)  # raises for what is none
        return dtype

    def _var(self, name: Any) -> Var:
        if not isinstance(name, str) or name not in self._variables:
            raise SidecarError(f"the description has {str(name)[:60]!r} where a variable is needed")
        return self._variables[name]
