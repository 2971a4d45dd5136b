"""Spaces of configurations: what a template may decide (`ConfigSpace`), and what it decided (`ConfigEntity`).

A program is a point: one candidate of each knob. Points are numbered, the first knob varies fastest; they are never listed, so that a
space may have any number of them.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import prod
from typing import Any

from ...errors import RecordError, TuningError
from ...tune.records.v02 import entities_of
from ..errors import InstantiationError, KnobError, LengthError, PointError
from .knobs import (
    ENTITY_CODES,
    AnnotateEntity,
    AnnotateSpace,
    Axis,
    Entity,
    OtherOptionEntity,
    OtherOptionSpace,
    ReorderEntity,
    ReorderSpace,
    SplitEntity,
    SplitSpace,
    TransformSpace,
    VirtualAxis,
    entity_features,
    entity_to_json,
    get_factors,
    get_pow2s,
)

__all__ = [
    "AnnotateEntity",
    "AnnotateSpace",
    "Axis",
    "ConfigEntity",
    "ConfigSpace",
    "FallbackConfigEntity",
    "InstantiationError",
    "OtherOptionEntity",
    "OtherOptionSpace",
    "ReorderEntity",
    "ReorderSpace",
    "SplitEntity",
    "SplitSpace",
    "TransformSpace",
    "VirtualAxis",
    "get_factors",
    "get_pow2s",
]

Filter = Callable[[Any], bool]
# What a space with filters that hardly anything passes is drawn from before it is walked through, and before it is given up.
_DRAWS = 2000
_WALKED = 1 << 20
_ENTITY_OF: Mapping[type[TransformSpace], type[Any]] = {
    SplitSpace: SplitEntity,
    ReorderSpace: ReorderEntity,
    AnnotateSpace: AnnotateEntity,
    OtherOptionSpace: OtherOptionEntity,
}
_KINDS = {code: kind for kind, (code, _) in ENTITY_CODES.items()}


def _fits(entity: Entity, kind: type[TransformSpace], parts: int) -> bool:
    """Whether an entity, such as a log's, is of a kind of knob; of a split each part has a size, and only the outermost may be open."""
    if isinstance(entity, SplitEntity) and kind is SplitSpace:
        return len(entity.size) == parts and min(entity.size[1:]) > 0
    return isinstance(entity, _ENTITY_OF[kind])


