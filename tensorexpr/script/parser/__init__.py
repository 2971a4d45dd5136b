"""From text to programs. Nothing is executed: the syntax tree is read, and tables say what each name makes.

source                          the text, and errors that point into it
scope, context                  which names mean what; the function, blocks and loops around
values                          what parts of a script are worth
operators, intrinsics, dtypes   tables of expressions
loops, blocks, buffers, frames, stores      tables of statements
old_forms                       what earlier releases wrote
macros                          statements with a name
language                        the tables as the namespace T
expressions, statements, functions          readers of the syntax tree, each with a table of its own
core, tir, ir, relax                        other names for all this
"""

from ...later import later
from .functions import IR, MODULES, ProgramReader
from .language import TIR
from .macros import Macro, macro_of
from .source import Source

__getattr__, __dir__ = later(__name__, {"tensorexpr.script.read": "ir_module parse"}, "core ir relax tir")


__all__ = ["IR", "MODULES", "TIR", "Macro", "ProgramReader", "Source", "macro_of"]
