"""Where two programs differ, for `assert_structural_equal`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields
from typing import Any, cast

from .buffer import Buffer
from .expr import FloatImm, IntImm, PrimExpr, StringImm, Var
from .function import IRModule, PrimFunc
from .node import Object
from .object_path import ObjectPath
from .stmt import Stmt
from .structural import Comparison, Structural
from .structural_fields import bound_variables
from .structured import Declared, Defines, Proven, Structured

Paths = tuple[ObjectPath, ObjectPath]
# As in `structural`: what is ignored there must not be found as the first difference here.
_IGNORED = frozenset(("name", "name_hint"))
# What TVM compares first, where that is not the order of the fields.
_FIRST = {"For": ("loop_var",), "LetStmt": ("value",), "PrimFunc": ("params", "buffer_map")}


def assert_structural_equal(lhs: Structural, rhs: Structural, map_free_vars: bool = False) -> None:
    """Check that two programs are the same up to the renaming of bound variables.

    Args:
        map_free_vars: let a free variable of `lhs` stand for one of `rhs`, one to one.

    Raises:
        ValueError: with the first parts that differ, where they stand, and both programs with these parts marked.
    """
    if Comparison(map_free_vars).run(lhs, rhs):
        return
    finder = _Finder(map_free_vars)
    here, there = finder.find(lhs, rhs) or (ObjectPath(), ObjectPath())
    where = f"at {here}" if here == there else f"at {here} and {there}"
    shown = (
        side.script(path_to_underline=[path], syntax_sugar=False) if isinstance(side, Object) else str(side)
        for side, path in ((lhs, here), (rhs, there))
    )
    left, right = shown
    raise ValueError(
        f"the programs differ {where}:\n{finder.explain()}\n"
        f"ValueError: StructuralEqual check failed, caused by lhs at {here}:\n{left}\nand rhs at {there}:\n{right}"
    )


def first_difference(lhs: Structural, rhs: Structural, map_free_vars: bool = False) -> str | None:
    """A text that shows the first parts that differ, or None if the programs are equal."""
    finder = _Finder(map_free_vars)
    return None if finder.find(lhs, rhs) is None else finder.explain()


def get_first_structural_mismatch(lhs: Any, rhs: Any, map_free_vars: bool = False) -> Paths | None:
    """The paths to the first parts that differ, or None if the programs are equal."""
    return _Finder(map_free_vars).find(lhs, rhs)


class _Finder:
    """Goes down, from a pair that differs to its first part that does, binding variables on the way."""

    def __init__(self, map_free_vars: bool) -> None:
        self._map_free_vars = map_free_vars
        self._left: dict[Var, Var] = {}
        self._right: dict[Var, Var] = {}
        self._around: list[tuple[Any, Any]] = []

    def find(self, a: Any, b: Any) -> Paths | None:
        """The paths below the roots, or None for equal ones."""
        here, there = ObjectPath(), ObjectPath()
        if self._equal(a, b):
            return None
        # each step compares its parts anew, O(depth * size) in all: only on the way to an error
        while True:
            self._around.append((a, b))
            step = self._step(a, b)
            if step is None:
                return here, there
            first, second, a, b = step
            here, there = ObjectPath((*here.steps, *first.steps)), ObjectPath((*there.steps, *second.steps))
            if a is None and b is None:
                return here, there

    def _equal(self, a: Any, b: Any) -> bool:
        comparison = Comparison(self._map_free_vars)
        # On a copy of the bindings: a comparison that fails leaves ours as they are, for the parts are compared next.
        comparison.bind_all(self._left, self._right)
        if not comparison.run(a, b):
            return False
        self._left, self._right = comparison.bindings()
        return True

    def _step(self, a: Any, b: Any) -> tuple[ObjectPath, ObjectPath, Any, Any] | None:
        """The first part that differs: the way to it on both sides, and the parts (None: there is no more to say)."""
        root = ObjectPath()
        if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
            return self._in_sequences(a, b)
        if isinstance(a, Mapping) and isinstance(b, Mapping):
            return self._in_mappings(a, b)
        if type(a) is not type(b):
            return None
        if isinstance(a, Declared):
            known = a.struct_info, b.struct_info
            return None if self._equal(*known) else (root.attr("struct_info"), root.attr("struct_info"), *known)
        if isinstance(a, Proven) or (isinstance(a, Structured) and a.structural_variable):
            return None
        if isinstance(a, (Var, IntImm, FloatImm, StringImm)):
            name = "dtype" if a.dtype != b.dtype else None if isinstance(a, Var) else "value"
            return None if name is None else (root.attr(name), root.attr(name), None, None)
        parts = dict(_parts(a)), dict(_parts(b))
        # Before the parts, which mention what the node defines.
        clash = self._bind(bound_variables(a), bound_variables(b))
        for name in parts[0]:
            left, right = parts[0][name], parts[1].get(name)
            if isinstance(left, Defines):  # where more of them are defined, it is seen where they are
                # for its effect: definitions that are equal pair their variables for the parts behind
                self._equal(left, right)
                continue
            if clash is not None and _holds(left, clash[0]):
                return root.attr(name), root.attr(name), *self._clashing(left, right, clash)
            if not self._equal(left, right):
                return root.attr(name), root.attr(name), left, right
        return None

    def _in_sequences(self, a: Any, b: Any) -> tuple[ObjectPath, ObjectPath, Any, Any] | None:
        root = ObjectPath()
        for index, (left, right) in enumerate(zip(a, b, strict=False)):
            if not self._equal(left, right):
                return root.array_index(index), root.array_index(index), left, right
        if len(a) == len(b):
            return None
        # The longer one has an element here, the shorter one misses it.
        end = min(len(a), len(b))
        ends = root.missing_array_element(end), root.array_index(end)
        return (*(ends if len(a) < len(b) else ends[::-1]), None, None)

    def _in_mappings(self, a: Any, b: Any) -> tuple[ObjectPath, ObjectPath, Any, Any] | None:
        root = ObjectPath()
        for key, left in a.items():
            other = self._left.get(key, key) if isinstance(key, Var) else key
            if other not in b:
                return root.map_value(key), root.missing_map_entry(), None, None
            if not self._equal(left, b[other]):
                return root.map_value(key), root.map_value(other), left, b[other]
        extra = next((key for key in b if key not in {self._left.get(k, k) if isinstance(k, Var) else k for k in a}), None)
        return None if extra is None else (root.missing_map_entry(), root.map_value(extra), None, None)

    def _bind(self, left: tuple[Var, ...], right: tuple[Var, ...]) -> tuple[Var, Var] | None:
        """Let variables stand for each other; the first pair that can't."""
        for a, b in zip(left, right, strict=False):
            if type(a) is not type(b) or getattr(a, "dtype", None) != getattr(b, "dtype", None):
                return a, b
            self._left[a], self._right[b] = b, a
        return None

    def _clashing(self, left: Any, right: Any, clash: tuple[Var, Var]) -> tuple[Any, Any]:
        self._left.pop(clash[0], None)
        return left, right

    def explain(self) -> str:
        """The parts that differ, and the nearest function or statement around them."""
        a, b = self._around[-1]
        lines = [f"    lhs: {_shown(a)}", f"    rhs: {_shown(b)}"]
        for outer in reversed(self._around[:-1]):
            if isinstance(outer[0], (Stmt, PrimFunc, Buffer)) or (isinstance(outer[0], Structured) and outer[0].structural_line):
                lines += [f"in lhs: {_shown(outer[0])}", f"in rhs: {_shown(outer[1])}"]
                break
        return "\n".join(lines)


