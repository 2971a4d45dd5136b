"""Networks from a file to a result, by tvmc's names: `load`, `tune`, `compile`, `run`; and the commands of these names.

    model = tvmc.load("net.onnx")
    package = tvmc.compile(model, target="llvm", package_path="net.so")
    print(tvmc.run(package, device="cpu"))

model       models, packages, results
frontends   which importer reads a file
compiler    options of a build, and the build
autotuner   records for it
runner      inputs, runs, tables
verifier    a run against the evaluator of graphs or onnxruntime
profile     a page about a run
quantizer   models of int8, with what that costs
command     the command line, and main by which programs of tvmc call it

Options as texts are read in shape_parser, target, composite_target, transform, pass_config, pass_list, registry, config_options, tracker.
"""

from typing import TYPE_CHECKING

from ...later import later

if TYPE_CHECKING:
    from . import autotuner, compiler, frontends, model, runner
    from .autotuner import tune_model as tune
    from .compiler import compile_model as compile
    from .frontends import load_model as load
    from .model import TVMCException, TVMCImportError, TVMCModel, TVMCPackage, TVMCResult
    from .quantizer import quantize_model as quantize
    from .runner import run_module as run
    from .verifier import verify

__all__ = [
    "TVMCException", "TVMCImportError", "TVMCModel", "TVMCPackage", "TVMCResult", "autotuner", "compile", "compiler",
    "frontends", "load", "model", "quantize",
    "run", "runner", "tune", "verify",
]  # fmt: skip

# `run` of a package needs no importers and no tuner.
__getattr__, __dir__ = later(
    __name__,
    {
        ".autotuner": "tune=tune_model",
        ".compiler": "compile=compile_model",
        ".frontends": "load=load_model",
        ".model": "TVMCException TVMCImportError TVMCModel TVMCPackage TVMCResult",
        ".quantizer": "quantize=quantize_model",
        ".runner": "run=run_module",
        ".verifier": "verify",
    },
    submodules="autotuner compiler composite_target config_options frontends main model pass_config pass_list registry result_utils runner "
    "shape_parser target tracker transform workspace_pools",
)
