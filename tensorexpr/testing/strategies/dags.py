"""Hypothesis strategies for small computations, grown operation by operation.

A grown DAG holds the shapes that break compilers: prime extents and extents of 1, tensors of rank 0, padding behind
`if_then_else`, several consumers, reductions with conditions, and dtypes that change on the way.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from math import prod
from typing import Any

from hypothesis import assume
from hypothesis import strategies as st

from ... import te
from ...dataclass import dataclass, field
from ...te.dag import given_placeholders, post_dfs_order
from ...te.dag_text import format_dag
from ...te.operation import Operation, PlaceholderOp
from ...te.serialize import dumps
from ...te.tensor import Tensor
from ...te.tensor_intrin import TensorIntrin
from ...tir import arithmetic, intrin, ir_builder
from ...tir.dtype import parse_dtype
from ...tir.expr import IntImm, IterVar, PrimExpr, Var
from .basics import shapes
from .intrinsics import DTYPES
from .recurrences import draw_scan

MAX_ELEMENTS = 600
MAX_WORK = 6000


@dataclass(frozen=True, repr=False)
class DagCase:
    """A computation: its placeholders and its results."""

    inputs: tuple[Tensor, ...]
    results: tuple[Tensor, ...]

    @property
    def tensors(self) -> tuple[Tensor, ...]:
        """Inputs and results, the arguments of a function that computes it."""
        return (*self.inputs, *self.results)

    @property
    def outputs(self) -> tuple[Operation, ...]:
        """The operations that make the results, as a schedule takes them."""
        return tuple(dict.fromkeys(tensor.op for tensor in self.results))

    def __repr__(self) -> str:
        return f"DAG\n{format_dag(self.results)}which is te.serialize.loads({dumps(self.results)!r})"

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """What Hypothesis prints of a failing example; it would list the fields instead."""
        printer.text(repr(self))


def extents_of(tensor: Tensor) -> tuple[int, ...]:
    """The shape of a tensor of constant extents as integers."""
    return tuple(extent.value for extent in tensor.shape if isinstance(extent, IntImm))


@dataclass
class _Growth:
    """A DAG under construction: what there is to read, and names not used yet."""

    draw: st.DrawFn
    pool: list[Tensor] = field(default_factory=list)
    names: Counter[str] = field(default_factory=Counter)

    def name(self, stem: str) -> str:
        """A name that no other operation has."""
        self.names[stem] += 1
        return stem if self.names[stem] == 1 else f"{stem}_{self.names[stem]}"

    def placeholder(self, shape: tuple[int, ...], dtype: str) -> Tensor:
        return te.placeholder(shape, dtype, self.name("given"))

    def pick(self, min_dims: int = 0, floats: bool = False) -> Tensor:
        """Some tensor there is, later ones more often."""
        fitting = [t for t in self.pool if t.ndim >= min_dims and (not floats or parse_dtype(t.dtype).is_float)]
        assume(fitting)
        # what Hypothesis draws shrinks to 0: to the layer that was made last
        return fitting[-1 - self.draw(st.integers(0, len(fitting) - 1))]

    def axis(self, extent: int, name: str) -> IterVar:
        return te.reduce_axis((0, extent), name)


def _unary_float(growth: _Growth) -> Tensor:
    source = growth.pick(floats=True)
    functions: dict[str, Callable[[PrimExpr], PrimExpr]] = {
        "relu": lambda x: te.max(x, arithmetic.const(0.0, x.dtype)),
        "tanh": te.tanh,
        "sigmoid": te.sigmoid,
        "absolute": te.abs,
        # bounded, as exp of exp of exp overflows
        "exp_small": lambda x: te.exp(te.min(x, arithmetic.const(1.0, x.dtype))),
        "square": lambda x: x * x,
        "shifted": lambda x: x * 2 + 1,
        "negated": lambda x: -x,
    }
    name = growth.draw(st.sampled_from(sorted(functions)))
    return _map(source, functions[name], growth.name(name))


def _unary_int(growth: _Growth) -> Tensor:
    fitting = [t for t in growth.pool if parse_dtype(t.dtype).is_int]
    assume(fitting)
    functions: dict[str, Callable[[PrimExpr], PrimExpr]] = {
        "floordiv": lambda x: te.floordiv(x, 3),
        "floormod": lambda x: te.floormod(x, 5),
        "plus": lambda x: x + 7,
        "clipped": lambda x: te.max(te.min(x, 50), 2),
        "to_float": lambda x: x.astype("float32"),
        "chosen": lambda x: intrin.select(x > 3, x, x * 2),
    }
    name = growth.draw(st.sampled_from(sorted(functions)))
    return _map(growth.draw(st.sampled_from(fitting)), functions[name], growth.name(name))


def _cast(growth: _Growth) -> Tensor:
    source = growth.pick()
    floats = parse_dtype(source.dtype).is_float
    # Floats become floats only: where a rounding error crosses an integer, results differ by 1.
    dtype = growth.draw(st.sampled_from(("float32", "float64") if floats else ("float32", "int32", "int64", "int8")))
    return _map(source, lambda x: x.astype(dtype), growth.name("cast"))


def _map(source: Tensor, function: Callable[[PrimExpr], PrimExpr], name: str) -> Tensor:
    return te.compute(source.shape, lambda *i: function(source(*i)), name)


def _binary(growth: _Growth) -> Tensor:
    """Two tensors element by element; the second one broadcast from a suffix of the shape, some extents 1."""
    a = growth.pick()
    shape = extents_of(a)
    same = [t for t in growth.pool if extents_of(t) == shape and t.dtype == a.dtype]
    if growth.draw(st.booleans()):
        b = growth.draw(st.sampled_from(same))
    else:
        # NumPy's broadcasting: shapes are aligned at the last axis
        suffix = shape[growth.draw(st.integers(0, len(shape))) :]
        b = growth.placeholder(tuple(1 if growth.draw(st.integers(0, 3)) == 0 else extent for extent in suffix), a.dtype)
    functions: dict[str, Callable[[PrimExpr, PrimExpr], PrimExpr]] = {
        "added": lambda x, y: x + y,
        "subtracted": lambda x, y: x - y,
        "multiplied": lambda x, y: x * y,
        "larger": te.max,
    }
    name = growth.draw(st.sampled_from(sorted(functions)))
    padding = len(shape) - b.ndim

    def at(indices: tuple[Var, ...]) -> PrimExpr:
        return b(*(0 if extent == 1 else i for extent, i in zip(extents_of(b), indices[padding:], strict=True)))

    return te.compute(shape, lambda *i: functions[name](a(*i), at(i)), growth.name(name))


def _reduction(growth: _Growth) -> Tensor:
    """Sum, maximum or minimum over some axes, in places under a condition."""
    source = growth.pick(min_dims=1)
    shape = extents_of(source)
    gone = growth.draw(st.sets(st.integers(0, len(shape) - 1), min_size=1, max_size=2))
    axes = {d: growth.axis(shape[d], f"r{d}") for d in sorted(gone)}
    kept = [d for d in range(len(shape)) if d not in axes]
    reducer = growth.draw(st.sampled_from((te.sum, te.max, te.min)))
    first = min(axes)
    limit = growth.draw(st.one_of(st.none(), st.integers(1, max(1, shape[first]))))
    where = None if limit is None else axes[first] < limit

    def body(*indices: Var) -> PrimExpr:
        at = dict(zip(kept, indices, strict=True)) | dict(axes)
        return reducer(source(*(at[d] for d in range(len(shape)))), axis=list(axes.values()), where=where)

    return te.compute(tuple(shape[d] for d in kept), body, growth.name("reduced"))


def _argmax(growth: _Growth) -> Tensor:
    """A reduction of (index, value) pairs over the last axis; the other output stays unread."""
    # of nearly equal values a rounding error would choose, and the index would be another one
    exact = [t for t in growth.pool if t.ndim and (isinstance(t.op, PlaceholderOp) or parse_dtype(t.dtype).is_int)]
    assume(exact)
    source = growth.draw(st.sampled_from(exact))
    *lead, length = extents_of(source)
    k = growth.axis(length, "k")
    argmax = te.comm_reducer(_first_larger, lambda index, value: (arithmetic.const(-1, index), te.min_value(value)), "argmax")
    made = te.compute(tuple(lead), lambda *i: argmax((k.var, source(*i, k)), axis=k), growth.name("argmax"))
    chosen: Tensor = made[growth.draw(st.integers(0, 1))]
    return chosen


def _first_larger(a: tuple[Var, Var], b: tuple[Var, Var]) -> tuple[PrimExpr, PrimExpr]:
    keep = te.any(a[1] > b[1], te.all(a[1].equal(b[1]), a[0] < b[0]))
    return intrin.select(keep, a[0], b[0]), intrin.select(keep, a[1], b[1])


def _matmul(growth: _Growth) -> Tensor:
    """The last axis contracted with a new matrix, in either layout."""
    source = growth.pick(min_dims=1)
    shape = extents_of(source)
    columns = growth.draw(st.sampled_from((1, 3, 4, 7)))
    transposed = growth.draw(st.booleans())
    weight = growth.placeholder((columns, shape[-1]) if transposed else (shape[-1], columns), source.dtype)
    k = growth.axis(shape[-1], "k")

    def body(*i: Var) -> PrimExpr:
        return te.sum(source(*i[:-1], k) * (weight[i[-1], k] if transposed else weight[k, i[-1]]), axis=k)

    return te.compute((*shape[:-1], columns), body, growth.name("matmul"))


def _convolution(growth: _Growth) -> Tensor:
    """Along the last axis: zero padding behind a guard, then a window with stride."""
    source = growth.pick(min_dims=1)
    *lead, length = extents_of(source)
    window = growth.draw(st.sampled_from((1, 2, 3)))
    stride = growth.draw(st.sampled_from((1, 2)))
    pad = growth.draw(st.integers(0, 2))
    assume(length + 2 * pad >= window)
    zero = arithmetic.const(0, source.dtype)
    padded = te.compute(
        (*lead, length + 2 * pad),
        lambda *i: te.if_then_else(te.all(i[-1] >= pad, i[-1] < length + pad), source(*i[:-1], i[-1] - pad), zero),
        growth.name("padded"),
    )
    weight = growth.placeholder((window,), source.dtype)
    r = growth.axis(window, "rw")
    out = (length + 2 * pad - window) // stride + 1
    return te.compute((*lead, out), lambda *i: te.sum(padded(*i[:-1], i[-1] * stride + r) * weight[r], axis=r), growth.name("conv"))


def _transpose(growth: _Growth) -> Tensor:
    source = growth.pick(min_dims=2)
    order = growth.draw(st.permutations(range(source.ndim)))
    shape = extents_of(source)

    def body(*i: Var) -> PrimExpr:
        at = {d: index for d, index in zip(order, i, strict=True)}
        return source(*(at[d] for d in range(len(shape))))

    return te.compute(tuple(shape[d] for d in order), body, growth.name("transposed"))


def _reshape(growth: _Growth) -> Tensor:
    """All axes flattened into one, by division and remainder."""
    source = growth.pick(min_dims=2)
    shape = extents_of(source)

    def body(flat: Var) -> PrimExpr:
        indices: list[Any] = []
        rest: Any = flat
        for extent in reversed(shape[1:]):
            indices.append(te.floormod(rest, extent))
            rest = te.floordiv(rest, extent)
        return source(rest, *reversed(indices))

    return te.compute((prod(shape),), body, growth.name("flattened"))


def _slice(growth: _Growth) -> Tensor:
    source = growth.pick(min_dims=1)
    shape = extents_of(source)
    begin = growth.draw(st.integers(0, shape[0] - 1))
    step = growth.draw(st.integers(1, 3))
    count = (shape[0] - begin + step - 1) // step
    return te.compute((count, *shape[1:]), lambda i, *rest: source(i * step + begin, *rest), growth.name("sliced"))


def _scan(growth: _Growth) -> Tensor:
    """A recurrence over the first axis."""
    return draw_scan(growth.draw, growth.pick(min_dims=1), growth.name, growth.placeholder)


def _extern(growth: _Growth) -> Tensor:
    """A statement of its own: loops, in places with storage of their own, that go through the first axis from either end."""
    source = growth.pick(min_dims=1)
    shape = extents_of(source)
    backward, doubled = growth.draw(st.booleans()), growth.draw(st.booleans())

    def statement(ins: list[Any], outs: list[Any]) -> Any:
        ib = ir_builder.create()
        loops = [ib.for_range(0, extent, f"e{d}") for d, extent in enumerate(shape)]
        with ExitStack() as nest:
            first, *rest = (nest.enter_context(loop) for loop in loops)
            value = ins[0].vload([shape[0] - 1 - first if backward else first, *rest])
            if doubled:
                held = ib.allocate(source.dtype, (1,), "held")
                held[0] = value
                value = held[0] + held[0]
            ib.emit(outs[0].vstore([first, *rest], value))
        return ib.get()

    made: Tensor = te.extern(shape, [source], statement, growth.name("extern"), dtype=source.dtype)
    return made


def _slices(growth: _Growth) -> Tensor:
    """Windows or blocks of the last axis, done by a tensor intrinsic; or products of blocks with others, added up."""
    fitting = [t for t in growth.pool if 0 < t.ndim < len(_OF_RANK) and t.dtype in DTYPES]
    assume(fitting)
    source = growth.draw(st.sampled_from(fitting))
    *lead, length = extents_of(source)
    width = growth.draw(st.integers(1, min(length, 4)))
    kind = growth.draw(st.sampled_from(("copy", "sum", "dot")))
    step = width if kind == "dot" else growth.draw(st.sampled_from((1, width)))
    count = (length - width) // step + 1
    intrin = TensorIntrin.get(f"testing.{kind}.{source.dtype}")
    axis = growth.axis(count, "blocks")

    def part(tensor: Tensor, place: Any, *i: Var) -> Any:
        indices = (*i, slice(place * step, place * step + width))
        return tensor[indices]

    def summed(*i: Var) -> Any:
        return intrin(part(source, axis.var, *i), part(weight, axis.var), reduce_axis=axis)

    if kind == "dot":
        weight = growth.placeholder((length,), source.dtype)
        made: Tensor = te.compute(tuple(lead), _OF_RANK[len(lead)](summed), growth.name("blocks"))
        return made

    def window(*i: Var) -> Any:
        return intrin(*[part(source, place, *i[:-1]) for place in (i[-1], count - 1 - i[-1])[: len(intrin.inputs)]])

    made = te.compute((*lead, count, width), _OF_RANK[len(lead) + 1](window), growth.name("windows"))
    return made


# A function of so many indices: the axes around an intrinsic are told by the parameters.
_OF_RANK: tuple[Callable[[Callable[..., Any]], Callable[..., Any]], ...] = (
    lambda f: lambda: f(),
    lambda f: lambda i: f(i),
    lambda f: lambda i, j: f(i, j),
    lambda f: lambda i, j, k: f(i, j, k),
)


LAYERS: dict[str, Callable[[_Growth], Tensor]] = {
    "unary_float": _unary_float,
    "unary_int": _unary_int,
    "binary": _binary,
    "reduction": _reduction,
    "argmax": _argmax,
    "matmul": _matmul,
    "convolution": _convolution,
    "transpose": _transpose,
    "reshape": _reshape,
    "slice": _slice,
    "cast": _cast,
    "scan": _scan,
    "extern": _extern,
    "slices": _slices,
}
# What can be written as loops without an order in time; the default.
COMPUTES = tuple(name for name in LAYERS if name not in ("scan", "extern", "slices"))


@st.composite
def compute_dags(
    draw: st.DrawFn,
    max_ops: int = 4,
    layers: tuple[str, ...] = COMPUTES,
    dtypes: tuple[str, ...] = ("float32", "float64", "int32", "int8"),
    unused: bool = False,
) -> DagCase:
    """A computation of up to `max_ops` grown layers, of small extents, with one or two outputs.

    Args:
        max_ops: layers to grow; a convolution is two operations.
        layers: which kinds, keys of `LAYERS`.
        dtypes: of the first placeholder; operations may convert.
        unused: now and then with an input that nothing reads.
    """
    growth = _Growth(draw)
    growth.pool.append(growth.placeholder(draw(shapes(0, 3, 200)), draw(st.sampled_from(dtypes))))
    for _ in range(draw(st.integers(1, max_ops))):
        made = LAYERS[draw(st.sampled_from(layers))](growth)
        # a product of products grows fast, and the interpreter runs each case several times
        assume(prod(extents_of(made)) <= MAX_ELEMENTS and work_of(made) <= MAX_WORK)
        growth.pool.append(made)
    outputs = [growth.pool[-1]]
    if len(growth.pool) > 2 and draw(st.integers(0, 3)) == 0:
        outputs.append(growth.pool[-2])
    ops = post_dfs_order([output.op for output in outputs])
    inputs = [op.output(0) for op in given_placeholders(ops)]
    if unused and draw(st.integers(0, 3)) == 0:
        inputs.insert(draw(st.integers(0, len(inputs))), growth.placeholder(draw(shapes(0, 2, 20)), draw(st.sampled_from(dtypes))))
    return DagCase(tuple(inputs), tuple(outputs))


def work_of(tensor: Tensor) -> int:
    """Elements times reduction extents of the operation of a tensor."""
    reduced = [axis.dom.extent.value for axis in tensor.op.reduce_axis if axis.dom and isinstance(axis.dom.extent, IntImm)]
    return prod(extents_of(tensor)) * prod(reduced)