class ConfigSpace:
    """The knobs of a template. It is empty at first; the template's function defines what it needs, and reads it.

    While a template is run to find its knobs, `cfg["tile_y"]` is the first candidate of that knob.
    """

    is_fallback = False
    _collects = True

    def __init__(self) -> None:
        self.space_map: dict[str, TransformSpace] = {}
        self.errors: list[str] = []
        self.code_hash: str | None = None
        self.flop = 0
        self.cost: Any = None
        self._entity_map: dict[str, Entity] = {}
        self._constraints: list[Any] = []
        self._filters: list[Filter] = []
        self._passes: dict[int, bool] = {}
        self._length: int | None = None

    @staticmethod
    def axis(var: Any) -> VirtualAxis:
        """A loop, by its axis or its length, as knobs know it."""
        return VirtualAxis(var)

    reduce_axis = axis

    def define_split(self, name: str, axis: Any, policy: str = "factors", **kwargs: Any) -> list[Axis]:
        """Define a knob for the sizes of a loop's parts.

        Args:
            name: of the knob.
            axis: the loop.
            policy, kwargs: see `SplitSpace`; `num_outputs` is needed.

        Returns:
            the parts.

        Raises:
            TuningError: for options that make no candidates.
        """
        return self._define(SplitSpace, name, [axis], policy, kwargs)

    def define_reorder(self, name: str, axes: Sequence[Any], policy: str, **kwargs: Any) -> list[Axis]:
        """Define a knob for the order of loops; see `ReorderSpace`."""
        return self._define(ReorderSpace, name, axes, policy, kwargs)

    def define_annotate(self, name: str, axes: Sequence[Any], policy: str, **kwargs: Any) -> list[Axis]:
        """Define a knob for what happens to loops; see `AnnotateSpace`."""
        return self._define(AnnotateSpace, name, axes, policy, kwargs)

    def define_knob(self, name: str, candidate: Sequence[Any]) -> list[Axis]:
        """Define a knob with values of your own: numbers, words, True, False, None, or lists of them.

        Raises:
            TuningError: without a value.
        """
        return self._define(OtherOptionSpace, name, [], None, {"candidate": candidate})

    def _define(self, kind: type[Any], name: str, axes: Sequence[Any], policy: Any, options: Mapping[str, Any]) -> list[Axis]:
        if not self._collects:
            parts = kind.get_num_output(axes, policy, **options)
            known = self._entity_map.get(name)
            if known is not None and not _fits(known, kind, parts):
                raise KnobError(
                    f"the knob {name!r} is {known!r} in this configuration, which is no {_ENTITY_OF[kind].__name__} for {parts} axes, as "
                    "the template defines it now; tune it again"
                )
            return [Axis(None, index) for index in range(parts)]
        made: TransformSpace = kind(axes, policy, **options)
        if not len(made):
            raise TuningError(f"no candidate of the knob {name!r} passes its filter")
        self.space_map[name] = made
        self._take_first(name, made)
        self.clear_cache()
        return made.outputs()

    def _take_first(self, name: str, made: TransformSpace) -> None:
        self._entity_map[name] = made[0]

    def multi_filter(self, filter: Filter) -> None:
        """Keep only the points that a function accepts, which looks at a whole configuration: `lambda cfg: cfg["x"].size[1] < 64`.

        Points keep their numbers; those left out are never proposed.
        """
        if self._collects:
            self.clear_cache()
            self._filters.append(filter)

    @property
    def has_filters(self) -> bool:
        """Whether `multi_filter` leaves points out."""
        return bool(self._filters)

    def add_flop(self, flop: float) -> None:
        """Count operations of the computation; else they are counted from its expressions."""
        self.flop += flop  # type: ignore[assignment]

    def raise_error(self, msg: str) -> None:
        """Say that this configuration makes no program."""
        self.errors.append(msg)

    def valid(self) -> bool:
        """Whether no error was raised."""
        return not self.errors

    def clear_cache(self) -> None:
        """Forget which points pass the filters."""
        self._passes.clear()
        self._length = None

    def __getitem__(self, name: str) -> Any:
        found = self._entity_map.get(name)
        if found is None:
            known = ", ".join(self._entity_map) or "none"
            raise KnobError(f"this configuration has no knob {name!r}; it has: {known}")
        return found

    def __contains__(self, name: object) -> bool:
        return name in self._entity_map

    @property
    def dims(self) -> list[int]:
        """The number of candidates of each knob."""
        return [len(space) for space in self.space_map.values()]

    @property
    def range_length(self) -> int:
        """The number of points, those left out by `multi_filter` included."""
        return prod(self.dims)

    @property
    def size(self) -> int:
        """The number of points that pass all filters, however large; with a `multi_filter` they are counted one by one, once."""
        if self._length is None:
            self._length = self.subrange_length(0, self.range_length)
        return self._length

    def __len__(self) -> int:
        """The `size`.

        Raises:
            LengthError: above `sys.maxsize`, which is as far as `len` of any object goes.
        """
        if self.size > sys.maxsize:
            raise LengthError(
                f"this space has {self.size} points, more than len() can tell; space.size and space.range_length are such numbers"
            )
        return self.size

    def __bool__(self) -> bool:
        """Whether any point passes all filters."""
        # without it Python would ask for the length, and count all points to know of one
        return any(map(self._accepts, range(self.range_length))) if self._filters else self.range_length > 0

    def subrange_length(self, start: int, end: int) -> int:
        """The number of points from `start` up to, without, `end` that pass all filters.

        Raises:
            PointError: for other ends than of a part of the space.
        """
        if not 0 <= start <= end <= self.range_length:
            raise PointError(f"points {start} to {end} are no part of a space of {self.range_length}")
        if not self._filters:
            return end - start
        return sum(map(self._accepts, range(start, end)))

    def _accepts(self, index: int) -> bool:
        found = self._passes.get(index)
        if found is None:
            # without a limit a walk through a large space would keep an answer for each of its points
            if len(self._passes) > _WALKED:
                self._passes.clear()
            point = self._entity(index)
            found = self._passes[index] = all(filter(point) for filter in self._filters)
        return found

    def is_index_valid(self, index: int) -> bool:
        """Whether there is a point of this number that passes all filters."""
        return 0 <= index < self.range_length and (not self._filters or self._accepts(int(index)))

    def get(self, index: int) -> ConfigEntity:
        """The configuration of a point.

        Raises:
            PointError: if there is none of this number, or a filter leaves it out.
        """
        if not hasattr(index, "__index__"):
            raise PointError(f"points are numbered: a whole number names one, not {index!r}")
        if not 0 <= index < self.range_length:
            raise PointError(f"Index out of range: size {self.range_length}, got index {index}")
        if not self.is_index_valid(index):
            raise PointError(f"point {index} is left out by a filter of this space")
        return self._entity(index)

    def _entity(self, index: int) -> ConfigEntity:
        chosen = zip(self.space_map.items(), self.point2knob(index), strict=True)
        return ConfigEntity(int(index), self.code_hash, {name: space[place] for (name, space), place in chosen}, self._constraints)

    def point2knob(self, point: int) -> list[int]:
        """The number of each knob's candidate at a point."""
        knobs = []
        for size in self.dims:
            knobs.append(int(point % size))
            point //= size
        return knobs

    def knob2point(self, knob: Sequence[int]) -> int:
        """The number of the point with these candidates."""
        point = 0
        for size, place in zip(reversed(self.dims), reversed(knob), strict=True):
            point = point * size + int(place)
        return point

    def get_rand_index(self, start: int | None = None, end: int | None = None, to_exclude: Iterable[int] | None = None) -> int:
        """A point at random.

        Args:
            start, end: the first, and the one after the last, of those to draw from; all by default.
            to_exclude: points that aren't wanted.

        Raises:
            PointError: if there is none.
        """
        low, high = start or 0, self.range_length if end is None else end
        unwanted = set(to_exclude or ())
        for _ in range(_DRAWS if high > low else 0):
            index = random.randrange(low, high)
            if index not in unwanted and self.is_index_valid(index):
                return index
        if high - low <= _WALKED:  # hardly any are left, so that all are looked at
            left = [index for index in range(low, high) if index not in unwanted and self.is_index_valid(index)]
            if left:
                return random.choice(left)
        raise PointError(f"no point from {low} to {high} is left that passes the filters and wasn't excluded")

    def get_next_index(self, index: int, n: int = 1, start: int | None = None, end: int | None = None) -> int | None:
        """The point n valid ones after a point, before it if n is negative; None if there is none from `start` up to, without, `end`."""
        low, high = start or 0, self.range_length if end is None else end
        step, left = (1 if n >= 0 else -1), abs(n)
        if not self._filters:
            # without filters there are no gaps
            found = index + n
            return found if low <= found < high else None
        while left:
            index += step
            if not low <= index < high:
                return None
            left -= self.is_index_valid(index)
        return index

    def sample_ints(self, m: int) -> list[int]:
        """m different points at random.

        Raises:
            PointError: if there are fewer.
        """
        chosen: set[int] = set()
        while len(chosen) < m:
            chosen.add(self.get_rand_index(to_exclude=chosen))
        return sorted(chosen)

    def random_walk(self, point: int) -> int:
        """A valid point that differs from another in one knob.

        Raises:
            PointError: if there is none.
        """
        old, dims = self.point2knob(point), self.dims
        moves = [(knob, value) for knob, size in enumerate(dims) for value in range(size) if value != old[knob]]
        random.shuffle(moves)
        # Each knob is as likely, however many candidates it has: the largest of n numbers u ** (1 / w) is each one's in proportion to its
        # weight w (Efraimidis and Spirakis 2006), which is 1 / (candidates - 1) here.
        moves.sort(key=lambda move: random.random() ** (dims[move[0]] - 1), reverse=True)
        for knob, value in moves:
            found = self.knob2point([*old[:knob], value, *old[knob + 1 :]])
            if self.is_index_valid(found):
                return found
        raise PointError(f"no other point of the space differs from point {point} in one knob")

    def __repr__(self) -> str:
        # counting the points that filters leave takes a run of each filter on each point: too long for a text from some thousands on
        length = self.size if not self._filters or self._length is not None or self.range_length <= _DRAWS else "?"
        lines = "\n".join(f"  {place:2d} {name}: {space}" for place, (name, space) in enumerate(self.space_map.items()))
        return f"ConfigSpace (len={length}, range_length={self.range_length}, space_map=\n{lines}\n)"


