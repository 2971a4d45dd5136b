"""Hashes of programs that agree with their structural equality."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from hashlib import blake2b
from typing import Any

from ..dataclass import dataclass
from .buffer import Buffer
from .dtype import IntValue
from .expr import IntImm, IterVar, PrimExpr, Var
from .function import IRModule, PrimFunc
from .structural_fields import array_key, bound_parts, field_names, layout_fields, named_functions, signature
from .structured import Declared, Defines, Proven, Structured


def structural_hash(node: Any, map_free_vars: bool = False) -> int:
    """A 64 bit hash that equal programs share; the same in every process unless there are free variables.

    Args:
        map_free_vars: number free variables by their first use, to fit `structural_equal` with the same flag.
    """
    return int.from_bytes(_Digest(map_free_vars).of(node), "little")


class _Digest:
    """Hashes bottom up on a stack: `_todo` holds values and actions, `_results` the digests of what is done.

    A bound variable counts as the number of variables bound around it, so renaming changes nothing.
    """

    def __init__(self, map_free_vars: bool) -> None:
        self._map_free_vars = map_free_vars
        self._levels: dict[Any, list[int]] = {}
        self._depth = 0
        self._defined: list[Any] = []  # of nodes of higher rows, in order
        self._free: dict[Any, int] = {}
        self._memo: dict[int, tuple[Any, bytes]] = {}  # by node, which is kept alive, under the present binding
        self._todo: list[Any] = []
        self._results: list[bytes] = []

    def of(self, root: Any) -> bytes:
        """The digest of any value."""
        self._todo.append(_plain_map(root))
        while self._todo:
            item = self._todo.pop()
            if isinstance(item, _Action):
                item.run()
            else:
                self._visit(item)
        return self._results[0]

    def _visit(self, node: Any) -> None:
        found = self._memo.get(id(node))
        if found is not None:
            self._results.append(found[1])
        elif isinstance(node, Var):
            self._results.append(self._var(node))
        elif isinstance(node, PrimFunc):
            buffers = tuple(node.buffer_map.get(p) for p in node.params)
            self._scoped(node, (), signature(node), (len(node.params), buffers, dict(node.attrs), node.body))
        elif isinstance(node, Structured):
            self._structured(node)
        elif isinstance(node, (Defines, Declared, Proven)):
            self._special(node)
        elif (bound := bound_parts(node)) is not None:
            self._scoped(node, *bound)
        elif (operands := self._entries(node) if isinstance(node, Mapping) else _operands(node)) is not None:
            self._todo.append(_Action(lambda: self._combine(node, len(operands))))
            self._todo.extend(reversed(operands))
        elif hasattr(node, "numpy"):
            dtype, shape, data = array_key(node)
            self._results.append(_hash("array", dtype, str(shape), data))
        else:
            # the class counts besides the text, and the text tells -0.0 from 0.0
            self._results.append(_hash("int" if isinstance(node, IntValue) else type(node).__name__, repr(node)))

    def _entries(self, node: Mapping[Any, Any]) -> list[Any]:
        """Keys and values in an order that equal mappings share: of variables that of their definitions, whatever they are called."""

        def place(key: Any) -> tuple[str, int, str]:
            levels = self._levels.get(key) if isinstance(key, Var) else None
            return type(key).__name__, levels[-1] if levels else -1, str(key)

        return [item for key in sorted(node, key=place) for item in (key, _plain_map(node[key]))]

    def _combine(self, node: Any, count: int, *extra: str) -> None:
        """Replace the digests of the operands by the digest of the node."""
        split = len(self._results) - count
        kind = "tuple" if isinstance(node, list) else type(node).__name__  # which equal lists
        digest = _hash(kind, *extra, *self._results[split:])
        del self._results[split:]
        self._results.append(digest)
        if isinstance(node, (PrimExpr, Structured)):  # what several others may share
            self._memo[id(node)] = node, digest

    def _structured(self, node: Any) -> None:
        if node.structural_variable:
            self._results.append(self._var(node))
            return
        parts = [part for _, part in node.structural_parts()]
        self._todo.append(_Action(lambda: self._combine(node, len(parts))))
        if node.structural_scope:
            before, outer = (len(self._defined), self._depth), self._memo

            def leave() -> None:
                for var in self._defined[before[0] :]:
                    self._levels[var].pop()
                del self._defined[before[0] :]
                self._depth, self._memo = before[1], outer

            self._todo.append(_Action(leave))
        self._todo.extend(reversed(parts))

    def _special(self, part: Any) -> None:
        if isinstance(part, Proven):
            value = part.simplest()  # what is equal by a proof may look different
            if isinstance(value, (Var, IntImm)):
                self._visit(value)
            else:
                # What is equal by a proof has no normal form here: all such extents share one digest, and `Comparison` tells them apart.
                self._results.append(_hash("extent"))
            return
        if isinstance(part, Declared):
            self._define(part.var)
            self._todo.append(part.struct_info)
            return
        for var in part.variables:
            # As in `Comparison._special`: what is known already keeps its number.
            if not (part.only_new and self._levels.get(var)):
                self._define(var)
        self._results.append(_hash("defines", *(repr((type(v).__name__, getattr(v, "dtype", None))) for v in part.variables)))

    def _define(self, var: Any) -> None:
        self._levels.setdefault(var, []).append(self._depth)
        self._defined.append(var)
        self._depth += 1
        self._memo = {}

    def _var(self, var: Any) -> bytes:
        levels = self._levels.get(var)
        if levels:
            # The innermost binding, as the number of variables bound around it: `lambda x, y: y` is 1, whatever the names.
            return _hash("bound", str(levels[-1]), str(getattr(var, "dtype", None)))
        number = self._free.setdefault(var, len(self._free)) if self._map_free_vars else id(var)
        return _hash("free", str(number), str(getattr(var, "dtype", None)))

    def _scoped(self, node: Any, outside: tuple[Any, ...], variables: tuple[Var, ...], inside: tuple[Any, ...]) -> None:
        """Plan: what stands outside, then the variables are bound, what stands inside, and the scope ends."""
        # A digest holds under one binding: inside starts with none, and what was known outside is good again behind it.
        outer = self._memo
        types = [repr((type(v).__name__, v.dtype, v.type_annotation)) for v in variables]

        def enter() -> None:
            self._memo = {}
            for var in variables:
                self._levels.setdefault(var, []).append(self._depth)
                self._depth += 1

        def leave() -> None:
            self._memo = outer
            for var in variables:
                self._levels[var].pop()
                self._depth -= 1
            self._combine(node, len(outside) + len(inside), *types)

        self._todo += [_Action(leave), *reversed(inside), _Action(enter), *reversed(outside)]


@dataclass(frozen=True, slots=True)
class _Action:
    """Something to do between two values."""

    run: Callable[[], None]


def _plain_map(value: Any) -> Any:
    """Mappings inside of values are equal whatever their class is; those that are fields of nodes have one class anyway."""
    return dict(value) if isinstance(value, Mapping) else value


def _operands(node: Any) -> list[Any] | None:
    """The values that a node without variables of its own is made of, or None if it is hashed as one."""
    if isinstance(node, IterVar):
        return [node.var, node.dom, node.iter_type, node.thread_tag]
    if isinstance(node, (tuple, list)):
        return [_plain_map(item) for item in node]
    if isinstance(node, IRModule):
        return [dict(node.attrs), *([node.global_infos] if node.global_infos else []), named_functions(node)]
    if isinstance(node, Buffer):
        return list(layout_fields(node))
    if hasattr(node, "__dataclass_fields__"):
        return [getattr(node, name) for name in field_names(type(node))]
    return None


def _hash(*items: str | bytes) -> bytes:
    digest = blake2b(digest_size=8)
    for item in items:
        data = item.encode() if isinstance(item, str) else item
        # Lengths in front, so that "ab", "c" and "a", "bc" differ.
        digest.update(len(data).to_bytes(4, "little"))
        digest.update(data)
    return digest.digest()
