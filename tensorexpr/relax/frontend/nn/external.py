"""Functions of others in networks: what a graph says of them, and how they are called."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ....errors import DeclarationError
from .core import Tensor
from .exporter import Exporter


class ExternModule:
    """Functions that are registered by name when the graph runs, and write results into arrays that they get behind their arguments.

    Args:
        symbols: names -> functions from the arguments to tensors like the results (`nn.Tensor.placeholder`), or a list of such.
    """

    def __init__(self, symbols: Mapping[str, Callable[..., Any]]) -> None:
        self.symbols = dict(symbols)

    def __getitem__(self, func_name: str) -> Callable[..., Any]:
        """What calls a function, with tensors and numbers.

        Raises:
            DeclarationError: for a name that isn't stated.
        """
        from .op import extern

        if func_name not in self.symbols:
            raise DeclarationError(f"nn.ExternModule: there is no function {func_name!r}; there are {', '.join(self.symbols) or 'none'}")

        def call(*args: Any) -> Tensor:
            exporter = Exporter.current()
            if all(one is not self for one in exporter.externs):
                exporter.add_extern(self)
            made: Tensor = extern(func_name, args, self.symbols[func_name](*args))
            return made

        return call


def _refused(what: str) -> DeclarationError:
    return DeclarationError(
        f"nn.{what}: objects of other compilers aren't linked into networks; register the function, "
        "`@tvm.register_func(name)` with a ctypes function inside, and state it in nn.ExternModule({name: results})"
    )


class ObjectModule(ExternModule):
    """Refused: a module of object files.

    Raises:
        DeclarationError: always.
    """

    def __init__(self, symbols: Mapping[str, Callable[..., Any]], filepath: Any = None) -> None:
        raise _refused("ObjectModule")


class SourceModule(ExternModule):
    """Refused: a module of C++ or CUDA sources, which another compiler would translate.

    Raises:
        DeclarationError: always.
    """

    def __init__(
        self, symbols: Mapping[str, Callable[..., Any]], source_code: Any = None, source_format: str = "cpp", **options: Any
    ) -> None:
        raise _refused("SourceModule")


__all__ = ["ExternModule", "ObjectModule", "SourceModule"]
