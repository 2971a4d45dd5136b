"""What tvmc's functions pass on: a model that was read, a package that was compiled, the result of a run."""

from __future__ import annotations

import io
import os
import tarfile
import tempfile
import weakref
from collections.abc import Callable, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, TextIO

import numpy as np

from ...contrib.cc import cross_compiler
from ...errors import TensorExprError
from ...ir import load_json, save_json
from ...relax.runtime.executable import Executable
from ...relay.backend.executor_factory import ExecutorFactoryModule as GraphExecutorFactoryModule
from ...relay.backend.executor_factory import graph_json
from ...relay.expr import Function
from ...relay.parser import parse
from ...relay.text import module_text
from ...runtime import BenchmarkResult, load_module
from ...runtime.export import write_file
from ...runtime.network import tail
from ...runtime.params import load_param_dict, save_param_dict
from ...tir.function import IRModule

_LIBRARY, _GRAPH, _PARAMS = "mod.so", "mod.json", "mod.params"
_MODEL = "model"
# Names that programs of tvmc give packages, which are archives.
_ARCHIVES = (".tar",)
FORMATS = ("so", "c")


class TVMCException(TensorExprError):
    """What a user of tvmc has to change: a file, an option, an input."""


class TVMCImportError(TVMCException):
    """A package that an importer needs is missing; its name is in the message."""


