"""Equality of programs up to the names and identities of what they bind.

Two functions are equal if one becomes the other by renaming parameters, loop variables, allocated pointers and the
like. Free variables are equal only to themselves, unless `map_free_vars` lets them pair up. A buffer that no
statement defines is a view: it equals any view of the same layout over the same data. Hashes that agree with it are
made by `structural_digest`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from .buffer import Buffer
from .expr import CommReducer, EqualOp, FloatImm, IntImm, IterVar, PrimExpr, StringImm, Var
from .function import IRModule, PrimFunc
from .rewriting import substitute, variables
from .stmt import Stmt
from .structural_fields import array_key, bound_parts, field_names, layout_fields, named_functions, signature
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


class Comparison:
    """Walks two programs side by side on a stack; `_pairs` says which bound variable stands for which."""

    def __init__(self, map_free_vars: bool) -> None:
        self._map_free_vars = map_free_vars
        self._left: dict[Any, Any] = {}
        self._right: dict[Any, Any] = {}
        self._same: dict[tuple[int, int], Any] = {}  # pairs found equal under the present binding, kept alive: ids are theirs
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
                self._push(layout_fields(a), layout_fields(b))
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
            if hasattr(a, "structural_bound_parts"):
                return self._node(a, b)
            return self._push(tuple(getattr(a, n) for n in field_names(type(a))), tuple(getattr(b, n) for n in field_names(type(a))))
        if type(a) is type(b) and hasattr(a, "numpy"):
            return a is b or array_key(a) == array_key(b)
        if isinstance(a, (float, np.floating)):
            return type(a) is type(b) and repr(a) == repr(b)  # as of FloatImm, and as they are hashed
        return type(a) is type(b) and bool(a == b)

    def _push(self, left: tuple[Any, ...], right: tuple[Any, ...]) -> bool:
        # The stack is popped from its end: reversed, parts are compared in reading order, and definitions bind before uses.
        self._todo.extend(reversed(list(zip(left, right, strict=False))))
        # Pairs of unequal length may be on the stack already; False ends the walk before anyone takes them off.
        return len(left) == len(right)

    def _module(self, a: IRModule, b: IRModule) -> bool:
        left, right = named_functions(a), named_functions(b)
        self._push((dict(a.attrs), a.global_infos, left), (dict(b.attrs), b.global_infos, right))
        return left.keys() == right.keys()

    def _mapping(self, a: Mapping[Any, Any], b: Mapping[Any, Any]) -> bool:
        """Compare by keys, whatever their order; a variable as key stands for the one it is bound to."""
        keys = [self._left.get(key, key) if isinstance(key, Var) else key for key in a]
        # keys are distinct on both sides: as many of them, and none missing, are the same ones
        return len(a) == len(b) and all(key in b for key in keys) and self._push(tuple(a.values()), tuple(b[key] for key in keys))

    def _structured(self, a: Any, b: Any) -> bool:
        """Compare nodes of higher rows: variables, or what is made of parts."""
        if a.structural_variable:
            if a in self._left or b in self._right:
                return self._left.get(a) is b and self._right.get(b) is a
            return self._special(Declared(a), Declared(b)) if self._map_free_vars else a is b
        key = (id(a), id(b))
        if key in self._same:  # a value that many others use is compared once
            return True
        self._same[key] = a, b
        if a.structural_scope:
            # Copies: definitions inside write into the tables themselves.
            outside = dict(self._left), dict(self._right), dict(self._same)

            def leave() -> bool:
                self._left, self._right, self._same = outside
                return True

            self._todo.append(leave)  # below the parts on the stack, so it runs behind them
        left, right = a.structural_parts(), b.structural_parts()
        return self._push(tuple(part for _, part in left), tuple(part for _, part in right))

    def _special(self, a: Any, b: Any) -> bool:
        # Settled before the walk goes on: a proof needs the bindings as they are at this place.
        if isinstance(a, Proven):
            return self._proven(a, b)
        if isinstance(a, Declared):
            if self._left.get(a.var) is not b.var:
                self._same.clear()  # what was found equal may hold the variables unbound
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
            # free variables that the trial paired stay paired from here on
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
        # what was found equal may hold `a` as a free variable equal to itself, which it isn't behind this
        self._same.clear()
        return type(a) is type(b) and a.dtype == b.dtype and a.type_annotation == b.type_annotation

    def _node(self, a: Any, b: Any) -> bool:
        key = (id(a), id(b))
        if key in self._same:
            return True
        if isinstance(a, PrimExpr):
            self._same[key] = a, b  # a mismatch inside ends the whole comparison, so the promise can be given early
        bound = bound_parts(a)
        if bound is None:
            names = field_names(type(a))
            return self._push(tuple(getattr(a, n) for n in names), tuple(getattr(b, n) for n in names)) if names else a is b
        other = bound_parts(b)
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
        left, right = signature(a), signature(b)
        if len(a.params) != len(b.params) or len(left) != len(right) or len(a.buffer_map) != len(b.buffer_map):
            return False
        # By the order of parameters: the keys are variables, each program's own.
        buffers = tuple(a.buffer_map.get(p) for p in a.params), tuple(b.buffer_map.get(p) for p in b.params)
        self._scoped(left, right, (buffers[0], dict(a.attrs), a.body), (buffers[1], dict(b.attrs), b.body))
        return True
