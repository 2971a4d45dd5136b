"""A module of built functions: called, timed, inspected, saved."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from enum import IntFlag
from functools import cached_property
from typing import TYPE_CHECKING, Any

from ..codegen.signature import Signature
from ..errors import ArgumentError, MissingFunctionError, TensorExprError
from ..later import later
from ..target import Target
from . import engine
from .code import Code, CompiledCode, LibraryCode
from .device import Device
from .function import Function, ReturningFunction
from .linked_code import LinkedCode
from .timing import BenchmarkResult, Evaluator

if TYPE_CHECKING:
    from ..codegen.spills import SpillReport

__all__ = ["BenchmarkResult", "Module"]

string_types = (str,)
# The loaders, as programs import them from here; the package has them, which imports this module.
__getattr__, __dir__ = later(__name__, {"tensorexpr.runtime": "enabled load=load_module load_module load_static_library system_lib"})


class ModulePropertyMask(IntFlag):
    """What a module can do, the bits of `Module.get_property_mask`."""

    BINARY_SERIALIZABLE = 1
    RUNNABLE = 2
    DSO_EXPORTABLE = 4


def find_include_path(name: str | None = None, search_path: Sequence[str] | None = None, optional: bool = False) -> list[str]:
    """The folders of headers that C programs need to call exported functions: none, the header stands beside the library.

    Args:
        name, search_path: accepted; there is nothing to look for.
        optional: accepted.
    """
    return []


# What programs call the function of a module that has only one.
_ENTRY_NAMES = ("main", "default_function", "__tvm_main__")


class Module:
    """Functions in machine code.

    `mod["name"]` is one of them; calling the module calls its entry function. The code is loaded when the first function is
    asked for, so a module for another machine can be made, inspected and saved here.
    """

    def __init__(self, code: Code) -> None:
        self._code = code

    @property
    def target(self) -> Target:
        """The machine that the code is for."""
        return self._code.target

    @property
    def timings(self) -> dict[str, float]:
        """Seconds of each step that made the module.

        - lower: passes, from the schedule or function to loops that code generation takes.
        - emit: the text of the LLVM module.
        - parse, optimise, codegen: LLVM reads and checks it, runs its passes, and writes the object file.
        - cache: looking up the program and its object file on disk. Where the program was found there is no lower and no emit,
          where the object was found no parse, optimise and codegen.
        - load: the object file becomes code in memory, when the first function is asked for.
        """
        return dict(self._code.timings)

    @cached_property
    def spills(self) -> SpillReport:
        """How many instructions inside the loops save vector registers to the stack and how many bring them back.

        More than a few say that a register tile is too large, or that LLVM merged loads and keeps them for too long: make the
        tile smaller, leave a reduction loop unexpanded, or give it the pragma `no_load_merge`. It is read from the assembly,
        whose generation takes as long as that of the code, so it is counted when it is first asked for.

        Raises:
            TensorExprError: for a module that was loaded, which keeps no source.
        """
        from ..codegen.spills import count_spills

        return count_spills(self.get_source("asm"))

    @property
    def type_key(self) -> str:
        """How the module keeps its code: "llvm" in memory, "library" in a shared library."""
        return "library" if isinstance(self._code, LibraryCode) else "llvm"

    @property
    def format(self) -> str:
        """The format that `save` writes by default."""
        return "o"

    @property
    def imported_modules(self) -> list[Module]:
        """The modules that this one calls: none, as all code is in one."""
        return []

    def import_module(self, module: Module) -> None:
        """Modules of several devices are imported into one; here there is one.

        Raises:
            TensorExprError: always; it says what to do.
        """
        raise TensorExprError("a module imports no other one: build the functions together, as one IRModule")

    def clear_imports(self) -> None:
        """Forget the modules that this one imports: there are none."""

    @property
    def is_dso_exportable(self) -> bool:
        """Whether `export_library` can write it."""
        return not isinstance(self._code, LibraryCode)

    @property
    def is_binary_serializable(self) -> bool:
        """Whether it can be pickled."""
        return True

    @property
    def is_runnable(self) -> bool:
        """Whether its functions can be called."""
        return True

    @property
    def is_device_module(self) -> bool:
        """Whether its code runs on another device than the CPU."""
        return False

    def get_property_mask(self) -> int:
        """What the module can do, as a sum: 1 its bytes can be saved, 2 it runs, 4 `export_library` writes it."""
        return 1 * self.is_binary_serializable + 2 * self.is_runnable + 4 * self.is_dso_exportable

    def __getstate__(self) -> dict[str, Any]:
        """The code alone, as its bytes with their description: native addresses are another process's next time."""
        from . import export

        code = self._code.as_one if isinstance(self._code, LinkedCode) else self._code
        if not isinstance(code, (CompiledCode, LibraryCode)):
            raise TensorExprError(f"{type(code).__name__} of a module can't be pickled")
        return {"code": export.to_bytes(code)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        from . import export

        self.__init__(export.from_bytes(*state["code"]))  # type: ignore[misc]

    def __copy__(self) -> Module:
        return self  # nothing of a module ever changes

    def __deepcopy__(self, memo: Any) -> Module:
        return self

    @property
    def function_names(self) -> list[str]:
        """The names of the functions."""
        return list(self._code.signatures)

    @property
    def signatures(self) -> Mapping[str, Signature]:
        """How each function is called, by name."""
        return self._code.signatures

    @property
    def entry_name(self) -> str:
        """The name of the function that a call of the module calls: the only one, or "main".

        Raises:
            ArgumentError: if there are several and none is called "main".
        """
        names = self.function_names
        if len(names) == 1:
            return names[0]
        for name in _ENTRY_NAMES:
            if name in names:
                return name
        raise ArgumentError(f"the module has no entry function: choose one by mod[name] from {', '.join(names) or 'none'}")

    @property
    def entry_func(self) -> Function:
        """The function that a call of the module calls."""
        return self.get_function(self.entry_name)

    def __call__(self, *args: Any) -> Any:
        """Call the entry function; the number that it returns, or None."""
        return self._entry(*args)

    def __getitem__(self, name: str) -> Function:
        return self.get_function(name)

    def get_function(self, name: str, query_imports: bool = False) -> Function:
        """The function of that name; "main" and "default_function" also mean the only function of a module.

        Raises:
            MissingFunctionError: if there is none.
        """
        if not self.implements_function(name, query_imports):
            raise MissingFunctionError(f"the module has no function {name!r}; it has {', '.join(self.function_names) or 'none'}")
        return self._functions[name if name in self._functions else self.entry_name]

    def implements_function(self, name: str, query_imports: bool = False) -> bool:
        """Whether `get_function` finds a function of that name. There are no imported modules to query."""
        names = self._code.signatures
        return name in names or (len(names) == 1 and name in _ENTRY_NAMES)

    def time_evaluator(
        self,
        func_name: str,
        dev: Any = None,
        number: int = 10,
        repeat: int = 1,
        min_repeat_ms: float = 0,
        limit_zero_time_iterations: int = 100,
        cooldown_interval_ms: float = 0,
        repeats_to_cooldown: int = 1,
        cache_flush_bytes: int = 0,
        f_preproc: str = "",
        ctx: Any = None,
    ) -> Evaluator:
        """A function that measures: `mod.time_evaluator("main", cpu(), number=100)(a, b).mean` is seconds per call.

        Args:
            func_name: the function to measure.
            dev: the device, which is the CPU.
            number: calls per repeat; only their total is measured.
            repeat: repeats, each of which gives one result.
            min_repeat_ms: the shortest time of a repeat; `number` grows until it is filled.
            limit_zero_time_iterations: how often `number` may grow while the clock shows nothing.
            cooldown_interval_ms: rest after every `repeats_to_cooldown` repeats.
            repeats_to_cooldown: see there.
            cache_flush_bytes: bytes to write before each repeat, to push other data out of the caches.
            f_preproc: see `Evaluator`.
            ctx: `dev`, as programs of early releases call it.

        Raises:
            ArgumentError: for a function that isn't there.
            TargetError: for a device that isn't there.
        """
        where = dev if dev is not None else ctx
        if isinstance(where, Device):
            where.check_exists()
        limits = (min_repeat_ms, limit_zero_time_iterations, cooldown_interval_ms, repeats_to_cooldown)
        return Evaluator(self.get_function(func_name), number, repeat, *limits, cache_flush_bytes, f_preproc)

    def get_source(self, fmt: str = "") -> str:
        """The code as text: LLVM IR ("ll" or nothing), or the native assembly ("asm", "s").

        Raises:
            ArgumentError: for another format.
            TensorExprError: for a module that was loaded, which keeps no source.
        """
        code = self._source()
        if fmt in ("", "ll"):
            return code.text
        if fmt in ("asm", "s"):
            return engine.emit_assembly(code.text, code.target, code.opt_level)
        raise ArgumentError(f"no source format {fmt!r}; there are 'll' (LLVM IR) and 'asm' or 's' (native assembly)")

    def save(self, file_name: str | os.PathLike[str], fmt: str = "") -> None:
        """Write the code to a file, in the format `fmt` or of the name's ending: o, ll, s (or asm), bc.

        An object file gets a description beside it (`x.o.json`), with which `runtime.load_module` reads it.

        Raises:
            ArgumentError: for another format.
        """
        from . import export  # with archives and processes, which a call doesn't need

        export.save(self._source(), os.fspath(file_name), fmt)

    def export_library(
        self,
        file_name: str | os.PathLike[str],
        fcompile: Callable[..., Any] | None = None,
        *,
        addons: Sequence[str] | None = None,
        workspace_dir: str | None = None,
        fpack_imports: None = None,
        **kwargs: Any,
    ) -> None:
        """Write a shared library (`x.so`) that needs neither Python nor LLVM, with a C header (`x.h`) and a description (`x.so.json`).

        A name that ends in `.o` gives the object file instead, one in `.tar` an archive of object and description.

        Args:
            file_name: where to write.
            fcompile: links instead of the system's C compiler; called as `fcompile(file_name, [object], **kwargs)`.
            addons: further files for the C compiler to link.
            workspace_dir: accepted; objects are linked in a folder that goes away.
            fpack_imports: has no meaning here, as modules import none; None.
            kwargs: passed to it; `options=[...]` are further words for the C compiler, `cc="g++"` is its name.

        Raises:
            TensorExprError: if there is no C compiler, or it fails.
        """
        from . import export

        options = {**kwargs, "options": [*(kwargs.get("options") or ()), *addons]} if addons else kwargs
        export.export_library(self._source(), os.fspath(file_name), fcompile, options)

    def objects(self, file_name: str) -> list[bytes]:
        """The object files that a library of these functions is linked of.

        Args:
            file_name: of the library, for errors.

        Raises:
            TensorExprError: for code that was loaded, or calls a Python function.
        """
        from . import export

        if not isinstance(self._code, LinkedCode):
            export.check_exportable(self._source(), file_name)
            return [self._source().data]
        for code, _ in self._code.parts.values():
            export.check_exportable(code, file_name)
        return self._code.objects()

    @cached_property
    def _functions(self) -> dict[str, Function]:
        addresses, keep = self._code.load()
        return {
            name: (ReturningFunction if signature.returns else Function)(signature, addresses[name], keep)
            for name, signature in self._code.signatures.items()
        }

    @cached_property
    def _entry(self) -> Function:
        return self.entry_func

    def _source(self) -> CompiledCode:
        code = self._code.as_one if isinstance(self._code, LinkedCode) else self._code
        if not isinstance(code, CompiledCode) or not code.text:
            raise TensorExprError("this module was loaded from a file and has no source; build it again from its schedule")
        return code

    def __repr__(self) -> str:
        return f"<Module of {', '.join(self.function_names)} for {self.target}>"