def _archive(path: str, members: Mapping[str, bytes]) -> None:
    """Write files as one archive, which has the same bytes whenever it is written."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        for name, data in members.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    write_file(path, packed.getvalue())


def _members(path: str, names: tuple[str, ...], what: str) -> dict[str, bytes]:
    """Files of an archive by name, read into memory.

    Raises:
        TVMCException: if it is no archive, or lacks one.
    """
    try:
        with tarfile.open(path, "r:*") as archive:
            found = {}
            if missing := [name for name in names if name not in archive.getnames()]:
                hint = "; it is a saved model: compile it first" if _MODEL in archive.getnames() else ""
                raise TVMCException(f"{path} is no {what}: it has no {', '.join(missing)}{hint}")
            for name in names:
                member = archive.extractfile(name)
                found[name] = member.read() if member else b""
            return found
    except OSError as error:
        raise TVMCException(f"{path} is no {what}: {error.strerror or error}") from None
    except tarfile.TarError:
        raise TVMCException(f"{path} is no {what}: it is no archive, or was cut") from None


def check_folder(path: str | os.PathLike[str] | None) -> None:
    """Raise for a file that has no place, before time is spent on what is to be written to it.

    Raises:
        TVMCException: for a folder that isn't there or takes no files, or one in place of the file.
    """
    if path is not None and os.path.isdir(path):
        raise TVMCException(f"{os.fspath(path)} is a folder, and a file is to be written: name one in it")
    folder = os.path.dirname(path or "")
    if folder and not os.path.isdir(folder):
        raise TVMCException(f"{os.fspath(path or '')}: there is no folder {folder} to write it to")
    if path is None or (os.path.exists(path) and not os.path.isfile(path)):  # devices and pipes are written as they are
        return
    try:  # as it is written later: permissions alone don't say what a file system takes
        handle, probe = tempfile.mkstemp(dir=folder or ".", prefix=".tensorexpr-")
    except OSError as error:
        raise TVMCException(f"{os.fspath(path)}: the folder {folder or '.'} takes no files: {error.strerror or error}") from None
    os.close(handle)
    os.unlink(probe)


class TVMCModel:
    """A network with its parameters.

    Args:
        mod: a module of graphs or of Relay.
        params: values of parameters of "main".
        model_path: a file that `save` wrote, instead of both.

    Raises:
        TVMCException: without either.
    """

    def __init__(self, mod: IRModule | None = None, params: Mapping[str, Any] | None = None, model_path: str | None = None) -> None:
        if (mod is None) == (model_path is None):
            raise TVMCException("a TVMCModel is made of a module, or of model_path, a file that save() wrote")
        self._tuning_records: str | None = None
        self.source: str | None = None  # the file that it was imported from, for runs of other tools
        if mod is not None:
            self.mod, self.params = mod, dict(params or {})
        else:
            self.load(str(model_path))

    def save(self, model_path: str | os.PathLike[str]) -> None:
        """Write module and parameters as one archive."""
        # Relay's functions are saved as their text, with the constants behind it; graphs as JSON.
        is_relay = any(isinstance(func, Function) for func in self.mod.functions.values())
        text = module_text(self.mod, metadata=True) if is_relay else save_json(self.mod)
        _archive(os.fspath(model_path), {_MODEL: text.encode(), _PARAMS: bytes(save_param_dict(self.params))})

    def load(self, model_path: str | os.PathLike[str]) -> None:
        """Read what `save` wrote.

        Raises:
            TVMCException: for another file.
        """
        found = _members(os.fspath(model_path), (_MODEL, _PARAMS), "model that TVMCModel.save wrote")
        text = found[_MODEL].decode()
        mod = load_json(text) if text.startswith("{") else parse(text, os.fspath(model_path))
        if not isinstance(mod, IRModule):
            raise TVMCException(f"{model_path} holds a {type(mod).__name__}, and a model is an IRModule")
        self.mod, self.params = mod, load_param_dict(found[_PARAMS])

    def summary(self, file: TextIO | None = None) -> None:
        """Print the module as text, without its weights."""
        print(self.mod, file=file)

    def default_tuning_records_path(self) -> str:
        """A file for records of this model, in a folder for temporary ones; the same at each call."""
        if self._tuning_records is None:
            self._tuning_records = os.path.join(tempfile.mkdtemp(prefix="tensorexpr-"), "tuning_records.json")
        return self._tuning_records

    def default_package_path(self) -> str:
        """A file for a package of this model, in a folder for temporary ones."""
        return os.path.join(tempfile.mkdtemp(prefix="tensorexpr-"), "model_package.tar")

    def export_package(
        self,
        executor_factory: GraphExecutorFactoryModule | Executable,
        package_path: str | os.PathLike[str] | None = None,
        cross: str | Callable[..., Any] | None = None,
        cross_options: str | None = None,
        output_format: str = "so",
    ) -> str:
        """Write what was built as one file, which `run` and `runtime.load_module` read.

        Args:
            executor_factory: what `relay.build` returns.
            package_path: the file: an archive of library, graph and parameters, `x.tar`, or the library alone, `x.so`.
            cross: a compiler that links instead of the system's.
            cross_options: words for it.
            output_format: "so"; "c" for a library or object, x.so or x.o, that C programs call, with a header beside it.

        Returns:
            The file's path.

        Raises:
            TVMCException: for another format.
            TensorExprError: without a C compiler.
        """
        if output_format not in FORMATS:
            raise TVMCException(f"output format {output_format!r}: there are {', '.join(FORMATS)}")
        path = os.fspath(package_path or self.default_package_path())
        words = (cross_options or "").split()
        if output_format == "c":
            executable = executor_factory if isinstance(executor_factory, Executable) else executor_factory.module
            executable.export_c(path, options=words)
            return path
        link = None if cross is None else cross_compiler(cross, words)
        options = {"options": words} if words and link is None else {}
        with tempfile.TemporaryDirectory(prefix="tensorexpr-") as folder:
            library = os.path.join(folder, _LIBRARY)
            executor_factory.export_library(library, link, **options)
            data = Path(library).read_bytes()
        if Path(path).suffix not in _ARCHIVES:
            write_file(path, data)
            return path
        graph = "" if isinstance(executor_factory, Executable) else executor_factory.get_graph_json()
        _archive(path, {_LIBRARY: data, _GRAPH: graph.encode(), _PARAMS: bytes(save_param_dict({}))})
        return path

    def export_classic_format(
        self, executor_factory: GraphExecutorFactoryModule, package_path: str | os.PathLike[str] | None = None,
        cross: str | Callable[..., Any] | None = None, cross_options: str | None = None, lib_format: str = "so",
    ) -> str:  # fmt: skip
        """As `export_package`."""
        return self.export_package(executor_factory, package_path, cross, cross_options, lib_format)

    def export_vm_format(self, vm_exec: Executable, package_path: str | os.PathLike[str] | None = None, lib_format: str = "so") -> str:
        """As `export_package`, of an executable of the virtual machine."""
        return self.export_package(vm_exec, package_path, output_format=lib_format)


class TVMCPackage:
    """A compiled network in a file.

    Args:
        package_path: what `compile` wrote.

    Raises:
        TVMCException: if there is no such file.
    """

    def __init__(self, package_path: str | os.PathLike[str]) -> None:
        self.import_package(package_path)

    def import_package(self, package_path: str | os.PathLike[str]) -> None:
        """Take another file; its code is loaded when it runs."""
        self.package_path = os.fspath(package_path)
        if not os.path.isfile(self.package_path):
            raise TVMCException(f"{self.package_path}: there is no such package; compile writes one")
        for name in ("executable", "lib_path"):
            self.__dict__.pop(name, None)

    @property
    def library(self) -> bytes:
        """The shared library in it.

        Raises:
            TVMCException: for a file that is no package.
        """
        if Path(self.package_path).suffix not in _ARCHIVES:
            return Path(self.package_path).read_bytes()
        return _members(self.package_path, (_LIBRARY,), "package that tvmc.compile wrote")[_LIBRARY]

    @cached_property
    def lib_path(self) -> str:
        """A file with that library, as long as this package is kept."""
        if Path(self.package_path).suffix not in _ARCHIVES:
            return self.package_path
        folder = tempfile.TemporaryDirectory(prefix="tensorexpr-")
        weakref.finalize(self, folder.cleanup)
        path = os.path.join(folder.name, _LIBRARY)
        Path(path).write_bytes(self.library)
        return path

    @property
    def graph(self) -> str | None:
        """The calls of the network as JSON, for `graph_executor.create(graph, runtime.load_module(lib_path), device)`.

        None for a package of the virtual machine.
        """
        if Path(self.package_path).suffix not in _ARCHIVES:
            return graph_json(self.executable)
        return _members(self.package_path, (_GRAPH,), "package that tvmc.compile wrote")[_GRAPH].decode() or None

    @property
    def params(self) -> bytearray | None:
        """The parameters, as `load_params` of a graph executor takes them; the library has them, too. None as for `graph`."""
        return None if self.graph is None else save_param_dict(self.executable.get_params())

    @cached_property
    def executable(self) -> Executable:
        """Its code.

        Raises:
            TVMCException: for a file that is no package.
            TargetError: for code that this machine can't run.
        """
        found = self._loaded(self.lib_path)
        if not isinstance(found, Executable):
            raise TVMCException(f"{self.package_path} holds functions, and no network")
        return found

    def _loaded(self, library: str) -> Any:
        # A library of functions has its description beside it, one with a network in it, behind its end.
        if tail(library) is None and not os.path.exists(f"{library}.json"):
            raise TVMCException(f"{self.package_path} is no package that compile wrote, or was cut: compile it again")
        return load_module(library, "so")


class TVMCResult:
    """What a run gave.

    Args:
        outputs: arrays by name: output_0, output_1, ...
        times: of the benchmark, if there was one.
        report: what each kernel took, if that was asked for.
        made_up: names of inputs that nobody gave.
    """

    def __init__(
        self, outputs: Mapping[str, Any], times: BenchmarkResult | None, report: Any = None, made_up: tuple[str, ...] = ()
    ) -> None:
        self.outputs, self.times, self.report, self.made_up = dict(outputs), times, report, made_up

    def format_times(self) -> str:
        """The times as a table.

        Raises:
            TVMCException: of a run without a benchmark.
        """
        if self.times is None:
            raise TVMCException("nothing was measured: run with benchmark=True, or --print-time")
        return str(self.times)

    def get_output(self, name: str) -> np.ndarray[Any, Any]:
        """An output by name.

        Raises:
            TVMCException: for another name.
        """
        if name not in self.outputs:
            raise TVMCException(f"no output {name!r}; there are {', '.join(self.outputs)}")
        found: np.ndarray[Any, Any] = self.outputs[name]
        return found

    def save(self, output_path: str | os.PathLike[str]) -> None:
        """Write the outputs as `.npz`, which the name gets where it has another ending."""
        packed, name = io.BytesIO(), os.fspath(output_path)
        np.savez(packed, **self.outputs)
        write_file(name if name.endswith(".npz") else f"{name}.npz", packed.getvalue())

    def __str__(self) -> str:
        head = [str(self.times)] if self.times is not None else []
        return "\n".join([*head, f"Output Names:\n {list(self.outputs)}"])


__all__ = [
    "Executable", "GraphExecutorFactoryModule", "TVMCException", "TVMCImportError", "TVMCModel", "TVMCPackage", "TVMCResult",
]  # fmt: skip
