"""Equality and hash of programs up to the names and identities of what they bind.

Two functions are equal if one becomes the other by renaming parameters, loop variables, allocated pointers and the
like. Free variables are equal only to themselves, unless `map_free_vars` lets them pair up. A buffer that no
statement defines is a view: it equals any view of the same layout over the same data.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from hashlib import blake2b
from typing import Any, cast

import numpy as np

from .block import Block
from .buffer import Buffer
from .dtype import IntValue
from .expr import CommReducer, EqualOp, FloatImm, IntImm, IterVar, Let, PrimExpr, Reduce, StringImm, Var
from .function import IRModule, PrimFunc
from .rewriting import substitute, variables
from .scopes import buffer_vars, parts
from .stmt import BufferBind, BufferRealize, Stmt
from .structured import Declared, Defines, Proven, Structured

Structural = PrimExpr | Stmt | Buffer | PrimFunc | IRModule


def structural_equal(lhs: Any, rhs: Any, map_free_vars: bool = False) -> bool:
    """True if `lhs` and `rhs` are the same program up to the renaming of bound variables; sequences and mappings of them too.

    Args:
        map_free_vars: let a free variable of `lhs` stand for one of `rhs`, one to one.
    """
    return Comparison(map_free_vars).run(_settled(lhs), _settled(rhs))


def _settled(node: Any) -> Any:
    """`a == b` as the comparison that it stands for."""
    return node.asobject() if isinstance(node, EqualOp) else node


def structural_hash(node: Any, map_free_vars: bool = False) -> int:
    """A 64 bit hash that equal programs share; the same in every process unless there are free variables.

    Args:
        map_free_vars: number free variables by their first use, to fit `structural_equal` with the same flag.
    """
    return int.from_bytes(_Digest(map_free_vars).of(node), "little")


# Fields that do not tell programs apart: names, and what other fields determine.
_IGNORED = {"name", "name_hint"}
_field_names: dict[type, tuple[str, ...]] = {}


def _names(cls: type) -> tuple[str, ...]:
    names = _field_names.get(cls)
    if names is None:
        own = fields(cast(Any, cls)) if hasattr(cls, "__dataclass_fields__") else ()
        names = _field_names[cls] = tuple(f.name for f in own if f.init and f.name not in _IGNORED)
    return names


def _bound(node: Any) -> tuple[tuple[Any, ...], tuple[Var, ...], tuple[Any, ...]] | None:
    """For a node that binds variables: what stands outside their scope, the variables, what stands inside."""
    match node:
        case Let():
            return (node.value,), (node.var,), (node.body,)
        case Reduce():
            outside = (node.combiner, node.init, node.value_index, tuple(axis.dom for axis in node.axis))
            kinds = tuple((axis.iter_type, axis.thread_tag) for axis in node.axis)
            return (*outside, kinds), tuple(axis.var for axis in node.axis), (node.source, node.condition)
        case CommReducer():
            return (node.identity_element,), node.lhs + node.rhs, (node.result,)
        case BufferRealize():
            return (
                (node.bounds, node.condition, *([dict(node.annotations)] if node.annotations else [])),
                (node.buffer.data,),
                (node.buffer, node.body),
            )
        case Block():
            kinds = tuple((axis.iter_type, axis.thread_tag) for axis in node.iter_vars)
            inside = (node.alloc_buffers, node.match_buffers, node.reads, node.writes, node.init, node.body, node.annotations)
            return (tuple(axis.dom for axis in node.iter_vars), kinds), node.defines(), inside
        # The box is read outside; strides and offset that the view defines hold for its shape and body.
        case BufferBind():
            return (node.source,), node.defines(), (node.buffer, node.body)
        case Stmt():
            own = parts(node)
            return (_rest(node, own.defines), own.defines, own.bodies) if own.defines else None
    return None


def _rest(stmt: Stmt, defines: tuple[Var, ...]) -> tuple[Any, ...]:
    """The fields of a defining statement other than what it defines and its body."""
    values = [getattr(stmt, name) for name in _names(type(stmt)) if name != "body"]
    return tuple(v.thread_tag if isinstance(v, IterVar) else v for v in values if not any(v is var for var in defines))


class Comparison:
    """Walks two programs side by side on a stack; `_pairs` says which bound variable stands for which."""

    def __init__(self, map_free_vars: bool) -> None:
        self._map_free_vars = map_free_vars
        self._left: dict[Any, Any] = {}
        self._right: dict[Any, Any] = {}
        self._same: set[tuple[int, int]] = set()  # pairs found equal under the present binding
        self._todo: list[tuple[Any, Any] | Callable[[], bool]] = []

    def bind_all(self, left: Mapping[Var, Var], right: Mapping[Var, Var]) -> None:
        """Let variables stand for others from the start."""
        self._left.update(left)
        self._right.update(right)

    def bindings(self) -> tuple[dict[Var, Var], dict[Var, Var]]:
        """Which variable stands for which, in both directions."""
        return self._left, self._right

    def run(self, a: Any, b: Any) -> bool:
        """Whether two values are the same."""
        # A stack of our own, as bodies nest deeper than Python recurses.
        self._todo.append((a, b))
        while self._todo:
            item = self._todo.pop()
            if not (item() if callable(item) else self._compare(*item)):
                return False
        return True

    def _compare(self, a: Any, b: Any) -> bool:
        """Compare two values, or put the comparison of their parts on the stack."""
        # Before the match, whose cases take b to be of a's class. Sequences and mappings are equal across classes.
        if isinstance(a, (PrimExpr, Stmt, Buffer, CommReducer, IterVar, PrimFunc, IRModule, Structured)) and type(a) is not type(b):
            return False
        match a:
            case Var():
                return self._var(a, b)
            case IntImm() | FloatImm() | StringImm():
                return a is b  # by bits: 0.0 is not -0.0, and NaN is itself
            case PrimExpr() | Stmt() | CommReducer():
                return self._node(a, b)
            case IterVar():
                self._push((a.var, a.dom, a.iter_type, a.thread_tag), (b.var, b.dom, b.iter_type, b.thread_tag))
                return True
            case Buffer():
                self._push(_layout(a), _layout(b))
                return True
            case PrimFunc():
                return self._function(a, b)
            case IRModule():
                return self._module(a, b)
            case Structured():
                return self._structured(a, b)
            case Defines() | Declared() | Proven():
                return type(a) is type(b) and self._special(a, b)
            case tuple() | list():
                return isinstance(b, (tuple, list)) and self._push(tuple(a), tuple(b))
            case Mapping():
                return isinstance(b, Mapping) and self._mapping(a, b)
        if hasattr(a, "__dataclass_fields__") and type(a) is type(b):  # Range, types
            return self._push(tuple(getattr(a, n) for n in _names(type(a))), tuple(getattr(b, n) for n in _names(type(a))))
        if type(a) is type(b) and hasattr(a, "numpy"):
            return a is b or _array_key(a) == _array_key(b)
        if isinstance(a, (float, np.floating)):
            return type(a) is type(b) and repr(a) == repr(b)  # as of FloatImm, and as they are hashed
        return type(a) is type(b) and bool(a == b)

    def _push(self, left: tuple[Any, ...], right: tuple[Any, ...]) -> bool:
        # The stack is popped from its end: reversed, parts are compared in reading order, and definitions bind before uses.
        self._todo.extend(reversed(list(zip(left, right, strict=False))))
        # Pairs of unequal length may be on the stack already; False ends the walk before anyone takes them off.
        return len(left) == len(right)

    def _module(self, a: IRModule, b: IRModule) -> bool:
        left, right = _functions(a), _functions(b)
        self._push((dict(a.attrs), a.global_infos, left), (dict(b.attrs), b.global_infos, right))
        return left.keys() == right.keys()

    def _mapping(self, a: Mapping[Any, Any], b: Mapping[Any, Any]) -> bool:
        """Compare by keys, whatever their order; a variable as key stands for the one it is bound to."""
        keys = [self._left.get(key, key) if isinstance(key, Var) else key for key in a]
        return len(a) == len(b) and all(key in b for key in keys) and self._push(tuple(a.values()), tuple(b[key] for key in keys))

    def _structured(self, a: Any, b: Any) -> bool:
        """Compare nodes of higher rows: variables, or what is made of parts."""
        if a.structural_variable:
            if a in self._left or b in self._right:
                return self._left.get(a) is b and self._right.get(b) is a
            return self._special(Declared(a), Declared(b)) if self._map_free_vars else a is b
        if a.structural_scope:
            # Copies: definitions inside write into the tables themselves.
            outside = dict(self._left), dict(self._right)

            def leave() -> bool:
                self._same.clear()
                self._left, self._right = outside
                return True

            self._todo.append(leave)
        left, right = a.structural_parts(), b.structural_parts()
        return self._push(tuple(part for _, part in left), tuple(part for _, part in right))

    def _special(self, a: Any, b: Any) -> bool:
        # Settled before the walk goes on: a proof needs the bindings as they are at this place.
        if isinstance(a, Proven):
            return self._proven(a, b)
        if isinstance(a, Declared):
            self._left[a.var], self._right[b.var] = b.var, a.var
            return type(a.var) is type(b.var) and self._push((a.struct_info,), (b.struct_info,))
        pairs = list(zip(a.variables, b.variables, strict=False))
        known = [(x, y) for x, y in pairs if a.only_new and (x in self._left or y in self._right)]
        for x, y in pairs:
            if (x, y) not in known:
                self._left[x], self._right[y] = y, x
                self._same.clear()
        alike = all(type(x) is type(y) and getattr(x, "dtype", None) == getattr(y, "dtype", None) for x, y in pairs)
        return alike and len(a.variables) == len(b.variables) and all(self._left.get(x) is y for x, y in known)

    def _proven(self, a: Proven, b: Proven) -> bool:
        """Whether two expressions are the same, or always the same number."""
        if isinstance(a.value, (Var, IntImm)) and isinstance(b.value, (Var, IntImm)):
            return self._compare(a.value, b.value)
        trial = Comparison(self._map_free_vars)
        # In a comparison of its own: a mismatch must not end this walk, for a proof may follow, nor leave half of its bindings.
        trial.bind_all(self._left, self._right)
        if trial.run(a.value, b.value):
            self._left, self._right = trial.bindings()
            return True
        here = {var: self._left.get(var) for var in variables(a.value)}
        # No proof by way of a variable that may still be paired, or that stands for another one on the other side.
        if any(other is None and (self._map_free_vars or var in self._right) for var, other in here.items()):
            return False
        return a.equals(substitute(a.value, {var: other for var, other in here.items() if other is not None}), b.value)

    def _var(self, a: Var, b: Var) -> bool:
        if a in self._left or b in self._right:
            return self._left.get(a) is b and self._right.get(b) is a
        return self._bind(a, b) if self._map_free_vars else a is b

    def _bind(self, a: Var, b: Var) -> bool:
        """Let `a` stand for `b` from here on."""
        self._left[a], self._right[b] = b, a
        self._same.clear()
        return type(a) is type(b) and a.dtype == b.dtype and a.type_annotation == b.type_annotation

    def _node(self, a: Any, b: Any) -> bool:
        key = (id(a), id(b))
        if key in self._same:
            return True
        if isinstance(a, PrimExpr):
            self._same.add(key)  # a mismatch inside ends the whole comparison, so the promise can be given early
        bound = _bound(a)
        if bound is None:
            names = _names(type(a))
            return self._push(tuple(getattr(a, n) for n in names), tuple(getattr(b, n) for n in names)) if names else a is b
        other = _bound(b)
        if other is None or len(bound[1]) != len(other[1]):
            return False
        # Outside goes on top of it, so that is compared before the variables are bound.
        self._scoped(bound[1], other[1], bound[2], other[2])
        return self._push(bound[0], other[0])

    def _scoped(self, left: tuple[Var, ...], right: tuple[Var, ...], inside: tuple[Any, ...], other: tuple[Any, ...]) -> None:
        """Plan: bind the variables, compare the insides, restore what the variables meant before."""
        pairs = list(zip(left, right, strict=True))
        before: list[tuple[dict[Var, Var], Var, Var | None]] = []

        def enter() -> bool:
            for a, b in pairs:
                before.extend(((self._left, a, self._left.get(a)), (self._right, b, self._right.get(b))))
            return all([self._bind(a, b) for a, b in pairs])

        def leave() -> bool:
            # What was found equal under these pairs need not be equal under the ones around.
            self._same.clear()
            # Backwards: where one variable stands in the list twice, the oldest meaning comes last and stays.
            for table, var, old in reversed(before):
                if old is None:
                    table.pop(var, None)
                else:
                    table[var] = old
            return True

        self._todo.append(leave)
        self._push(inside, other)
        self._todo.append(enter)

    def _function(self, a: PrimFunc, b: PrimFunc) -> bool:
        """Parameters and the variables of their buffers are bound, then everything is compared."""
        left, right = _signature(a), _signature(b)
        if len(a.params) != len(b.params) or len(left) != len(right) or len(a.buffer_map) != len(b.buffer_map):
            return False
        # By the order of parameters: the keys are variables, each program's own.
        buffers = tuple(a.buffer_map.get(p) for p in a.params), tuple(b.buffer_map.get(p) for p in b.params)
        self._scoped(left, right, (buffers[0], dict(a.attrs), a.body), (buffers[1], dict(b.attrs), b.body))
        return True


def bound_variables(node: Any) -> tuple[Var, ...]:
    """The variables that a node defines."""
    if isinstance(node, PrimFunc):
        return _signature(node)
    bound = _bound(node)
    return () if bound is None else bound[1]


def _array_key(array: Any) -> tuple[Any, ...]:
    """What an array of the runtime is equal by."""
    values = array.numpy()
    return str(array.dtype), values.shape, values.tobytes()


def _layout(buffer: Buffer) -> tuple[Any, ...]:
    """All of a buffer; what few have counts only where it is there, so that hashes of the others stay."""
    usual = (buffer.data, buffer.dtype, buffer.shape, buffer.strides, buffer.elem_offset, buffer.data_alignment, buffer.offset_factor)
    special = buffer.buffer_type != Buffer.DEFAULT or buffer.axis_separators
    return (*usual, buffer.buffer_type, buffer.axis_separators) if special else usual


def _functions(mod: IRModule) -> dict[str, PrimFunc]:
    return {var.name_hint: func for var, func in mod.functions_items()}


def _signature(func: PrimFunc) -> tuple[Var, ...]:
    """What the arguments of a call define, in order: parameters, then pointers and sizes of their buffers."""
    buffers = [func.buffer_map[p] for p in func.params if p in func.buffer_map]
    # A size may be a parameter and stand in shapes, too: it is defined once.
    return tuple(dict.fromkeys([*func.params, *(v for b in buffers for v in (b.data, *buffer_vars(b)))]))


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
        self._memo: dict[int, bytes] = {}  # by node, under the present binding
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
        found = self._memo.get(id(node)) if isinstance(node, PrimExpr) else None
        if found is not None:
            self._results.append(found)
        elif isinstance(node, Var):
            self._results.append(self._var(node))
        elif isinstance(node, PrimFunc):
            buffers = tuple(node.buffer_map.get(p) for p in node.params)
            self._scoped(node, (), _signature(node), (len(node.params), buffers, dict(node.attrs), node.body))
        elif isinstance(node, Structured):
            self._structured(node)
        elif isinstance(node, (Defines, Declared, Proven)):
            self._special(node)
        elif (bound := _bound(node)) is not None:
            self._scoped(node, *bound)
        elif (operands := self._entries(node) if isinstance(node, Mapping) else _operands(node)) is not None:
            self._todo.append(_Action(lambda: self._combine(node, len(operands))))
            self._todo.extend(reversed(operands))
        elif hasattr(node, "numpy"):
            dtype, shape, data = _array_key(node)
            self._results.append(_hash("array", dtype, str(shape), data))
        else:
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
        # Only expressions are shared within a program; it holds them while this runs, so ids aren't used again.
        if isinstance(node, PrimExpr):
            self._memo[id(node)] = digest

    def _structured(self, node: Any) -> None:
        if node.structural_variable:
            self._results.append(self._var(node))
            return
        parts = [part for _, part in node.structural_parts()]
        self._todo.append(_Action(lambda: self._combine(node, len(parts))))
        if node.structural_scope:
            before = len(self._defined), self._depth

            def leave() -> None:
                for var in self._defined[before[0] :]:
                    self._levels[var].pop()
                del self._defined[before[0] :]
                self._depth, self._memo = before[1], {}

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
            return _hash("bound", str(levels[-1]), str(var.dtype))
        number = self._free.setdefault(var, len(self._free)) if self._map_free_vars else id(var)
        return _hash("free", str(number), str(var.dtype))

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
        return [dict(node.attrs), *([node.global_infos] if node.global_infos else []), _functions(node)]
    if isinstance(node, Buffer):
        return list(_layout(node))
    if hasattr(node, "__dataclass_fields__"):
        return [getattr(node, name) for name in _names(type(node))]
    return None


def _hash(*items: str | bytes) -> bytes:
    digest = blake2b(digest_size=8)
    for item in items:
        data = item.encode() if isinstance(item, str) else item
        # Lengths in front, so that "ab", "c" and "a", "bc" differ.
        digest.update(len(data).to_bytes(4, "little"))
        digest.update(data)
    return digest.digest()
