"""Computations as strict JSON: what a tuning record needs to know its workload by, and other processes to rebuild it.

    {"version": 1, "symbols": [["SizeVar", "n", "int32"]],
     "ops": [{"kind": "placeholder", "name": "A", "dtype": "float32", "rows": [...], "shape": [0, 1]},
             {"kind": "compute", "name": "B", "tag": "", "attrs": {}, "rows": [...], "axis": [2, 5], "body": [9]}],
     "outputs": [[1, 0]]}

Computes over slices have `call` (see `serialize_call`) in place of `body`. Rows are those of `tir.serialize`; a tensor is
[operation, output]. Reading checks everything that declaring checks, and raises `RecordError` for anything else.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from ..errors import DeclarationError, RecordError, TypeMismatchError
from ..tir.attrs import FrozenMap
from ..tir.dtype import parse_dtype
from ..tir.expr import IntImm, PrimExpr, SizeVar, Var
from ..tir.serialize import ExprReader, ExprWriter, Limits
from .checked import check_compute, check_only, check_spatial, checked_compute, checked_extent, free_variables
from .dag import post_dfs_order
from .definition import tensor_compute
from .extern import ExternOp
from .operation import ComputeOp, Operation, PlaceholderOp
from .recurrence import scan_of
from .scan_op import ScanOp
from .serialize_call import read_call, write_call
from .serialize_extern import extern_of, extern_symbols, read_extern, write_extern
from .tensor import Tensor
from .tensor_compute import TensorComputeOp

JSON = Any
VERSION = 1
MAX_CHARACTERS = 1 << 20  # logs come from elsewhere, and reading one must end
MAX_OPERATIONS = 4096
_LIMITS = Limits(rows=50_000, tree=200_000, depth=2_000)
_NAME = 256


def dag_to_json(tensors: Sequence[Tensor]) -> JSON:
    """The computation of `tensors` as JSON values.

    Raises:
        RecordError: for attributes that JSON has no place for.
    """
    ops = post_dfs_order([tensor.op for tensor in tensors])
    numbers = {op: number for number, op in enumerate(ops)}
    symbols = _free_variables(ops)
    names = {var: f"s{i}" for i, var in enumerate(symbols)}
    return {
        "version": VERSION,
        "symbols": [[type(var).__name__, var.name, var.dtype] for var in symbols],
        "ops": [_write_op(op, numbers, names) for op in ops],
        "outputs": [_reference(tensor, numbers) for tensor in tensors],
    }


def dumps(tensors: Sequence[Tensor]) -> str:
    """The computation of `tensors` as one line of JSON."""
    return json.dumps(dag_to_json(tensors), separators=(",", ":"), allow_nan=False)


def _reference(tensor: Any, numbers: Mapping[Operation, int]) -> JSON:
    if not isinstance(tensor, Tensor) or tensor.op not in numbers:
        raise RecordError(f"{tensor} is no tensor of the computation")
    return [numbers[tensor.op], tensor.value_index]


def _free_variables(ops: Sequence[Operation]) -> list[Var]:
    """The symbolic sizes and scalars, in order of first appearance."""
    found: dict[Var, None] = {}
    for op in ops:
        # the first output's shape is that of all: they have the same axes
        roots = [*op.output_shape(0), *(part for axis in op.reduce_axis if axis.dom for part in (axis.dom.min, axis.dom.extent))]
        bound = {axis.var for axis in (*op.axis, *op.reduce_axis)}
        if isinstance(op, ComputeOp):
            roots += op.body
        for root in roots:
            found |= dict.fromkeys(var for var in free_variables(root) if var not in bound)
        if isinstance(op, ExternOp):
            found |= dict.fromkeys(extern_symbols(op))
    return list(found)


def _definition(op: ComputeOp, writer: ExprWriter, numbers: Mapping[Operation, int]) -> JSON:
    """The bodies of a compute, or the intrinsic's call of one over slices."""
    if isinstance(op, TensorComputeOp):
        return {"call": write_call(op, writer, lambda tensor: _reference(tensor, numbers))}
    return {"body": [writer.expr(body) for body in op.body]}


def _write_op(op: Operation, numbers: Mapping[Operation, int], names: Mapping[Var, str]) -> JSON:
    writer = ExprWriter(names, lambda tensor: _reference(tensor, numbers))
    match op:
        case PlaceholderOp(name=name, dtype=dtype, shape=shape):
            return {"kind": "placeholder", "name": name, "dtype": dtype, "shape": [writer.expr(e) for e in shape], "rows": writer.rows}
        case ComputeOp(name=name, tag=tag, attrs=attrs):
            return {
                "kind": "tensor_compute" if isinstance(op, TensorComputeOp) else "compute",
                "name": name,
                "tag": tag,
                "attrs": {key: _write_attr(name, key, value, numbers) for key, value in attrs.items()},
                "axis": [writer.axis(axis) for axis in op.axis],
                **_definition(op, writer, numbers),
                "rows": writer.rows,
            }
        case ExternOp(name=name, tag=tag, attrs=attrs):
            written = {key: _write_attr(name, key, value, numbers) for key, value in attrs.items()}
            inputs = [_reference(tensor, numbers) for tensor in op.inputs]
            return {"kind": "extern", "name": name, "tag": tag, "attrs": written, "inputs": inputs, **write_extern(op, names)}
        case ScanOp(name=name, tag=tag, attrs=attrs):
            written = {key: _write_attr(name, key, value, numbers) for key, value in attrs.items()}
            parts = {"init": op.init, "update": op.update, "state": op.state_placeholder, "inputs": _known(op.inputs, numbers)}
            listed = {key: [_reference(tensor, numbers) for tensor in part] for key, part in parts.items()}
            return {"kind": "scan", "name": name, "tag": tag, "attrs": written, **listed}
    raise RecordError(f"operation {op.name} ({type(op).__name__}) has no JSON form")


