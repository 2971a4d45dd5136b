"""What notebooks show: the text that `print` gives, in colours."""

from __future__ import annotations

import html
import re
from typing import Any

import pytest

import tensorexpr as tvm
from tensorexpr import auto_scheduler, te, tir


def shown() -> dict[str, tuple[Any, str]]:
    """Things, and the text that a notebook shows of each."""
    a = te.placeholder((8,), name="A")
    b = te.compute((8,), lambda i: a[i] + 1.0, name="B")
    s = te.create_schedule(b.op)
    s[b].split(b.op.axis[0], factor=4)
    sch = tir.Schedule(tvm.IRModule({"main": te.create_prim_func([a, b])}))
    dag = auto_scheduler.ComputeDAG([a, b])
    state = dag.get_init_state()
    things = {"schedule": s, "steps": s.trace, "trace": sch.trace, "state": state, "computation": dag}
    return {"blocks": (sch, sch.mod.script()), **{name: (thing, str(thing)) for name, thing in things.items()}}


@pytest.mark.parametrize("name", sorted(shown()))
def test_notebooks_show_text(name: str) -> None:
    thing, text = shown()[name]
    assert html.unescape(re.sub(r"<[^>]*>", "", thing._repr_html_())).strip() == text.strip()
