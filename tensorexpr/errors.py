"""Every error that a user can meet, and the one class that means a bug of ours.

A message states the context, what was wished, and what would work instead. `TensorExprError` (alias
`TVMError`) is the root of all user errors; `InternalError` is never raised for bad input.
"""

from __future__ import annotations


class TensorExprError(RuntimeError):
    """Root of the errors caused by what a program asked for; a RuntimeError, as `TVMError` is."""


class DeclarationError(TensorExprError, ValueError):
    """A tensor computation that can't be declared: shapes, dtypes, axes or operands do not fit."""


class TypeMismatchError(DeclarationError, TypeError):
    """Operands whose data types can't be combined."""


class DiagnosticError(TensorExprError):
    """Something is wrong with the text of a program."""


class ParseError(DiagnosticError, ValueError):
    """A text that is no program. `line` and `column` count from 1; None where there is no text.

    `reason` is the message without the place, `width` the number of characters that it is about.
    """

    def __init__(
        self,
        message: str,
        filename: str = "<script>",
        line: int | None = None,
        column: int | None = None,
        reason: str | None = None,
        width: int = 1,
    ) -> None:
        super().__init__(message)
        self.filename, self.line, self.column = filename, line, column
        self.reason, self.width = message if reason is None else reason, width


class ModelError(TensorExprError, ValueError):
    """A model of another framework that can't be imported: malformed, contradictory, hostile, or of operators that nobody has written."""


class UnsupportedOperatorError(ModelError):
    """A model has operators that can't be imported; the message lists all of them with the nodes."""


class NeedsValueError(ModelError):
    """A model whose shapes depend on values of inputs. `inputs` are their names."""

    def __init__(self, message: str, inputs: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.inputs = inputs


class ScheduleError(TensorExprError, ValueError):
    """A schedule primitive that is illegal where it was requested."""


class LoweringError(TensorExprError):
    """A schedule or function that can't be lowered as asked (limits, options, user passes)."""


class PassError(LoweringError, TypeError, ValueError):
    """A pass, instrument or list of them that is none, or lacks what it must say."""


class ConfigError(LoweringError, AttributeError):
    """A configuration key of a PassContext that nobody knows, or a value that doesn't fit it."""


class CodegenError(TensorExprError):
    """A lowered function for which no machine code can be made on this target."""


class TargetError(TensorExprError, ValueError):
    """A target description that can't be understood or served."""


class ArgumentError(TensorExprError, ValueError):
    """Arguments of a built function that do not fit its signature (count, dtype, shape, strides, overlap)."""


class GraphAssertionError(ArgumentError, AssertionError):
    """A condition that a graph asserts doesn't hold."""


class MissingFunctionError(ArgumentError, AttributeError):
    """A module has no function of a name."""


class RecordError(TensorExprError, ValueError):
    """A tuning record or log that is torn, foreign, hostile or of another version."""


class WorkloadError(TensorExprError, KeyError):
    """A workload that is not registered, or whose arguments do not fit."""

    def __str__(self) -> str:
        """The message as it is: `KeyError` would print its repr."""
        return str(self.args[0]) if self.args else ""


class TuningError(TensorExprError):
    """A tuning run that can't go on (no builder, no candidate, every worker gone)."""


class RPCError(TensorExprError):
    """A server that can't be reached, refuses, or could not do what a session asked for."""


class InternalError(Exception):
    """A bug in tensorexpr itself. Please report it with the program that shows it."""


TVMError = TensorExprError