def _known(tensors: Sequence[Tensor], numbers: Mapping[Operation, int]) -> tuple[Tensor, ...]:
    """Those of the graph: the inputs that a scan lists need not be read."""
    return tuple(tensor for tensor in tensors if tensor.op in numbers)


def _write_attr(name: str, key: str, value: Any, numbers: Mapping[Operation, int]) -> JSON:
    match value:
        case None | bool() | int() | str():
            return value
        # an infinity or NaN minus itself is NaN: strict JSON has no place for either
        case float() if value - value == 0:
            return value
        case IntImm(value=number):
            return number
        case tuple() | list():
            return [_write_attr(name, key, item, numbers) for item in value]
        case Tensor():
            return {"tensor": _reference(value, numbers)}
    raise RecordError(f"attribute {key} of {name} is {value!r}; JSON has a place for numbers, strings, tensors and lists of them")


def loads(text: str) -> tuple[Tensor, ...]:
    """The tensors of a line that `dumps` made.

    Raises:
        RecordError: for anything else.
    """
    if not isinstance(text, str) or len(text) > MAX_CHARACTERS:
        raise RecordError(f"a computation is a string of at most {MAX_CHARACTERS} characters")
    return dag_from_json(strict_json(text, "computation"))


def strict_json(text: str, what: str) -> Any:
    """The JSON value of a text, without the constants (NaN, Infinity) that only Python writes; `what` begins the message of an error.

    Raises:
        RecordError: for anything else.
    """

    def refuse(name: str) -> None:
        raise RecordError(f"{name} is no JSON number")

    try:
        return json.loads(text, parse_constant=refuse)
    # it is a ValueError too, and says more than "no JSON"
    except RecordError:
        raise
    except (ValueError, RecursionError) as error:
        raise RecordError(f"the {what} is no JSON: {type(error).__name__}") from error


def dag_from_json(data: JSON) -> tuple[Tensor, ...]:
    """The tensors of JSON values that `dag_to_json` made.

    Raises:
        RecordError: for anything else.
    """
    fields = _fields(data, "a computation", ("version", "symbols", "ops", "outputs"))
    if fields["version"] != VERSION:
        raise RecordError(f"the computation has version {fields['version']!r}; this program reads {VERSION}")
    symbols = {f"s{i}": _read_symbol(item) for i, item in enumerate(_items(fields["symbols"], "symbols"))}
    ops: list[Operation] = []
    for item in _items(fields["ops"], "operations"):
        try:
            ops.append(_read_op(item, ops, symbols))
        # an illegal definition in a record is the record's fault, not the caller's
        except (DeclarationError, TypeMismatchError) as error:
            raise RecordError(f"operation {len(ops)} is no legal definition: {error}") from error
    return tuple(_tensor(item, ops) for item in _items(fields["outputs"], "outputs"))


def _fields(data: JSON, what: str, names: tuple[str, ...]) -> dict[str, JSON]:
    if not isinstance(data, dict) or set(data) != set(names):
        raise RecordError(f"{what} is an object with the fields {', '.join(names)}")
    return data


def _items(data: JSON, what: str) -> list[JSON]:
    if not isinstance(data, list) or len(data) > MAX_OPERATIONS:
        raise RecordError(f"{what} are a list of at most {MAX_OPERATIONS}")
    return data


def _text(data: JSON) -> str:
    if not isinstance(data, str) or len(data) > _NAME:
        raise RecordError(f"a name is a string of at most {_NAME} characters")
    return data


def _read_symbol(data: JSON) -> Var:
    if not isinstance(data, list) or len(data) != 3 or data[0] not in ("Var", "SizeVar"):
        raise RecordError("a symbol is ['Var' or 'SizeVar', name, dtype]")
    name, dtype = _text(data[1]), _read_dtype(data[2])
    return SizeVar(name, dtype) if data[0] == "SizeVar" else Var(name, dtype)


def _read_dtype(data: JSON) -> str:
    dtype = _text(data)
    try:
        parsed = parse_dtype(dtype)
    except TypeMismatchError as error:
        raise RecordError(str(error)) from error
    if str(parsed) != dtype or parsed.lanes > 1 or dtype == "handle":
        raise RecordError(f"{dtype!r} is no dtype of an element")
    return dtype


