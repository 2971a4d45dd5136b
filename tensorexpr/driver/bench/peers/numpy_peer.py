"""NumPy as installed, and the OpenBLAS inside it with its AVX-512 kernels, where the CPU has them."""

from __future__ import annotations

import ctypes
import os
import shutil
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ....processor import host_features
from ....target import Target
from ....workloads import Case
from .base import Array, Call, Peer, Unsupported

Make = Callable[[Case, Sequence[Array]], Call]

# What the kernels that OpenBLAS calls SkylakeX are made of. They are forced below, so OpenBLAS itself does not ask.
_SKYLAKE_X = frozenset({"avx512f", "avx512cd", "avx512bw", "avx512dq", "avx512vl"})


def _gemm(case: Case, arrays: Sequence[Array]) -> Call:
    a, b = arrays
    out = np.empty((a.shape[0], b.shape[1]), a.dtype)
    return lambda: np.matmul(a, b, out=out)


def _batch_gemm(case: Case, arrays: Sequence[Array]) -> Call:
    a, b = arrays
    other = b.transpose(0, 2, 1) if case.args[-1] is True else b
    out = np.empty((a.shape[0], a.shape[1], other.shape[2]), a.dtype)
    return lambda: np.matmul(a, other, out=out)


def _dense(case: Case, arrays: Sequence[Array]) -> Call:
    data, weight, bias = arrays
    if case.args[-1] == "gelu":
        raise Unsupported("NumPy has no erf")
    relu = case.args[-1] == "relu"
    out = np.empty((data.shape[0], weight.shape[0]), data.dtype)

    def call() -> Array:
        np.matmul(data, weight.T, out=out)
        np.add(out, bias, out=out)
        return np.maximum(out, 0, out=out) if relu else out

    return call


def _softmax(case: Case, arrays: Sequence[Array]) -> Call:
    (a,) = arrays
    out = np.empty_like(a)

    def call() -> Array:
        np.subtract(a, a.max(1, keepdims=True), out=out)
        np.exp(out, out=out)
        return np.divide(out, out.sum(1, keepdims=True), out=out)

    return call


def _layer_norm(case: Case, arrays: Sequence[Array]) -> Call:
    a, gamma, beta = arrays
    return lambda: (a - a.mean(1, keepdims=True)) / np.sqrt(a.var(1, keepdims=True) + np.float32(1e-5)) * gamma + beta


def _elementwise(case: Case, arrays: Sequence[Array]) -> Call:
    a, b, c = arrays
    out = np.empty_like(a)

    def call() -> Array:
        np.multiply(a, b, out=out)
        np.add(out, c, out=out)
        return np.maximum(out, 0, out=out)

    return call


def _chain(case: Case, arrays: Sequence[Array]) -> Call:
    a, b = arrays
    return lambda: np.tanh(b / (1 + np.exp(-a))) + np.exp(-a * a)


def _reduce(case: Case, arrays: Sequence[Array]) -> Call:
    (a,) = arrays
    out = np.empty(a.shape[1 - case.args[2]], a.dtype)
    return lambda: np.sum(a, axis=case.args[2], out=out)


def _transpose(case: Case, arrays: Sequence[Array]) -> Call:
    (a,) = arrays
    out = np.empty(a.shape[::-1], a.dtype)

    def call() -> Array:
        np.copyto(out, a.T)
        return out

    return call


def _norm(case: Case, arrays: Sequence[Array]) -> Call:
    (a,) = arrays
    flat = a.reshape(a.shape[0], -1)
    return lambda: np.sqrt(np.einsum("bi,bi->b", flat, flat))


def _scores(case: Case, arrays: Sequence[Array]) -> Call:
    query, value = arrays
    left, right = query.transpose(0, 2, 1, 3), value.transpose(0, 2, 3, 1)
    out = np.empty((left.shape[0], left.shape[1], left.shape[2], right.shape[3]), query.dtype)
    return lambda: np.matmul(left, right, out=out)


def _operator(case: Case, arrays: Sequence[Array]) -> Call:
    """Of the suite topi the orders, which NumPy has with AVX-512."""
    (x,), name = arrays[:1], case.args[0]
    if name == "sort":
        return lambda: np.sort(x)
    if name == "argsort":
        return lambda: np.argsort(x, kind="stable")
    raise Unsupported("measured for sort and argsort")