def _holds(value: Any, var: Var) -> bool:
    return value is var or (isinstance(value, (tuple, list)) and any(item is var for item in value))


def _parts(node: Any) -> Iterator[tuple[str, Any]]:
    """The fields of a node that tell programs apart."""
    if isinstance(node, IRModule):
        yield "functions", dict(node.functions)
        yield "attrs", dict(node.attrs)
    elif isinstance(node, Structured):
        yield from node.structural_parts()
    elif hasattr(node, "__dataclass_fields__"):
        names = [f.name for f in fields(cast(Any, node)) if f.init and f.name not in _IGNORED]
        first = [name for name in _FIRST.get(type(node).__name__, ()) if name in names]
        for name in (*first, *(name for name in names if name not in first)):
            yield name, getattr(node, name)


def _shown(value: Any) -> str:
    """A value on one line: of a statement the line that it begins with."""
    if isinstance(value, (PrimFunc, IRModule)):
        return f"{type(value).__name__} {value.attrs}"
    if isinstance(value, Declared):
        return f"{value.var}: {value.struct_info}"
    if isinstance(value, Proven):
        return str(value.value)
    if isinstance(value, (Stmt, PrimExpr, Structured)):
        lines = [line for line in str(value).split("\n") if " = T.Buffer(" not in line and " = T.int" not in line]
        return lines[0] + (" ..." if len(lines) > 1 else "")
    return repr(value)
