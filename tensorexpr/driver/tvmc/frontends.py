"""Which importer reads a file, by the format's name or the file's ending."""

from __future__ import annotations

import importlib
import os
import tarfile
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, NoReturn

from ...errors import ModelError, TensorExprError
from ...frontend.onnx import from_onnx
from ...relay.frontend import from_pytorch
from ...relay.parser import parse
from ...relay.ty import type_of
from ...tir.arithmetic import as_int
from .model import TVMCException, TVMCImportError, TVMCModel

Shapes = Mapping[str, Sequence[Any]] | None
Loaded = tuple[Any, dict[str, Any]]


def lazy_import(pkg_name: str, from_pkg_name: str | None = None, hide_stderr: bool = False) -> Any:
    """A package of Python's, imported now.

    Args:
        pkg_name: of the package.
        from_pkg_name: the package that it is in.
        hide_stderr: accepted: nothing is hidden.

    Raises:
        TVMCImportError: if it isn't installed.
    """
    try:
        return importlib.import_module(f"{from_pkg_name}.{pkg_name}" if from_pkg_name else pkg_name)
    except ImportError:
        raise TVMCImportError(f"{pkg_name} is needed to read this model, and it isn't installed: pip install {pkg_name}") from None


class Frontend(ABC):
    """An importer."""

    @staticmethod
    @abstractmethod
    def name() -> str:
        """What --model-format calls it."""

    @staticmethod
    @abstractmethod
    def suffixes() -> list[str]:
        """How names of its files end."""

    @abstractmethod
    def load(self, path: str, shape_dict: Shapes = None, **kwargs: Any) -> Loaded:
        """A module and its parameters, of a file."""


class OnnxFrontend(Frontend):
    """ONNX; weights become constants."""

    @staticmethod
    def name() -> str:
        """onnx"""
        return "onnx"

    @staticmethod
    def suffixes() -> list[str]:
        """onnx"""
        return ["onnx"]

    def load(self, path: str, shape_dict: Shapes = None, **kwargs: Any) -> Loaded:
        """As `relax.frontend.onnx.from_onnx`, which has the keywords."""
        lazy_import("onnx")
        options: dict[str, Any] = {"keep_params_in_input": False, "sanitize_input_names": False, **kwargs}
        mod: Any = from_onnx(path, dict(shape_dict) if shape_dict else None, **options)
        main = mod["main"].without_attr("num_input")
        mod.update_func("main", main)
        return mod, {}


class PyTorchFrontend(Frontend):
    """PyTorch's exported programs: `torch.export.save(torch.export.export(module, inputs), "net.pt2")`."""

    @staticmethod
    def name() -> str:
        """pytorch"""
        return "pytorch"

    @staticmethod
    def suffixes() -> list[str]:
        """pt2, pth, pt"""
        return ["pt2", "pth", "pt"]

    def load(self, path: str, shape_dict: Shapes = None, **kwargs: Any) -> Loaded:
        """As `relay.frontend.from_pytorch`; `shape_dict` gives the inputs names, and has their shapes, which the program knows."""
        torch = lazy_import("torch")
        try:
            program = torch.export.load(path)
        except Exception as error:  # torch raises many kinds for a file that it doesn't know
            raise TVMCException(
                f"{path} is no exported program: {str(error).splitlines()[0] if str(error) else type(error).__name__}; "
                "torch.export.save(torch.export.export(module, inputs), path) writes one, and TorchScript isn't read"
            ) from None
        return from_pytorch(program, list((shape_dict or {}).items()), **kwargs)


class RelayFrontend(Frontend):
    """Relay's text."""

    @staticmethod
    def name() -> str:
        """relay"""
        return "relay"

    @staticmethod
    def suffixes() -> list[str]:
        """relay"""
        return ["relay"]

    def load(self, path: str, shape_dict: Shapes = None, **kwargs: Any) -> Loaded:
        """As `relay.parse`; the text has the shapes.

        Raises:
            TVMCException: for a file that is no text, or other shapes than those of the text.
        """
        try:
            text = Path(path).read_text(encoding="utf-8")
        except UnicodeDecodeError as error:
            raise TVMCException(f"{path} is no text of Relay: {error}; name another format: --model-format, model_format=") from None
        mod = parse(text, os.path.basename(path))
        _check_shapes(mod, {}, shape_dict, "the text has {}; change it there")
        return mod, {}


def _check_shapes(mod: Any, params: Mapping[str, Any], shape_dict: Shapes, message: str) -> None:
    """Raise for shapes of inputs that aren't those of a model which states them."""
    stated = {param.name_hint: param.struct_info for param in mod["main"].params if param.name_hint not in params}
    for name, shape in (shape_dict or {}).items():
        if name not in stated or [as_int(one) for one in getattr(stated[name], "extents", None) or ()] != list(shape):
            shown = ", ".join(f"{key}: {type_of(one)}" for key, one in stated.items())
            raise TVMCException(f"--input-shapes {name}:{list(shape)}: {message.format(shown)}")


class _Unread(Frontend):
    """A format without an importer here: models in it become ONNX first, by a tool of their own."""

    converter: ClassVar[str] = ""

    def load(self, path: str, shape_dict: Shapes = None, **kwargs: Any) -> NoReturn:
        """Refused.

        Raises:
            TVMCException: with the tool that makes ONNX of it.
        """
        raise TVMCException(f"{path}: models of {self.name()} aren't read; {self.converter} makes ONNX of them, which is")