_TABLE: dict[str, Make] = {
    "suite.gemm": _gemm,
    "suite.matvec": _gemm,
    "suite.batch_gemm": _batch_gemm,
    "suite.dense": _dense,
    "suite.softmax": _softmax,
    "suite.layer_norm": _layer_norm,
    "suite.elementwise": _elementwise,
    "suite.elementwise_chain": _chain,
    "suite.reduce": _reduce,
    "suite.transpose": _transpose,
    "suite.norm": _norm,
    "suite.transpose_batch_gemm": _scores,
    "suite.topi": _operator,
}


class NumPy(Peer):
    """NumPy with its own choice of kernels, results written in place where it can."""

    name = "numpy"

    def __init__(self, target: Target) -> None:
        super().__init__(target)
        self.version = np.__version__

    def prepare(self, case: Case, arrays: Sequence[Array]) -> Call:
        """See `Peer.prepare`."""
        if case.workload not in _TABLE or any(a.dtype != np.float32 for a in arrays):
            raise Unsupported("NumPy has no such operator")
        return _TABLE[case.workload](case, arrays)


class OpenBLAS(Peer):
    """The OpenBLAS that NumPy carries, loaded a second time with its AVX-512 kernels: the honest peer of a matrix product.

    Raises:
        ImportError: where there is no such OpenBLAS, or the CPU can't run these kernels.
    """

    name = "openblas-avx512"

    def __init__(self, target: Target) -> None:
        super().__init__(target)
        if lacking := sorted(_SKYLAKE_X - host_features()):
            raise ImportError(f"this CPU lacks {', '.join(lacking)}; NumPy chooses its OpenBLAS' best kernels for it by itself")
        self._folder = tempfile.mkdtemp()
        self._gemm, self.version = _second_openblas(Path(self._folder), self.threads)

    def prepare(self, case: Case, arrays: Sequence[Array]) -> Call:
        """See `Peer.prepare`."""
        if case.workload not in ("suite.gemm", "suite.matvec") or any(a.dtype != np.float32 for a in arrays):
            raise Unsupported("OpenBLAS multiplies matrices of floats")
        a, b = arrays
        m, k, n = a.shape[0], a.shape[1], b.shape[1]
        out = np.empty((m, n), np.float32)
        one, zero = ctypes.c_float(1), ctypes.c_float(0)
        size = ctypes.c_int64
        pointers = [ctypes.c_void_p(x.ctypes.data) for x in (a, b, out)]
        # CBLAS: row-major, neither operand transposed
        arguments = (101, 111, 111, size(m), size(n), size(k), one, pointers[0], size(k), pointers[1], size(n), zero, pointers[2], size(n))
        gemm = self._gemm

        def call() -> Array:
            gemm(*arguments)
            return out

        return call

    def close(self) -> None:
        """Remove the copy of the library."""
        shutil.rmtree(self._folder, ignore_errors=True)


def _second_openblas(folder: Path, threads: int) -> tuple[Any, str]:
    root = Path(np.__file__).parent.parent / "numpy.libs"
    found = sorted(root.glob("libscipy_openblas64_*"))
    if not found:
        raise ImportError("this NumPy carries no OpenBLAS of its own")
    copy = folder / "libopenblas_second.so"
    # a copy: the loader would hand out the library that NumPy has loaded already
    shutil.copy(found[0], copy)
    before = {key: os.environ.get(key) for key in ("OPENBLAS_CORETYPE", "OPENBLAS_NUM_THREADS")}
    # read when the library is loaded, and put back below: they are for this copy alone
    os.environ.update(OPENBLAS_CORETYPE="SkylakeX", OPENBLAS_NUM_THREADS=str(threads))
    try:
        library = ctypes.CDLL(str(copy))
        config = library.scipy_openblas_get_config64_
        config.restype = ctypes.c_char_p
        return library.scipy_cblas_sgemm64_, config().decode()
    except (OSError, AttributeError) as error:
        raise ImportError(f"the OpenBLAS of this NumPy can't be loaded a second time: {error}") from error
    finally:
        for key, value in before.items():
            if value is None:
                os.environ.pop(key, None)
            else:
                os.environ[key] = value
