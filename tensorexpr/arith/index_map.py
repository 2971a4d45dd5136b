"""Index maps: how the indices of one layout become those of another, with inverses and padding.

pack = IndexMap.from_func(lambda k, n: [n // 32, k, n % 32])
pack.map_shape([64, 1009])                          # (32, 64, 32)
inverse, padding = pack.non_surjective_inverse([64, 1009])
# inverse: (n_o, k, n_i) -> (k, n_o*32 + n_i); padding: 1009 <= n_o*32 + n_i
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from ..dataclass import InitVar, dataclass
from ..errors import DeclarationError
from ..tir.arithmetic import as_int, cast, const, convert, floormod, logical_not
from ..tir.buffer import simplified
from ..tir.dtype import parse_dtype
from ..tir.expr import Add, BinaryExpr, ExprOp, FloorDiv, FloorMod, IntImm, Mul, PrimExpr, ProducerLoad, Range, Sub, Var
from ..tir.rewriting import substitute, variables, walk
from .analyzer import Analyzer
from .digit_layout import block_extents, digit_layout
from .interval import Interval, relax
from .radix_condition import by_digits

_TRIED = 20  # points at which a stated inverse is tried
_NUMPY = {Add: np.add, Sub: np.subtract, Mul: np.multiply, FloorDiv: np.floor_divide, FloorMod: np.mod}


class AxisSeparator:
    """Between two indices of a map: where memory with several physical dimensions would begin the next one."""

    def __repr__(self) -> str:
        return "AXIS_SEPARATOR"


AXIS_SEPARATOR = AxisSeparator()


_PLACES_AT_ONCE = 1 << 18  # 2 MiB of int64


@dataclass(frozen=True, eq=False)
class IndexMap:
    """`initial_indices -> final_indices`, the latter being integer expressions of the former.

    They may have other variables in them too, such as a size; `free_variables` has these, and whoever takes a map says which it knows.
    `inverse_index_map` is the way back, as a map or a function. It is checked only, as maps find theirs.
    """

    initial_indices: tuple[Var, ...]
    final_indices: tuple[PrimExpr, ...]
    inverse_index_map: InitVar[Callable[..., Any] | IndexMap | None] = None

    AXIS_SEPARATOR: ClassVar[AxisSeparator] = AXIS_SEPARATOR
    _to_json: ClassVar[Callable[[IndexMap], str]]  # `index_map_graph` puts it here, as it knows maps

    def __post_init__(self, inverse_index_map: Callable[..., Any] | IndexMap | None) -> None:
        if inverse_index_map is not None:
            self._check_inverse(inverse_index_map, self.initial_indices[0].dtype if self.initial_indices else "int32")

    @staticmethod
    def from_func(
        mapping_function: Callable[..., Any],
        ndim: int | None = None,
        inverse_index_map: Callable[..., Any] | IndexMap | None = None,
        *,
        index_dtype: str = "int32",
    ) -> IndexMap:
        """The map that a function of indices describes; it returns the new indices as a list.

        Args:
            mapping_function: takes one index per dimension; parameters that are keywords only are the last ones, as in `*indices, n`.
            ndim: the number of dimensions; needed where the function takes `*indices`.
            inverse_index_map: the way back, see the class.
            index_dtype: the type of the indices.

        Raises:
            DeclarationError: for another number of indices, a result that is no list of integer expressions of them, or an
                inverse that leads elsewhere.
        """
        index_map, separators = IndexMap.from_func_with_separators(mapping_function, ndim, inverse_index_map, index_dtype=index_dtype)
        if separators:
            raise DeclarationError("an index map without separators is wanted; use IndexMap.from_func_with_separators, or leave them out")
        return index_map

    @staticmethod
    def from_func_with_separators(
        mapping_function: Callable[..., Any],
        ndim: int | None = None,
        inverse_index_map: Callable[..., Any] | IndexMap | None = None,
        *,
        index_dtype: str = "int32",
    ) -> tuple[IndexMap, list[int]]:
        """As `from_func`, and the places among the new indices where `AXIS_SEPARATOR` stood."""
        positional, keywords = _index_names(mapping_function, ndim)
        initial = tuple(Var(name, index_dtype) for name in (*positional, *keywords))
        returned = mapping_function(*initial[: len(positional)], **dict(zip(keywords, initial[len(positional) :], strict=True)))
        items = list(returned) if isinstance(returned, (list, tuple)) else [returned]
        final: list[PrimExpr] = []
        separators: list[int] = []
        for item in items:
            if isinstance(item, AxisSeparator):
                separators.append(len(final))
            else:
                final.append(_index(item, initial, index_dtype))
        return IndexMap(initial, tuple(final), inverse_index_map), separators

    def structural_bound_parts(self) -> tuple[tuple[Any, ...], tuple[Var, ...], tuple[Any, ...]]:
        """What equality takes a map to be: indices that it binds, and what stands for them."""
        return (), self.initial_indices, (self.final_indices,)

    @cached_property
    def free_variables(self) -> tuple[Var, ...]:
        """The variables of the new indices that are no indices themselves, each once."""
        used = dict.fromkeys(var for index in self.final_indices for var in variables(index))
        return tuple(var for var in used if var not in self.initial_indices)

    def with_values(self, values: Mapping[Var, PrimExpr]) -> IndexMap:
        """The map with values in place of free variables; the map itself if it has none of these."""
        if not any(var in values for var in self.free_variables):
            return self
        kept = {var: value for var, value in values.items() if var not in self.initial_indices}
        return IndexMap(self.initial_indices, tuple(substitute(index, kept) for index in self.final_indices))

    def check_closed(self) -> None:
        """Refuse a map that depends on more than its own indices.

        Raises:
            DeclarationError: with the variable.
        """
        if self.free_variables:
            free = self.free_variables[0]
            index = next(index for index in self.final_indices if free in variables(index))
            raise DeclarationError(
                f"an index map depends on its own indices ({', '.join(v.name for v in self.initial_indices) or 'none'}) alone here, "
                f"but {index} uses {free.name}"
            )

    def _check_inverse(self, stated: Callable[..., Any] | IndexMap, index_dtype: str) -> None:
        """Refuse a stated inverse that certainly leads elsewhere: from small indices there and back."""
        rank = len(self.final_indices)
        back = stated if isinstance(stated, IndexMap) else IndexMap.from_func(stated, rank, index_dtype=index_dtype)
        if len(back.final_indices) != len(self.initial_indices):
            raise DeclarationError(f"the inverse {back} of {self} gives {len(back.final_indices)} indices, not {len(self.initial_indices)}")
        for point in range(_TRIED):
            start = [point * (n + 1) for n in range(len(self.initial_indices))]  # differ, so that a swap of two is seen
            there = [as_int(index) for index in self.map_indices(start)]
            # A free variable leaves no constant, and nothing to compare.
            reached = [as_int(index) for index in back.map_indices(there)] if None not in there else start
            if reached != start:
                raise DeclarationError(f"{back} is not the inverse of {self}: it leads from {there} to {reached}, not to {start}")

    def map_indices(self, indices: Sequence[Any]) -> tuple[PrimExpr, ...]:
        """The new indices of the element that had `indices`.

        Raises:
            DeclarationError: for another number of indices than the map takes.
        """
        self._check_rank(len(indices))
        fitting = self._for([convert(index).dtype for index in indices if isinstance(index, ExprOp)])
        if fitting is not self:
            return fitting.map_indices(indices)
        values: Mapping[Var, PrimExpr] = {
            var: cast(convert(index, var.dtype) if isinstance(index, int) else convert(index), var.dtype)
            for var, index in zip(self.initial_indices, indices, strict=True)
        }
        return tuple(substitute(index, values) for index in self.final_indices)

    def map_ranges(self, ranges: Sequence[Range]) -> tuple[Range, ...]:
        """For each new index the range of its values while the old indices run over `ranges`; free variables are sizes, so positive.

        Raises:
            DeclarationError: for another number of ranges, or an index that nothing is known about.
        """
        self._check_rank(len(ranges))
        domain = dict(zip(self.initial_indices, ranges, strict=True))
        positive = {var: Range.from_min_extent(const(1, var.dtype), const((1 << 31) - 1, var.dtype)) for var in self.free_variables}
        analyzer = Analyzer({**domain, **positive})
        found = []
        for index in self.final_indices:
            interval = relax(index, domain, analyzer) or _relaxed_split(index, domain, analyzer)
            if interval is None:
                raise DeclarationError(f"the index map {self} has the index {index}, for which no range of values is known")
            found.append(Range.from_min_extent(interval.min, analyzer.simplify(interval.max - interval.min + 1)))
        return tuple(found)

    def map_shape(self, shape: Sequence[Any]) -> tuple[PrimExpr, ...]:
        """The extents that hold all elements of a tensor of `shape` in the new layout, padding included.

        An index `i % c` has the extent c, also where i stays below c.

        Raises:
            DeclarationError: for another rank, or new indices that may be negative.
        """
        fitting = self._for([_extent(item).dtype for item in shape if not isinstance(item, int)])
        if fitting is not self:
            return fitting.map_shape(shape)
        blocks = block_extents(self.initial_indices, self.final_indices, shape)
        if blocks is not None:
            return tuple(const(extent, index.dtype) for extent, index in zip(blocks, self.final_indices, strict=True))
        ranges = self.map_ranges(self._ranges(shape))
        analyzer = Analyzer()
        extents: list[PrimExpr] = []
        # Ranges have one value at least; what an axis of none moves takes none.
        empty = {var for var, size in zip(self.initial_indices, shape, strict=True) if as_int(_extent(size)) == 0}
        for index, found in zip(self.final_indices, ranges, strict=True):
            if not analyzer.known_nonnegative(found.min):
                raise DeclarationError(f"the index map {self} has the index {index}, which starts at {found.min}; indices start at 0")
            # A divisor that varies with the indices is no extent.
            blocked = isinstance(index, FloorMod) and not variables(index.b) & {*self.initial_indices}
            size = index.b if blocked else analyzer.simplify(found.min + found.extent)  # type: ignore[attr-defined]
            if not blocked and variables(index) & empty:
                extents.append(const(0, index.dtype))
                continue
            extents.append(self._rounded_up(index, shape) if isinstance(index, FloorDiv) and not isinstance(size, IntImm) else size)
        return tuple(extents)

    def _rounded_up(self, index: FloorDiv, shape: Sequence[Any]) -> PrimExpr:
        """The values of a quotient of unknown size: what is divided, padded to whole quotients, in TVM's form."""
        (values,) = IndexMap(self.initial_indices, (index.a,)).map_shape(shape)
        return simplified((values + floormod(0 - values, index.b)) // index.b)

    def map_ndarray(self, arr_src: Any, shape: Sequence[Any] | None = None, out: Any = None) -> Any:
        """The array in the new layout, with zeros as padding; of NumPy or of the runtime, as it was given.

        `shape` is that of the new layout, where it has more padding than the map alone asks for, as after two maps in a row; `out` is an
        array of zeros of NumPy in that layout, to be filled and returned.

        Raises:
            DeclarationError: for a map with free variables or other operations than + - * // %, one that leaves the new layout, and one
                that gives two elements the same place, such as `lambda i: [i % 4]` of 8 elements.
        """
        self.check_closed()
        if hasattr(arr_src, "numpy"):
            return importlib.import_module("tensorexpr.runtime.ndarray").array(self.map_ndarray(arr_src.numpy(), shape))
        extents = [as_int(convert(extent)) for extent in (self.map_shape(arr_src.shape) if shape is None else shape)]
        made = np.zeros([extent or 0 for extent in extents], arr_src.dtype) if out is None else out
        digits = digit_layout(self.initial_indices, self.final_indices, arr_src.shape) if arr_src.size else None
        if digits is not None and digits.fits(made.shape):
            digits.fill(made, arr_src)  # by blocks, three times as fast as element by element
            return made
        # Sparse: an axis alone, broadcast with the others only where an index mixes them.
        points = dict(zip(self.initial_indices, np.indices(arr_src.shape, sparse=True), strict=True))
        for index, extent in zip(self.final_indices, made.shape, strict=True):
            if not np.all(((values := np.asarray(_evaluated(index, points))) >= 0) & (values < extent)):
                raise DeclarationError(f"{self} of an array of shape {arr_src.shape} leaves the shape {made.shape}")
        if not made.flags.c_contiguous:  # flattened, it would be a copy that nobody sees
            made[...] = self.map_ndarray(arr_src, made.shape)
            return made
        # One place for each element: an axis alone moves most indices, so that the sums stay small until the last.
        steps = [stride // made.itemsize for stride in made.strides]
        flat, taken = made.reshape(-1), np.zeros(made.size, bool)
        # Places take twice the memory of the elements, so those of a part are found at a time.
        rows = max(1, _PLACES_AT_ONCE * len(arr_src) // max(1, arr_src.size)) if arr_src.ndim else 1
        for start in range(0, len(arr_src) if arr_src.ndim else 1, rows):
            part = arr_src[start : start + rows] if arr_src.ndim else arr_src
            within = {var: values[start : start + rows] if axis == 0 else values for axis, (var, values) in enumerate(points.items())}
            # Sparse axes: where no index has an axis, its extent here is 1.
            place = sum(_evaluated(index, within) * step for index, step in zip(self.final_indices, steps, strict=True))
            flat[np.broadcast_to(place, part.shape)] = part
            taken[place] = True
        # Of two elements with one place the later one would be left, and nobody told.
        if (places := np.count_nonzero(taken)) < arr_src.size:
            raise DeclarationError(f"{self} has {places} places for the {arr_src.size} elements of an array of shape {arr_src.shape}")
        return made

    def unmap_ndarray(self, array: np.ndarray[Any, Any], shape: Sequence[int]) -> np.ndarray[Any, Any]:
        """The array of `shape` whose elements `array` holds in the new layout: the way back of `map_ndarray`."""
        points = dict(zip(self.initial_indices, np.indices(tuple(shape), sparse=True), strict=True))
        found: np.ndarray[Any, Any] = array[tuple(np.broadcast_to(_evaluated(index, points), tuple(shape)) for index in self.final_indices)]
        return found

    def inverse(self, shape: Sequence[Any]) -> IndexMap:
        """The map back, for a tensor of `shape` (extents or ranges that start at 0) that fills the new layout.

        Raises:
            DeclarationError: if the new layout has padding, or two elements would share a place.
        """
        found, padding = self.non_surjective_inverse(shape)
        if not isinstance(padding, IntImm) or padding.value:
            raise DeclarationError(
                f"the index map {self} leaves padding where {padding}, so it has no inverse on the whole new layout; "
                "use non_surjective_inverse, or a shape that fills it"
            )
        return found

    def non_surjective_inverse(self, shape: Sequence[Any]) -> tuple[IndexMap, PrimExpr]:
        """The map back, and the condition on the new indices under which there is nothing to map back: padding.

        Raises:
            DeclarationError: if it isn't certain that each element has a place of its own.
        """
        inverse, padding = self.inverse_and_padding(shape)
        digits = dict(zip(inverse.initial_indices, self.map_shape(shape), strict=True))
        return inverse, by_digits(Analyzer().simplify(padding), digits)

    def inverse_and_padding(self, shape: Sequence[Any]) -> tuple[IndexMap, PrimExpr]:
        """As `non_surjective_inverse`, with the padding in terms of the old indices: what loops over them are cut by."""
        extents = [dom.extent for dom in self._ranges(shape)]
        new = tuple(Var(name, index.dtype) for name, index in zip(self.names(), self.final_indices, strict=True))
        sizes = self.map_shape(shape)
        from .padded_inverse import padded_inverse  # detectors of iterators, which maps that are only applied don't need

        old, valid = padded_inverse(self.initial_indices, self.final_indices, extents, new, sizes, str(self))
        return IndexMap(new, old), logical_not(valid)

    def is_equivalent_to(self, other_map: IndexMap) -> bool:
        """True if both maps provably agree on all nonnegative indices."""
        if len(self.initial_indices) != len(other_map.initial_indices) or len(self.final_indices) != len(other_map.final_indices):
            return False
        from .index_analyzer import Analyzer as IndexAnalyzer

        analyzer = IndexAnalyzer()
        for var in self.initial_indices:
            analyzer.bind(var, Range.from_min_extent(const(0, var.dtype), const((1 << 31) - 1, var.dtype)))
        mapped = other_map.map_indices(self.initial_indices)
        return all(analyzer.can_prove_equal(a, b) for a, b in zip(self.final_indices, mapped, strict=True))

    def names(self) -> list[str]:
        """Names for the new indices: n, n.o and n.i for n, n // c and n % c, else ax0, ax1, ...; each once."""
        made: list[str] = []
        for place, index in enumerate(self.final_indices):
            used = variables(index)
            suffix = {Var: "", FloorDiv: ".o", FloorMod: ".i"}.get(type(index))
            name = f"{next(iter(used)).name}{suffix}" if suffix is not None and len(used) == 1 else f"ax{place}"
            while name in made:
                name = f"{name}_{place}"
            made.append(name)
        return made

    def _check_rank(self, given: int) -> None:
        if given != len(self.initial_indices):
            raise DeclarationError(f"the index map {self} takes {len(self.initial_indices)} indices, not {given}")

    def _for(self, dtypes: Sequence[str]) -> IndexMap:
        """The map of indices that are wider than its own: of their dtype; itself for others."""
        # Indices of several dtypes have no one to widen to; they are converted one by one.
        wider = parse_dtype(dtypes[0]) if len(set(dtypes)) == 1 else None
        if wider is None or not wider.is_int or any(parse_dtype(var.dtype).bits >= wider.bits for var in self.initial_indices):
            return self
        fresh = {var: Var(var.name, str(wider)) for var in self.initial_indices}
        return IndexMap(tuple(fresh.values()), tuple(_widened(index, str(wider), fresh) for index in self.final_indices))

    def _ranges(self, shape: Sequence[Any]) -> tuple[Range, ...]:
        self._check_rank(len(shape))
        extents = [_extent(item) for item in shape]
        return tuple(
            Range.from_min_extent(const(0, var.dtype), cast(extent, var.dtype))
            for var, extent in zip(self.initial_indices, extents, strict=True)
        )

    def as_python(self) -> str:
        """The map as a function in Python: `lambda a, b: (b, a,)`."""
        final = "".join(f"{index}, " for index in self.final_indices).rstrip(" ")
        return f"lambda {', '.join(map(str, self.initial_indices))}: ({final})"

    def to_json(self) -> str:
        """The map as the text that `index_map_graph.index_map_from_json` reads."""
        return IndexMap._to_json(self)

    def __str__(self) -> str:
        initial, final = (", ".join(map(str, indices)) for indices in (self.initial_indices, self.final_indices))
        return f"({initial}) -> ({final})"

    __repr__ = __str__


def _widened(index: PrimExpr, dtype: str, fresh: Mapping[Var, Var]) -> PrimExpr:
    """An index in terms of wider variables."""
    if isinstance(index, Var):
        return fresh[index] if index in fresh else cast(index, dtype)
    if isinstance(index, IntImm):
        return IntImm(dtype, index.value)
    if isinstance(index, BinaryExpr):
        return type(index)(_widened(index.a, dtype, fresh), _widened(index.b, dtype, fresh))
    # What isn't plain arithmetic is computed in the old type, and only its result is widened.
    return cast(substitute(index, {old: cast(new, old.dtype) for old, new in fresh.items()}), dtype)


def _relaxed_split(index: PrimExpr, domain: Mapping[Var, Range], analyzer: Analyzer) -> Interval | None:
    """The values of a quotient or remainder by a positive number that is no constant; None for others."""
    if not isinstance(index, (FloorDiv, FloorMod)) or variables(index.b) & domain.keys() or not analyzer.known_less(const(0), index.b):
        return None
    inner = relax(index.a, domain, analyzer)
    if inner is None:
        return None
    if isinstance(index, FloorMod):
        return Interval(const(0, index.dtype), index.b - 1)
    # The divisor is fixed and positive, so the ends of what is divided give the ends.
    return Interval(analyzer.simplify(inner.min // index.b), analyzer.simplify(inner.max // index.b))


def _extent(item: Any) -> PrimExpr:
    if isinstance(item, Range):
        if as_int(item.min) != 0:
            raise DeclarationError(f"an index map is inverted over ranges that start at 0, not at {item.min}")
        return item.extent
    return convert(item)


def _index_names(mapping_function: Callable[..., Any], ndim: int | None) -> tuple[list[str], list[str]]:
    """The names of the old indices, numbered for `*indices`: those given by position, and the last ones, which are keywords only."""
    try:
        parameters = list(inspect.signature(mapping_function).parameters.values())
    except (TypeError, ValueError) as error:
        raise DeclarationError(f"an index map is made of a function of indices, not of {mapping_function!r}") from error
    positional = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    rest = next((p.name for p in parameters if p.kind is p.VAR_POSITIONAL), None)
    keywords = [p.name for p in parameters if p.kind is p.KEYWORD_ONLY]
    named = len(positional) + len(keywords)
    if rest is None:
        if ndim is not None and ndim != named:
            raise DeclarationError(f"the function of an index map takes {named} indices, but there are {ndim} dimensions")
        return positional, keywords
    if ndim is None or ndim < named:
        raise DeclarationError(f"the function of an index map takes *{rest}; give ndim, at least {named}")
    return [*positional, *(f"{rest}_{n}" for n in range(ndim - named))], keywords


def _index(item: Any, initial: tuple[Var, ...], dtype: str) -> PrimExpr:
    index = convert(item)
    parsed = parse_dtype(index.dtype)
    if not parsed.is_int or parsed.lanes > 1 or index.dtype == "bool":
        raise DeclarationError(f"an index map returns integer expressions of its indices, not {item!s} ({index.dtype})")
    load = next((node for node in walk(index) if isinstance(node, ProducerLoad)), None)
    if load is not None:
        raise DeclarationError(
            f"an index map depends on its own indices ({', '.join(v.name for v in initial) or 'none'}) and sizes alone, but {index} "
            f"reads {load}"
        )
    return cast(index, dtype)


def _evaluated(index: PrimExpr, points: Mapping[Var, Any]) -> Any:
    if isinstance(index, IntImm):
        return index.value
    if isinstance(index, Var):
        return points[index]
    if isinstance(index, (Add, Sub, Mul, FloorDiv, FloorMod)):
        return _NUMPY[type(index)](_evaluated(index.a, points), _evaluated(index.b, points))
    raise DeclarationError(f"an index map of arrays is made of +, -, *, // and %, not of {index}")
