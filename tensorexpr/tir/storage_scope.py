"""The storage scopes that a schedule may name: where, on some machine, the elements of a buffer live.

    scope ::= kind | kind "." anything        "global", "shared", "shared.dyn", "global.texture", "wmma.accumulator"

Which memory that is depends on the machine. On a CPU all of them are memory; "local" is small and a candidate for registers.
"""

from __future__ import annotations

SCOPE_KINDS = (
    *("global", "shared", "warp", "local", "texture", "wmma.matrix_a", "wmma.matrix_b", "wmma.accumulator"),
    *("m16n8k8.matrixA", "m16n8k8.matrixB", "m16n8k8.matrixC", "amx.tmm", "metal.simdgroup"),
)


def is_storage_scope(scope: object) -> bool:
    """True for the name of a storage scope."""
    return isinstance(scope, str) and any(
        scope == kind or (scope.startswith(f"{kind}.") and len(scope) > len(kind) + 1) for kind in SCOPE_KINDS
    )
