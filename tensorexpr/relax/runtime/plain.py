"""Networks that one native function computes: tensors of known shapes in, tensors out, no Python between.

def main(x: (1, 16)) -> (1, 8)        one stretch; its inputs are the parameters, its outputs the results
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...dataclass import dataclass
from ..expr import Tuple
from .executable import Executable
from .native import constants_name, stretch_name
from .stretch import Stretch, Tensor


@dataclass(frozen=True)
class PlainNetwork:
    """A function that is one stretch.

    Args:
        stretch: which one.
        names: of the inputs.
        results: its values, as tensors in outputs of the stretch.
        is_tuple: whether it returns several.
        features: of the CPU that the code needs, by LLVM's names.
        arch: of the CPU.
    """

    stretch: Stretch
    names: tuple[str, ...]
    results: tuple[Tensor, ...]
    is_tuple: bool
    features: tuple[str, ...]
    arch: str

    def described(self, number: Callable[[Any], int]) -> dict[str, Any]:
        """It as JSON values, for `runtime.network`.

        Args:
            number: of an array among the constants of the library.
        """
        stretch = self.stretch
        return {
            "entry": stretch_name(stretch.number),
            "inputs": [[name, list(one.shape), one.dtype] for name, (_, _, one) in zip(self.names, stretch.inputs, strict=True)],
            "made": [[list(one.shape), one.dtype] for one in stretch.outputs],
            "results": [[stretch.buffers[one.buffer].place, list(one.shape)] for one in self.results],
            "is_tuple": self.is_tuple,
            "table": constants_name(stretch.number) if stretch.constants else None,
            "table_constants": [number(one) for one in stretch.constants],
            "features": list(self.features),
            "arch": self.arch,
        }


def plain_network(executable: Executable, function: str = "main") -> PlainNetwork | None:
    """A function of an executable as one native function; None if Python runs between its kernels, or it returns what it got."""
    func = executable.functions.get(function)
    if func is None or any(len(made) > 1 for made in executable.stretches.values()):
        return None
    stretch = executable.stretches.get(id(func.body), {}).get(0)
    if stretch is None or stretch.bindings != len(list(func.body.bindings())):
        return None
    if [(var, way) for var, way, _ in stretch.inputs] != [(param, ()) for param in func.params]:
        return None
    values, body = dict(stretch.results), func.body.body
    found = [values.get(one) for one in (body.fields if isinstance(body, Tuple) else (body,))]
    tensors = tuple(one for one in found if isinstance(one, Tensor) and stretch.buffers[one.buffer].kind == "output")
    if len(tensors) != len(found):
        return None
    names = tuple(param.name_hint for param in func.params)
    target = executable.target
    return PlainNetwork(stretch, names, tensors, isinstance(body, Tuple), tuple(sorted(target.features)), target.arch)
