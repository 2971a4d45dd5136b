"""Which design space a program is of, where a search explores those of several generators: an annotation of the root block."""

from __future__ import annotations

from collections.abc import Sequence

from ..schedule.blocks import Schedule, Trace

SPACE = "meta_schedule.space"
_SKETCHES = "ScheduleTensors"
# How the names of templates' programs begin; those of sketches are words of rules.
TEMPLATE = "TemplateSpace("


def mark(sch: Schedule, name: str) -> None:
    """Note in a design space which one it is; all programs of it carry that in their traces."""
    func = sch.func_working_on or sch.mod.get_global_vars()[0]
    sch.annotate(sch.get_block("root", func.name_hint), SPACE, name)


def space_of(trace: Trace | None) -> str:
    """The design space of a program, by its trace: the name of the generator, or of the sketch; "" if there was only one generator."""
    for inst in trace.insts if trace is not None else ():
        if inst.kind == "Annotate" and inst.attrs[0] == SPACE:
            return str(inst.inputs[1])
        if inst.kind == _SKETCHES:
            name = str(inst.attrs[1])
            return name if name.startswith(TEMPLATE) else f"TensorSketchSpace({name})"
    return ""


def distinct(names: Sequence[str]) -> list[str]:
    """Names, of which those that stood before get a number."""
    return [name if name not in names[:place] else f"{name} #{names[:place].count(name) + 1}" for place, name in enumerate(names)]
