"""Programs as text in TVMScript syntax; see `text` for the engine and its styles.

`str(expr)`, `str(stmt)`, `func.script()` and `mod.script()` load it, through the table of `Object`.
"""

from ..node import Object
from .expressions import script_expr
from .highlight import as_html, shown
from .legacy import legacy_expr
from .node import script_node, script_stmt
from .program import script_function, script_module

Object._printers.update(
    expr=script_expr, stmt=script_stmt, function=script_function, module=script_module, shown=shown, html=as_html, node=script_node
)

__all__ = ["legacy_expr", "script_expr", "script_function", "script_module", "script_node", "script_stmt"]