class ConfigEntity(ConfigSpace):
    """What a template decides: an entity for each knob. It is what a template's function gets when a program is made.

    Args:
        index: the point's number.
        code_hash: of the template's text, if that is attached.
        entity_map: knob -> entity.
        constraints: kept for programs that pass it.
    """

    _collects = False

    def __init__(self, index: int, code_hash: str | None, entity_map: Mapping[str, Entity], constraints: Sequence[Any] = ()) -> None:
        super().__init__()
        self.index = index
        self.code_hash = code_hash
        self._entity_map = dict(entity_map)
        self._constraints = list(constraints)

    def get_flatten_feature(self) -> Any:
        """What a model sees that looks at knobs: all their numbers in a row."""
        import numpy as np

        return np.array([number for entity in self._entity_map.values() for number in entity_features(entity)], np.float32)

    def get_other_option(self) -> dict[str, Any]:
        """The values of knobs that were defined by `define_knob`."""
        return {name: entity.val for name, entity in self._entity_map.items() if isinstance(entity, OtherOptionEntity)}

    def to_json_dict(self) -> dict[str, Any]:
        """The configuration as a log holds it."""
        entities = [[name, *entity_to_json(entity)] for name, entity in self._entity_map.items()]
        return {"index": int(self.index), "code_hash": self.code_hash, "entity": entities}

    @staticmethod
    def from_json_dict(json_dict: Any) -> ConfigEntity:
        """The configuration that a log holds.

        Raises:
            RecordError: for anything else.
        """
        if not isinstance(json_dict, dict) or not {"index", "entity"} <= set(json_dict):
            raise RecordError("a configuration is an object with an index, a code_hash and a list of entities")
        index, code = json_dict["index"], json_dict.get("code_hash")
        if type(index) is not int or not (code is None or isinstance(code, str)):
            raise RecordError(f"a configuration has a whole number as index and text as code_hash, not {index!r:.40} and {code!r:.40}")
        made = {name: _KINDS[kind](value) for name, kind, value in entities_of(json_dict["entity"])}
        return ConfigEntity(index, code, made, [])

    def __repr__(self) -> str:
        return f"{list(self._entity_map.items())},{self.code_hash},{self.index}"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ConfigEntity) and self.to_json_dict() == other.to_json_dict()

    def __hash__(self) -> int:
        return hash(repr(self))


