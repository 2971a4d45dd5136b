"""Arrays that tasks are measured with, where random values don't suit: indices, sparse structures.

Arrays are registered for a workload under the names of its placeholders; every task of that workload that is given those
names is measured with them. With `save_to_file` they are written next to the log as `name.dtype_shape.npy`, and found there
again by another process.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar, cast, overload

import numpy as np

from ..errors import TuningError, WorkloadError
from ..te.dag import post_dfs_order
from ..te.operation import ComputeOp, PlaceholderOp
from ..te.tensor import Tensor
from ..tir.dtype import to_numpy
from ..tir.expr import Mul, PrimExpr, ProducerLoad, Reduce
from ..tir.rewriting import walk
from .workload import WORKLOAD_FUNC_REGISTRY

Array = np.ndarray[Any, np.dtype[Any]]
InputCheck = Callable[[Sequence[Tensor]], Mapping[Tensor, Array | str]]
_F = TypeVar("_F", bound=InputCheck)
TASK_INPUT_BUFFER_TABLE: dict[str, dict[str, Array]] = {}
TASK_INPUT_CHECK_FUNC_REGISTRY: dict[str, InputCheck] = {}


def register_task_input_buffer(
    workload_key: str, input_name: str, input_data: Any, overwrite: bool = False, save_to_file: bool = False
) -> Array:
    """Keep an array for a placeholder of a workload.

    Args:
        workload_key: of the workload; the empty key serves all.
        input_name: the placeholder's.
        input_data: an array, or anything with `numpy()`.
        overwrite: replace what is registered under that name; else it stays, and is returned.
        save_to_file: write it to the current folder too.

    Raises:
        TuningError: if the data is no array, or the file of an earlier one can't be read.
    """
    known = TASK_INPUT_BUFFER_TABLE.setdefault(workload_key, {})
    if input_name in known and not overwrite:
        return known[input_name]
    name = Path(_file_name(input_name, _as_array(input_name, input_data)))
    if save_to_file and name.is_file() and not overwrite:
        known[input_name] = _loaded(name)
        return known[input_name]
    known[input_name] = _as_array(input_name, input_data)
    if save_to_file:
        np.save(name, known[input_name], allow_pickle=False)
    return known[input_name]


def get_task_input_buffer(workload_key: str, input_name: str) -> Array:
    """The array registered for a placeholder of a workload, or for all workloads.

    Raises:
        TuningError: if there is none.
    """
    for key in (workload_key, ""):
        if input_name in TASK_INPUT_BUFFER_TABLE.get(key, {}):
            return TASK_INPUT_BUFFER_TABLE[key][input_name]
    names = ", ".join(sorted({*TASK_INPUT_BUFFER_TABLE.get(workload_key, {}), *TASK_INPUT_BUFFER_TABLE.get("", {})})) or "none"
    raise TuningError(f"no task input {input_name!r} is registered for {workload_key[:200]}; registered: {names}")


@overload
def register_task_input_check_func(func_name: _F, f: None = None, override: bool = False) -> _F: ...
@overload
def register_task_input_check_func(func_name: str, f: None = None, override: bool = False) -> Callable[[_F], _F]: ...
@overload
def register_task_input_check_func(func_name: str, f: _F, override: bool = False) -> _F: ...
def register_task_input_check_func(func_name: Any, f: Any = None, override: bool = False) -> Any:
    """Register a function that makes or names arrays for the inputs of a workload: tensors -> {tensor: array or name}.

        @auto_scheduler.register_task_input_check_func
        def sparse_matmul(tensors): return {tensors[1]: indices}

    Args:
        func_name: the workload's name, or the function, whose name it then is. Under a name that is no workload's it is asked for
            every task. Names are those of `task_inputs`; a tensor with another name is random.
        override: replace a function that is registered under that name already.

    Raises:
        WorkloadError: if the name is taken by another function.
    """
    name, given = (func_name.__name__, func_name) if callable(func_name) else (func_name, f)

    def register(function: InputCheck) -> InputCheck:
        if name in TASK_INPUT_CHECK_FUNC_REGISTRY and TASK_INPUT_CHECK_FUNC_REGISTRY[name] is not function and not override:
            raise WorkloadError(f"task inputs of {name!r} have a function already; pass override=True to replace it")
        TASK_INPUT_CHECK_FUNC_REGISTRY[name] = function
        return function

    return register if given is None else register(given)


def inputs_of_task(workload_key: str, tensors: Sequence[Tensor], names: Sequence[str]) -> dict[Tensor, Array]:
    """The arrays that a task is measured with; the others are random.

    Args:
        workload_key: the task's, which starts with the name of its function.
        tensors: of the computation.
        names: of the placeholders whose arrays were registered for the task.

    Raises:
        TuningError: for a name that is no placeholder or has no array, and for arrays that don't fit.
    """
    named = {tensor.name: tensor for tensor in tensors if isinstance(tensor.op, PlaceholderOp)}
    # A tensor may have two names: its own, and the one that topi's products know it by.
    named |= {name: tensor for tensor, name in sparse_input_names(tensors).items()}
    made: dict[Tensor, Array] = {}
    for check in _checks(_function_name(workload_key)):
        for tensor, data in check(tensors).items():
            if isinstance(data, str):
                named[data] = tensor
            else:
                made[tensor] = _as_array(str(tensor), data)
    # last: what the user names for the task replaces what a function made
    for name in names:
        if name not in named:
            raise TuningError(f"task_inputs has an array for {name!r}; the placeholders are {', '.join(named) or 'none'}")
        made[named[name]] = get_task_input_buffer(workload_key, name)
    return {tensor: _restored(array, tensor) for tensor, array in made.items()}


def _checks(workload: str) -> list[InputCheck]:
    """The function of a workload, or those of no workload in particular."""
    registry = TASK_INPUT_CHECK_FUNC_REGISTRY
    # A function named after another workload is none of this one's.
    return [registry[workload]] if workload in registry else [f for name, f in registry.items() if name not in WORKLOAD_FUNC_REGISTRY]


def _restored(array: Array, tensor: Tensor) -> Array:
    """An array as it was: files know dtypes such as bfloat16 as bytes only."""
    dtype = np.dtype(to_numpy(tensor.dtype))
    return array.view(dtype) if array.dtype.kind == "V" and array.dtype.itemsize == dtype.itemsize else array


def _function_name(workload_key: str) -> str:
    try:
        data = json.loads(workload_key)
    except ValueError:
        return ""
    return data[0] if isinstance(data, list) and data and isinstance(data[0], str) else ""


def _loaded(path: Path) -> Array:
    try:
        made = np.load(path, allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise TuningError(f"the task input file {path} can't be read: {error}") from None
    return _as_array(path.name, made)


def _as_array(name: str, data: Any) -> Array:
    data = data.numpy() if hasattr(data, "numpy") else data
    if not isinstance(data, np.ndarray):
        raise TuningError(f"the task input {name!r} is an array or has numpy(); it can't be {type(data).__name__}")
    return data


def _file_name(name: str, array: Array) -> str:
    # a placeholder may be called anything, "a/b" too
    word = "".join(c if c.isalnum() or c in "_-" else "_" for c in name)
    return f"{word}.{'x'.join(map(str, array.shape)) or 'scalar'}_{array.dtype}.npy"


_PREFIXES = {"sparse_dense_sp_rhs_bsrmm_block": "sparse_dense_bsr", "sparse_conv2d_sp_bsrmm_block": "sparse_conv2d_bsr"}  # by tag


def sparse_input_names(tensors: Sequence[Tensor]) -> dict[Tensor, str]:
    """The tensors that hold a sparse weight of topi's products, with the name that a task's input has there."""
    found: dict[Tensor, str] = {}
    for op in post_dfs_order([tensor.op for tensor in tensors]):
        if isinstance(op, ComputeOp) and op.tag in _PREFIXES:
            found.update(_names(op))
    return found


def _names(op: ComputeOp) -> dict[Tensor, str]:
    """Of sum(data[starts[row] + k, r, c] * dense[.., indices[starts[row] + k] * width + c, ..])."""
    match op.body:
        case (Reduce(source=(Mul(ProducerLoad() as one, ProducerLoad() as other),)),):
            # the sparse operand's place is read from one array, the dense one's from that and the indices
            sparse, dense = sorted((one, other), key=lambda load: len(_read_in(load.indices)))
        case _:
            return {}
    starts, places = _read_in(sparse.indices), _read_in(dense.indices)
    indices = [tensor for tensor in places if tensor not in starts]
    data = cast(Tensor, sparse.producer)
    if len(starts) != 1 or len(indices) != 1 or data.ndim != 3:
        return {}
    columns = next(size for size, at in zip(dense.producer.shape, dense.indices, strict=True) if _read_in((at,)))
    sizes = ((starts[0].shape[0] - 1) * data.shape[1], columns, data.shape[1], data.shape[2], indices[0].shape[0], starts[0].shape[0])
    prefix = "_".join([_PREFIXES[op.tag], *map(str, sizes)])
    return {data: f"{prefix}_W_data", indices[0]: f"{prefix}_W_indices", starts[0]: f"{prefix}_W_indptr"}


def _read_in(indices: Sequence[PrimExpr]) -> list[Tensor]:
    """The tensors whose elements some indices depend on."""
    return list(dict.fromkeys(cast(Tensor, n.producer) for index in indices for n in walk(index) if isinstance(n, ProducerLoad)))
