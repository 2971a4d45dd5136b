"""Putting a function together: attributes, arguments, entry block, body, and the one way out."""

from __future__ import annotations

from .builder import flatten
from .context import FunctionContext
from .storage import allocate_workspaces, free_workspaces
from .types import symbol


def finish(ctx: FunctionContext, arguments: list[str], internal: bool = False) -> None:
    """End the function with success and add its text to the module."""
    text = ctx.text
    ctx.leave("0")
    workspaces = allocate_workspaces(ctx)
    entry = [*text.entry, *(workspaces or ["  br label %start"])]
    codes = ", ".join(f"[ {code}, %{block} ]" for code, block in ctx.exits)
    returned = ["return:", f"  %code = phi i32 {codes}", *free_workspaces(ctx), "  ret i32 %code"]
    head = f"define {'internal ' if internal else ''}i32 {symbol(ctx.name)}({', '.join(arguments)}) #0 {{"
    lines = [head, "entry:", *entry, "start:", *flatten(text.lines), *returned, "}"]  # type: ignore[arg-type]
    if ctx.module.debug is not None:
        lines = ctx.module.debug.located(ctx.name, lines)
    ctx.module.text.functions.append("\n".join(lines))