class FallbackConfigEntity(ConfigSpace):
    """A configuration where no log has one: each knob is its first candidate, unless the template sets it."""

    is_fallback = True

    def _take_first(self, name: str, made: TransformSpace) -> None:
        # the context gives a workload the same object again, with the knobs that the template has set
        self._entity_map.setdefault(name, made[0])

    def __setitem__(self, name: str, entity: Entity) -> None:
        """Set a knob."""
        self._entity_map[name] = entity

    def fallback_split(self, name: str, constraints: Sequence[int]) -> None:
        """Set a split: from the innermost part on, each gets the largest divisor of what is left that is at most its constraint.

        Args:
            name: the knob.
            constraints: for each part, outermost first; -1 for none.

        Raises:
            TuningError: for a constraint of 0, or other than as many as there are parts.
        """
        space = self.space_map.get(name)
        if not isinstance(space, SplitSpace):
            raise KnobError(f"there is no split called {name!r} here; knobs: {', '.join(self.space_map)}")
        if len(constraints) != space.num_output or any(limit == 0 or limit < -1 for limit in constraints):
            raise TuningError(f"{name!r} takes {space.num_output} constraints of at least 1, or -1 for none, not {list(constraints)}")
        left, sizes = space.product, []
        for limit in reversed(constraints):
            size = left if limit == -1 else max(factor for factor in get_factors(left) if factor <= limit)
            sizes.append(size)
            left //= size
        self._entity_map[name] = SplitEntity(sizes[::-1])

    def fallback_with_reference_log(self, ref_log: Iterable[tuple[Any, Any]]) -> None:
        """Set the knobs as the fastest record of a log has them: other workloads of the same template, say.

        Sizes that don't divide the loops here are made smaller; other knobs are taken over where they are candidates here.

        Args:
            ref_log: pairs of inputs and results.
        """
        known = [(min(result.costs), made.config) for made, result in ref_log if not result.error_no]
        if not known:
            return
        best = min(known, key=lambda pair: float(pair[0]))[1]
        for name, space in self.space_map.items():
            entity = best._entity_map.get(name)
            if isinstance(space, SplitSpace) and isinstance(entity, SplitEntity) and len(entity.size) == space.num_output:
                self.fallback_split(name, [-1, *entity.size[1:]])
            elif entity is not None and not isinstance(space, SplitSpace):
                said = entity_to_json(entity)
                same = (known_one for known_one in space.entities if entity_to_json(known_one) == said)
                self._entity_map[name] = next(same, self._entity_map[name])

    def __repr__(self) -> str:
        return f"{list(self._entity_map.items())},{self.code_hash}"
