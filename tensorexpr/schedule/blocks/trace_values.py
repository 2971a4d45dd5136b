"""What instructions take, as Python and as JSON: handles, numbers, texts, expressions, lists and mappings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...arith import IndexMap, index_map_from_json
from ...errors import RecordError
from ...tir.expr import FloatImm, IntImm, PrimExpr, StringImm, Var
from ...tir.rewriting import variables
from .handles import RV, BlockRV, LoopRV
from .trace_expressions import KEY, expression_from_json, expression_to_json, in_names, in_other_handles

MAX_INSTRUCTIONS = 10_000


def handles_in(values: Sequence[Any]) -> list[RV]:
    """The handles among values, however deep."""
    found: list[RV] = []
    for value in values:
        if isinstance(value, (BlockRV, LoopRV, Var)):
            found.append(value)
        elif isinstance(value, PrimExpr):
            found += variables(value)
        elif isinstance(value, IndexMap):
            found += value.free_variables
        elif isinstance(value, (list, tuple)):
            found += handles_in(value)
        elif isinstance(value, Mapping):
            found += handles_in(list(value.values()))
    return found


def mapped(value: Any, meaning: Mapping[RV, RV]) -> Any:
    """A value with its handles replaced by what they mean elsewhere."""
    if isinstance(value, (BlockRV, LoopRV, Var)):
        return meaning.get(value, value)
    if isinstance(value, PrimExpr):
        return in_other_handles(value, meaning)
    if isinstance(value, IndexMap):
        return value.with_values({var: in_other_handles(var, meaning) for var in value.free_variables})
    if isinstance(value, (list, tuple)):
        return type(value)(mapped(item, meaning) for item in value)
    return {key: mapped(item, meaning) for key, item in value.items()} if isinstance(value, dict) else value


def _named(index_map: IndexMap, names: Mapping[RV, str]) -> IndexMap:
    """A map with sampled numbers under their names in the trace."""
    return index_map.with_values({var: Var(names[var], var.dtype) for var in index_map.free_variables if var in names})


def as_python_text(value: Any, names: Mapping[RV, str]) -> str:
    """A value as Python; handles by their names."""
    if isinstance(value, IndexMap):
        return _named(value, names).as_python()
    if isinstance(value, (BlockRV, LoopRV, Var)):
        return names.get(value, "_")
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(as_python_text(item, names) for item in value)}]"
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{as_python_text(k, names)}: {as_python_text(v, names)}" for k, v in value.items()) + "}"
    if isinstance(value, str):
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
    as_python = getattr(value, "as_python", None)
    return as_python() if as_python is not None else in_names(value, names) if isinstance(value, PrimExpr) else repr(value)


def as_json_value(value: Any, names: Mapping[RV, str]) -> Any:
    """An input: a handle by its name, a string in quotes."""
    if isinstance(value, (BlockRV, LoopRV, Var)):
        return names[value]
    if value is None:
        return "None"
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, IndexMap):
        return _named(value, names).to_json()
    if isinstance(value, PrimExpr) and variables(value):
        return expression_to_json(value, names)
    if isinstance(value, Mapping):
        return {key: as_json_value(item, names) for key, item in value.items()}
    return [as_json_value(item, names) for item in value] if isinstance(value, (list, tuple)) else plain(value)


def plain(value: Any) -> Any:
    """An attribute or a decision as JSON."""
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, Mapping):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, (IntImm, FloatImm, StringImm)):
        return value.value
    to_json = getattr(value, "to_json", None)
    # a truth value is a number in JSON, which `Primitive.shown` turns back
    return int(value) if isinstance(value, bool) else to_json() if to_json is not None else value


def from_json_value(value: Any, meaning: Mapping[str, RV]) -> Any:
    """An input that `as_json_value` wrote.

    Args:
        meaning: the handles that instructions gave so far, by name.

    Raises:
        RecordError: for a handle that no instruction gave yet.
    """
    if isinstance(value, str):
        # quotes tell a text from the name of a handle, from a map and from None
        if value.startswith('"') and value.endswith('"') and len(value) > 1:
            return value[1:-1]
        if value.startswith("{"):
            return index_map_from_json(value, free={name: rv for name, rv in meaning.items() if isinstance(rv, Var)})
        if value == "None":
            return None
        if value not in meaning:
            raise RecordError(f"the trace uses {value[:40]!r} before an instruction gives it")
        return meaning[value]
    if isinstance(value, dict):
        if set(value) == {KEY}:
            return expression_from_json(value[KEY], meaning)
        return {key: from_json_value(item, meaning) for key, item in value.items()}
    return [from_json_value(item, meaning) for item in value] if isinstance(value, list) else value


def checked_trace(data: Any) -> tuple[list[Any], list[Any]]:
    """The instructions and decisions of JSON, by shape.

    Raises:
        RecordError: if they have another one.
    """
    if not isinstance(data, (list, tuple)) or len(data) != 2 or not all(isinstance(part, list) for part in data):
        raise RecordError("a trace is a list of two lists: instructions and decisions")
    insts, decisions = data
    if len(insts) > MAX_INSTRUCTIONS:
        raise RecordError(f"a trace has at most {MAX_INSTRUCTIONS} instructions, not {len(insts)}")
    for number, inst in enumerate(insts):
        if not _is_instruction(inst):
            raise RecordError(f"instruction {number} is no [kind, inputs, attrs, outputs]: {str(inst)[:80]}")
    for decision in decisions:
        of_whom = decision[0] if isinstance(decision, list) and len(decision) == 2 else None
        if type(of_whom) is not int or not 0 <= of_whom < len(insts):
            raise RecordError(f"a decision is [number of the instruction, value], not {str(decision)[:80]}")
    return insts, decisions


def _is_instruction(inst: Any) -> bool:
    """True for [kind, inputs, attrs, outputs] with names of blocks (b0), loops (l1) and values (v2) as outputs."""
    match inst:
        case [str(), list(), list(), list(outputs)] if isinstance(inst, list):
            return all(isinstance(name, str) and name.startswith(("b", "l", "v")) for name in outputs)
    return False