def _tensor(data: JSON, ops: Sequence[Operation]) -> Tensor:
    # `type`, since True is an int for isinstance
    if not isinstance(data, list) or len(data) != 2 or any(type(n) is not int or n < 0 for n in data):
        raise RecordError("a tensor is [operation, output]")
    if data[0] >= len(ops) or data[1] >= ops[data[0]].num_outputs:
        raise RecordError(f"no tensor {data}: there are {len(ops)} operations so far")
    return ops[data[0]].output(data[1])


def _read_op(data: JSON, ops: Sequence[Operation], symbols: Mapping[str, Var]) -> Operation:
    kind = data.get("kind") if isinstance(data, dict) else None
    if kind == "placeholder":
        fields = _fields(data, "a placeholder", ("kind", "name", "dtype", "shape", "rows"))
        reader = ExprReader(fields["rows"], symbols, None, None, _LIMITS)
        shape = tuple(_extent(reader.expr(number), symbols) for number in _items(fields["shape"], "extents"))
        return PlaceholderOp(_text(fields["name"]), shape, _read_dtype(fields["dtype"]))
    if kind == "compute":
        return _read_compute(_fields(data, "a compute", ("kind", "name", "tag", "attrs", "axis", "body", "rows")), ops, symbols)
    if kind == "tensor_compute":
        return _read_tensor_compute(_fields(data, "a compute", ("kind", "name", "tag", "attrs", "axis", "call", "rows")), ops, symbols)
    if kind == "extern":
        fields = _fields(data, "an extern", ("kind", "name", "tag", "attrs", "inputs", "outputs", "statement"))
        inputs = tuple(_tensor(item, ops) for item in _items(fields["inputs"], "inputs"))
        body, buffers = read_extern(fields, len(inputs), symbols, _LIMITS)
        return extern_of(_text(fields["name"]), _text(fields["tag"]), _attrs(fields["attrs"], ops), inputs, body, buffers)
    if kind == "scan":
        fields = _fields(data, "a scan", ("kind", "name", "tag", "attrs", "init", "update", "state", "inputs"))
        init, update, state, given = (
            tuple(_tensor(item, ops) for item in _items(fields[key], key)) for key in ("init", "update", "state", "inputs")
        )
        if not state or not len(init) == len(update) == len(state):
            raise RecordError("a scan has one init, update and state for each result")
        return scan_of(_text(fields["name"]), _text(fields["tag"]), _attrs(fields["attrs"], ops), init, update, state, given)
    raise RecordError("an operation has the kind placeholder, compute, tensor_compute, extern or scan")


def _extent(extent: PrimExpr, symbols: Mapping[str, Var]) -> PrimExpr:
    check_only(free_variables(checked_extent(extent)), set(symbols.values()))
    return extent


def _read_compute(fields: Mapping[str, JSON], ops: Sequence[Operation], symbols: Mapping[str, Var]) -> ComputeOp:
    reader = ExprReader(fields["rows"], symbols, lambda data: _tensor(data, ops), None, _LIMITS)
    axes = tuple(reader.axis(number) for number in _items(fields["axis"], "axes"))
    bodies = tuple(reader.expr(number) for number in _items(fields["body"], "bodies"))
    return checked_compute(_text(fields["name"]), _text(fields["tag"]), _attrs(fields["attrs"], ops), axes, bodies, set(symbols.values()))


def _read_tensor_compute(fields: Mapping[str, JSON], ops: Sequence[Operation], symbols: Mapping[str, Var]) -> ComputeOp:
    reader = ExprReader(fields["rows"], symbols, lambda data: _tensor(data, ops), None, _LIMITS)
    axes = tuple(reader.axis(number) for number in _items(fields["axis"], "axes"))
    known = set(symbols.values())
    for axis in axes:
        check_spatial(axis, known)
    call, outer = read_call(fields["call"], reader, lambda data: _tensor(data, ops))
    if outer > len(axes):
        raise RecordError(f"the call of an intrinsic stands in {outer} axes, the operation has {len(axes)}")
    extents = tuple(axis.dom.extent for axis in axes if axis.dom is not None)
    op = tensor_compute(_text(fields["name"]), _text(fields["tag"]), _attrs(fields["attrs"], ops), axes[:outer], extents, call)
    check_compute(op, known)
    return op


def _attrs(data: JSON, ops: Sequence[Operation]) -> FrozenMap:
    if not isinstance(data, dict):
        raise RecordError("attributes are an object")
    return FrozenMap({_text(key): _read_attr(value, ops) for key, value in data.items()})


def _read_attr(data: JSON, ops: Sequence[Operation]) -> Any:
    match data:
        case None | bool() | int() | float() | str():
            return data
        case list():
            return tuple(_read_attr(item, ops) for item in data)
        case {"tensor": reference} if len(data) == 1:
            return _tensor(reference, ops)
    raise RecordError("an attribute is a number, a string, a tensor or a list of them")