class KerasFrontend(_Unread):
    """Keras: not read."""

    converter = "tf2onnx (python -m tf2onnx.convert --keras)"

    @staticmethod
    def name() -> str:
        """keras"""
        return "keras"

    @staticmethod
    def suffixes() -> list[str]:
        """h5"""
        return ["h5"]

    def is_sequential_p(self, model: Any) -> bool:
        """Whether a model is a `keras.Sequential`, by its class."""
        return any(one.__name__ == "Sequential" for one in type(model).__mro__)

    def sequential_to_functional(self, model: Any) -> NoReturn:
        """Refused, as `load` is."""
        self.load(type(model).__name__)


class TensorflowFrontend(_Unread):
    """TensorFlow's frozen graphs: not read."""

    converter = "tf2onnx (python -m tf2onnx.convert --graphdef)"

    @staticmethod
    def name() -> str:
        """pb"""
        return "pb"

    @staticmethod
    def suffixes() -> list[str]:
        """pb"""
        return ["pb"]


class TFLiteFrontend(_Unread):
    """TFLite: not read."""

    converter = "tf2onnx (python -m tf2onnx.convert --tflite)"

    @staticmethod
    def name() -> str:
        """tflite"""
        return "tflite"

    @staticmethod
    def suffixes() -> list[str]:
        """tflite"""
        return ["tflite"]


class PaddleFrontend(_Unread):
    """Paddle: not read."""

    converter = "paddle2onnx"

    @staticmethod
    def name() -> str:
        """paddle"""
        return "paddle"

    @staticmethod
    def suffixes() -> list[str]:
        """pdmodel"""
        return ["pdmodel"]


ALL_FRONTENDS: list[Callable[[], Frontend]] = [
    KerasFrontend, OnnxFrontend, TensorflowFrontend, TFLiteFrontend, PyTorchFrontend, PaddleFrontend, RelayFrontend,
]  # fmt: skip


def get_frontend_names() -> list[str]:
    """The formats."""
    return [one().name() for one in ALL_FRONTENDS]


def get_frontend_by_name(name: str) -> Frontend:
    """The importer of a format.

    Raises:
        TVMCException: for another name.
    """
    for one in ALL_FRONTENDS:
        if one().name() == name:
            return one()
    raise TVMCException(f"no model format {name!r}; there are {', '.join(get_frontend_names())}")


def guess_frontend(path: str) -> Frontend:
    """The importer of a file, by its ending.

    Raises:
        TVMCException: for another one.
    """
    suffix = Path(path).suffix[1:].lower()
    for one in ALL_FRONTENDS:
        if suffix in one().suffixes():
            return one()
    known = ", ".join(f".{suffix}" for one in ALL_FRONTENDS for suffix in one().suffixes())
    if os.path.isdir(path):
        raise TVMCException(f"{path} is a folder, and a model is a file: {known}, or what TVMCModel.save wrote")
    raise TVMCException(f"{path}: the ending tells no format; there are {known}; or name it: --model-format, model_format=")


def load_model(path: str | os.PathLike[str], model_format: str | None = None, shape_dict: Shapes = None, **kwargs: Any) -> TVMCModel:
    """A model of a file.

    Args:
        path: the file; one that `TVMCModel.save` wrote is read without a format, whatever its ending.
        model_format: "onnx", "pytorch", "relay"; by default by the file's ending.
        shape_dict: shapes of inputs by name.
        kwargs: for the importer.

    Raises:
        TVMCException: for a file that isn't there, a format that isn't read, or shapes that aren't those of a model that states them.
        TVMCImportError: if a package is missing.
        ModelError, UnsupportedOperatorError: of the importer.
    """
    name = os.fspath(path)
    if not os.path.exists(name):
        raise TVMCException(f"{name}: there is no such file")
    if model_format is None and (name.endswith(".tar") or (os.path.isfile(name) and tarfile.is_tarfile(name))):
        saved = TVMCModel(model_path=name)
        _check_shapes(saved.mod, saved.params, shape_dict, "the saved model has {}")
        return saved
    frontend = guess_frontend(name) if model_format is None else get_frontend_by_name(model_format)
    try:
        mod, params = frontend.load(name, shape_dict, **kwargs)
    except ModelError as error:
        open_ones = " ".join(f"{one}:[...]" for one in getattr(error, "inputs", ()) if one not in (shape_dict or {}))
        hint = f'; their sizes may be enough: --input-shapes "{open_ones}"' if open_ones else ""
        raise type(error)(f"{name}: {error}{hint}") from None
    except TypeError as error:
        if not kwargs or isinstance(error, TensorExprError):
            raise
        raise TVMCException(f"the importer of {frontend.name()} takes no {', '.join(kwargs)}: {error}") from None
    made = TVMCModel(mod, params)
    made.source = name
    return made


__all__ = [
    "ALL_FRONTENDS", "Frontend", "KerasFrontend", "OnnxFrontend", "PaddleFrontend", "PyTorchFrontend", "RelayFrontend", "TFLiteFrontend",
    "TensorflowFrontend", "get_frontend_by_name", "get_frontend_names", "guess_frontend", "lazy_import", "load_model",
]  # fmt: skip
