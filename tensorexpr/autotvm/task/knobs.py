"""Knobs: what one decision of a template may be (a space), and what it is in one program (an entity).

    SplitSpace     sizes of the parts of a loop           SplitEntity.apply(s, C, axis)
    ReorderSpace   orders of some loops                   ReorderEntity.apply(s, C, axes)
    AnnotateSpace  unrolled, vector, bound, cached at     AnnotateEntity.apply(s, C, axes)
    OtherOptionSpace   any values                         OtherOptionEntity.val

The order of a knob's candidates is that of AutoTVM in TVM up to 0.19: an index of its logs names the same program here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import combinations, permutations, product
from math import factorial, prod
from typing import Any, ClassVar

import numpy as np

from ...dataclass import dataclass
from ...errors import TuningError
from ...schedule.tilings import divisors
from ...te.operation import Operation
from ...te.tensor import Tensor
from ...te.thread_axis import thread_axis
from ...tir.arithmetic import as_int
from ...tir.expr import IterVar
from ..errors import InstantiationError

# What a list of candidates may hold; spaces are products of knobs, so that a larger one is a mistake.
MAX_CANDIDATES = 1 << 20
# The words of an annotation, in the order of the columns that models see.
ANNOTATIONS = (
    "none", "vec", "unroll", "blockIdx.x", "blockIdx.y", "blockIdx.z", "threadIdx.x", "threadIdx.y", "threadIdx.z", "vthread", "fuse",
)  # fmt: skip


def get_factors(n: int) -> list[int]:
    """The divisors of a number, ascending."""
    return [int(factor) for factor in divisors(n)]


def get_pow2s(n: int) -> list[int]:
    """The powers of two up to a number, ascending."""
    return [1 << bits for bits in range(max(0, n).bit_length())]


@dataclass(frozen=True)
class SplitEntity:
    """Sizes of the parts of a loop, outermost first; -1 for the rest."""

    size: list[int]

    def apply(self, sch: Any, op: Operation | Tensor, axis: IterVar) -> list[IterVar]:
        """Split a loop of the stage `sch[op]`; the outermost part takes what the others leave.

        Returns:
            the parts, outermost first.
        """
        parts = []
        # from outside: each cut leaves as much inside as all further parts hold together
        for place in range(1, len(self.size)):
            outer, axis = sch[op].split(axis, factor=prod(self.size[place:]))
            parts.append(outer)
        return [*parts, axis]

    def __repr__(self) -> str:
        return str(list(self.size))


@dataclass(frozen=True)
class ReorderEntity:
    """An order of loops: place by place, which of the given loops stands there."""

    perm: Sequence[int]

    def apply(self, sch: Any, op: Operation | Tensor, axes: Sequence[IterVar]) -> list[IterVar]:
        """Reorder loops of the stage `sch[op]`; places beyond the given loops are left out.

        Returns:
            the loops in their new order.
        """
        ordered = [axes[place] for place in self.perm if place < len(axes)]
        sch[op].reorder(*ordered)
        return ordered

    def __repr__(self) -> str:
        return str(self.perm)


@dataclass(frozen=True)
class AnnotateEntity:
    """What happens to each of some loops: a word of `ANNOTATIONS`; or the places of the loops at which caches are filled."""

    anns: Sequence[Any]

    def apply(
        self,
        sch: Any,
        op: Operation | Tensor,
        axes: Sequence[IterVar],
        axis_lens: Sequence[int] | None = None,
        max_unroll: int | None = None,
        vec_size: Sequence[int] | None = None,
        cfg: Any = None,
        source: Sequence[Any] | None = None,
    ) -> list[IterVar]:
        """Annotate loops of the stage `sch[op]`.

        Args:
            axes: the loops, outermost first.
            axis_lens: their extents, where the limits that follow are to be kept.
            max_unroll: the longest loop that may be unrolled.
            vec_size: the extents that a loop of vectors may have.
            cfg: is told of a limit that isn't kept, and so makes no program.
            source: for places of caches: the tensors, one for each place, or a list of tensors for each.

        Returns:
            the loops; those that were fused stand in place of the inner one.

        Raises:
            InstantiationError: for a limit that isn't kept, without `cfg`.
        """
        axes = list(axes)
        if source is not None:
            for tensors, place in zip(source, self.anns, strict=False):
                for tensor in tensors if isinstance(tensors, (list, tuple)) else [tensors]:
                    sch[tensor].compute_at(sch[op], axes[place])
            return axes
        for place, word in enumerate(self.anns):
            length = None if axis_lens is None else axis_lens[place]
            if word == "unroll":
                if length is not None and max_unroll is not None and length > max_unroll:
                    _refuse(cfg, f"a loop of {length} iterations is unrolled; the limit is {max_unroll}")
                sch[op].unroll(axes[place])
            elif word == "vec":
                if length is not None and vec_size is not None and length not in vec_size:
                    _refuse(cfg, f"a loop of {length} iterations is made a vector; those may have {list(vec_size)}")
                sch[op].vectorize(axes[place])
            elif word == "fuse":
                # in place of the inner one, so that a "fuse" that follows goes on with it
                axes[place + 1] = sch[op].fuse(axes[place], axes[place + 1])
            elif word != "none":
                sch[op].bind(axes[place], thread_axis(word))
        return axes

    def __repr__(self) -> str:
        return str(self.anns)


@dataclass(frozen=True)
class OtherOptionEntity:
    """One of the values of a knob."""

    val: Any

    def __repr__(self) -> str:
        return str(self.val)


def _refuse(cfg: Any, message: str) -> None:
    if cfg is None:
        raise InstantiationError(message)
    cfg.raise_error(message)


Entity = SplitEntity | ReorderEntity | AnnotateEntity | OtherOptionEntity
# How logs call the kinds of entities, and which field they hold.
ENTITY_CODES: Mapping[type[Any], tuple[str, str]] = {
    SplitEntity: ("sp", "size"),
    ReorderEntity: ("re", "perm"),
    AnnotateEntity: ("an", "anns"),
    OtherOptionEntity: ("ot", "val"),
}


def entity_to_json(entity: Entity) -> list[Any]:
    """The code of an entity, and its value."""
    code, field = ENTITY_CODES[type(entity)]
    value = getattr(entity, field)
    return [code, list(value) if isinstance(value, (list, tuple, range)) else value]


def entity_features(entity: Entity) -> list[float]:
    """What a model sees of an entity: sizes, places, one column for each word."""
    match entity:
        case SplitEntity(size):
            return [float(part) for part in size]
        case ReorderEntity(perm):
            return [float(place) for place in perm]
        case AnnotateEntity(anns):
            if all(isinstance(word, int) for word in anns):
                return [float(place) for place in anns]
            return [float(word == known) for word in anns for known in ANNOTATIONS]
    return [float(entity.val) if isinstance(entity.val, (int, float)) else 0.0]


class TransformSpace:
    """The candidates of a knob, in order.

    Args of subclasses: the axes that the knob is about, a policy that says how candidates are made, and options of the policy.
    """

    POLICIES: ClassVar[tuple[str, ...]] = ()

    def __init__(self) -> None:
        self.entities: list[Any] = []
        self.num_output = 0

    def __len__(self) -> int:
        return len(self.entities)

    def __getitem__(self, index: int) -> Entity:
        found: Entity = self.entities[index]
        return found

    @staticmethod
    def get_num_output(*args: Any, **kwargs: Any) -> int:
        """How many axes the knob gives back."""
        return 0

    def outputs(self) -> list[Axis]:
        """The axes that the knob gives back."""
        return [Axis(self, index) for index in range(self.num_output)]

    def values(self) -> np.ndarray[Any, np.dtype[np.int64]]:
        """The candidates as whole numbers [n, parts]; numbers of candidates where they are none."""
        return np.arange(len(self), dtype=np.int64).reshape(-1, 1)

    def _fill(self, made: Iterator[Any], wanted: Callable[[Any], bool] | None = None) -> None:
        for entity in made:
            if wanted is None or wanted(entity):
                self.entities.append(entity)
            # while they are listed: what is too many would not fit in memory first
            if len(self.entities) > MAX_CANDIDATES:
                raise TuningError(f"a knob has at most {MAX_CANDIDATES} candidates; make two of it, or limit it by max_factor or a filter")

    def _unknown(self, policy: str) -> TuningError:
        return TuningError(f"{type(self).__name__}: Invalid policy: {policy!r}; policies: {', '.join(self.POLICIES)}")


@dataclass(frozen=True)
class Axis:
    """A loop that a knob makes: the part with a number of a split."""

    space: Any
    index: int

    def __repr__(self) -> str:
        return f"Axis(space={self.space}, index={self.index})"


class VirtualAxis(TransformSpace):
    """A loop as knobs know it: its length.

    Args:
        var: a loop of a schedule or an axis of an operation, another VirtualAxis, or its length.
        name: for people; numbered by default.

    Raises:
        TuningError: for other things, and for a length that isn't constant.
    """

    name_ct = 0

    def __init__(self, var: Any, name: str | None = None) -> None:
        super().__init__()
        VirtualAxis.name_ct += 1
        self.num_output = 1
        known = var.name if isinstance(var, VirtualAxis) else var.var.name if isinstance(var, IterVar) else f"axis_{VirtualAxis.name_ct}"
        self.name: str = known if name is None else name
        extent = var.dom.extent if isinstance(var, IterVar) and var.dom is not None else var
        length = var.length if isinstance(var, VirtualAxis) else as_int(extent)
        if length is None:
            raise TuningError(f"a knob is about a loop of constant length, or a length itself, not {var!r}")
        self.length: int = length

    @staticmethod
    def get_num_output(*args: Any, **kwargs: Any) -> int:
        """One."""
        return 1

    def __repr__(self) -> str:
        return f"vaxis({self.name})"


class SplitSpace(TransformSpace):
    """The ways to split a loop.

    Args:
        axes: the loop.
        policy: where the sizes of the inner parts come from: "factors" of the length; "power2", powers of two up to it; "verbose", both;
            "candidate", a list.
        num_outputs: parts.
        max_factor: the largest size of an inner part.
        no_tail: only sizes whose product divides the length; so it is for factors.
        filter: which entities to keep.
        candidate: for that policy, lists of sizes.

    Raises:
        TuningError: for another policy, no parts, or sizes that aren't as many as parts.
    """

    POLICIES = ("factors", "power2", "verbose", "candidate")

    def __init__(self, axes: Any, policy: str, **kwargs: Any) -> None:
        super().__init__()
        axis = axes[0] if isinstance(axes, (list, tuple)) else axes
        self.policy = policy
        self.product = VirtualAxis(axis).length
        self.num_output = self.get_num_output(axes, policy, **kwargs)
        wanted = kwargs.get("filter")
        if policy == "candidate":
            sizes = [list(size) for size in kwargs.get("candidate", ())]
            if not sizes or any(len(size) != self.num_output for size in sizes):
                raise TuningError(f"the candidates of a split are lists of {self.num_output} sizes, not {kwargs.get('candidate')!r}")
            self._fill(map(SplitEntity, sizes), wanted)
            return
        if policy not in self.POLICIES:
            raise self._unknown(policy)
        if self.product < 1:
            raise TuningError(f"a loop of {self.product} iterations has no parts")
        factors, powers = get_factors(self.product), get_pow2s(self.product)
        listed = {"factors": factors, "power2": powers, "verbose": sorted({*factors, *powers})}[policy]
        most, self.no_tail = kwargs.get("max_factor"), bool(kwargs.get("no_tail", policy == "factors"))
        self._factors = [factor for factor in listed if most is None or factor <= most]
        self._fill((SplitEntity([-1, *inner]) for inner in self._inner(self.num_output - 1, self.product)), wanted)

    def _inner(self, parts: int, room: int) -> Iterator[list[int]]:
        """Sizes of inner parts whose product is at most `room`: the outermost varies fastest."""
        if not parts:
            yield []
            return
        for last in self._factors:
            if last > room or (self.no_tail and room % last):
                continue
            yield from ([*inner, last] for inner in self._inner(parts - 1, room // last))

    @staticmethod
    def get_num_output(axes: Any = None, policy: str = "", **kwargs: Any) -> int:
        """The number of parts.

        Raises:
            TuningError: if there are less than two.
        """
        parts = kwargs.get("num_outputs")
        if not isinstance(parts, int) or parts < 2:
            raise TuningError(f"define_split takes num_outputs, at least 2, not {parts!r}")
        return parts

    def values(self) -> np.ndarray[Any, np.dtype[np.int64]]:
        """The sizes, with the rest in place of -1."""
        inner = np.array([entity.size for entity in self.entities], np.int64).reshape(len(self), self.num_output)
        # rounded up: sizes that don't divide leave a part that isn't full
        inner[:, 0] = -(-self.product // np.maximum(1, inner[:, 1:].prod(axis=1)))
        return inner

    def __repr__(self) -> str:
        return f"Split(policy={self.policy}, product={self.product}, num_outputs={self.num_output}) len={len(self)}"


class ReorderSpace(TransformSpace):
    """Orders of loops.

    Args:
        axes: the loops.
        policy: "identity"; "all" orders; "interval_all", all orders of the loops from `interval[0]` up to, without, `interval[1]`;
            "candidate", lists of these axes; "interleave", level by level from outside, of the tiles `spatial` and `reduce`, each with its
            innermost loops last; "interleave_cuda", with all of the reduction before the innermost spatial loops.

    Raises:
        TuningError: for another policy, axes that aren't among the given ones, or more orders than can be listed.
    """

    POLICIES = ("identity", "all", "interval_all", "candidate", "interleave", "interleave_cuda")

    def __init__(self, axes: Sequence[Any], policy: str, **kwargs: Any) -> None:
        super().__init__()
        self.policy = policy
        self.num_output = len(axes)
        places = range(len(axes))
        if policy == "identity":
            self._fill(iter([ReorderEntity(tuple(places))]))
        elif policy in ("all", "interval_all"):
            begin, end = kwargs["interval"] if policy == "interval_all" else (0, len(axes))
            self._check_count(end - begin)
            orders = permutations(places[begin:end])
            self._fill(ReorderEntity((*places[:begin], *order, *places[end:])) for order in orders)
        elif policy == "candidate":
            self._fill(ReorderEntity([self._place(axes, axis) for axis in order]) for order in kwargs["candidate"])
        elif policy in ("interleave", "interleave_cuda"):
            spatial, reduce = ([[self._place(axes, axis) for axis in chain] for chain in kwargs[name]] for name in ("spatial", "reduce"))
            outer, inner = _level_by_level(spatial), [chain[-1] for chain in spatial]
            reduced, last = _level_by_level(reduce), [chain[-1] for chain in reduce]
            order = [*outer, *reduced, *inner, *last] if policy == "interleave" else [*outer, *reduced, *last, *inner]
            self._fill(iter([ReorderEntity(order)]))
        else:
            raise self._unknown(policy)

    def _check_count(self, loops: int) -> None:
        if loops > 0 and factorial(loops) > MAX_CANDIDATES:
            raise TuningError(f"{loops} loops have {factorial(loops)} orders, and {MAX_CANDIDATES} can be listed; give candidates")

    @staticmethod
    def _place(axes: Sequence[Any], axis: Any) -> int:
        # loops of a schedule are known by identity; an `Axis` is made anew by each `outputs`, and equal by value
        found = next((place for place, known in enumerate(axes) if known is axis or (isinstance(axis, Axis) and known == axis)), None)
        if found is None:
            raise TuningError(f"define_reorder: {axis!r} is none of the axes {list(axes)!r}")
        return found

    @staticmethod
    def get_num_output(axes: Sequence[Any] = (), policy: str = "", **kwargs: Any) -> int:
        """As many as are given."""
        return len(axes)

    def __repr__(self) -> str:
        return f"Reorder(policy={self.policy}) len={len(self)}"


def _level_by_level(chains: Sequence[Sequence[int]]) -> list[int]:
    """All but the innermost loop of each chain, the outermost level first; chains end at the same level."""
    deepest = max(map(len, chains), default=0)
    return [chain[len(chain) - level] for level in range(deepest, 1, -1) for chain in chains if len(chain) >= level]


class AnnotateSpace(TransformSpace):
    """What may happen to loops.

    Args:
        axes: the loops, outermost first.
        policy: "bind_gpu" and "bind_gpu_virtual", to threads; "locate_cache", at which of the loops `num_anchor` caches are filled;
            "try_unroll", "try_vec" and "try_unroll_vec", which leave each loop as it is, unroll it or make it a vector, of which there is
            one at most; a word of `ANNOTATIONS` for all loops.

    Raises:
        TuningError: for another policy, or too few loops for it.
    """

    POLICIES = ("bind_gpu", "bind_gpu_virtual", "locate_cache", "try_unroll", "try_vec", "try_unroll_vec", "none", "unroll")

    def __init__(self, axes: Sequence[Any], policy: str, **kwargs: Any) -> None:
        super().__init__()
        self.policy = policy
        self.num_output = len(axes)
        tried = {"try_unroll": ("none", "unroll"), "try_vec": ("none", "vec"), "try_unroll_vec": ("none", "unroll", "vec")}
        if policy in ("bind_gpu", "bind_gpu_virtual"):
            self._fill(iter([AnnotateEntity(_threads(len(axes), policy == "bind_gpu_virtual"))]))
        elif policy == "locate_cache":
            if not isinstance(kwargs.get("num_anchor"), int):
                raise TuningError("the policy locate_cache takes num_anchor, the number of caches")
            self._fill(map(AnnotateEntity, combinations(range(len(axes)), kwargs["num_anchor"])))
        elif policy in tried:
            words = (list(found) for found in product(tried[policy], repeat=len(axes)))
            self._fill(AnnotateEntity(found) for found in words if found.count("vec") <= 1)
        elif policy in ("none", "unroll"):
            self._fill(iter([AnnotateEntity([policy] * len(axes))]))
        else:
            raise self._unknown(policy)

    @staticmethod
    def get_num_output(axes: Sequence[Any] = (), policy: str = "", **kwargs: Any) -> int:
        """As many as are given."""
        return len(axes)

    def __repr__(self) -> str:
        return f"Annotate(policy={self.policy}) len={len(self)}"


def _threads(loops: int, is_virtual: bool) -> list[str]:
    """The words that bind loops, the outer to blocks, the inner to threads, virtual ones between; what is left over is fused."""
    groups = ("blockIdx", "vthread", "threadIdx") if is_virtual else ("blockIdx", "threadIdx")
    dimensions = min(2 if is_virtual else 3, loops // len(groups))
    if not dimensions:
        raise TuningError(f"loops are bound to {', '.join(groups)}; {loops} are too few")
    letters = "zyx"[3 - dimensions :]
    words = [group if group == "vthread" else f"{group}.{letter}" for group in groups for letter in letters]
    return ["fuse"] * (loops - len(words)) + words


class OtherOptionSpace(TransformSpace):
    """Values to choose from.

    Args:
        axes, policy: unused.
        candidate: the values: numbers, words, True, False, None, and lists of them.

    Raises:
        TuningError: without a value.
    """

    def __init__(self, axes: Any, policy: Any, **kwargs: Any) -> None:
        super().__init__()
        self._fill(map(OtherOptionEntity, kwargs.get("candidate", ())))
        if not self.entities:
            raise TuningError("define_knob takes a list of at least one candidate")

    def __repr__(self) -> str:
        return f"OtherOption({self.entities}) len={len(self)}"
