"""What programs need around compiled code: folders, compilers, archives, libraries of others.

utils    temporary folders, locks between processes      util    the same, as programs of early releases spell it
cc       the system's C compiler as a linker             clang   C to LLVM IR, for "import_llvm"
tar      archives of files                               dlpack  functions on other frameworks' arrays
sparse   matrices of which most elements are zero, as arrays and placeholders
cblas    matrix products by NumPy's BLAS, as te stages     random   random arrays, likewise
graph_executor, debugger, graph_runtime    what runs networks that `relay.build` made (`relay.graph_executor`)
pipeline_executor, pipeline_executor_build    several networks as a pipeline (`relay.pipelines`)
relay_viz    pictures of networks (`relay.viz`)
ndk      the C++ compiler of Android
nvcc     what GPUs of a capability have; NVIDIA's compiler of CUDA, where it is
"""

from ..later import later

_SUBMODULES = (
    "cblas cc clang debugger dlpack graph_executor graph_runtime ndk nvcc pipeline_executor pipeline_executor_build random relay_viz "
    "sparse tar tedd util utils"
)
# where early releases had rpc
__getattr__, __dir__ = later(__name__, {"tensorexpr.rpc": "rpc=."}, submodules=_SUBMODULES)
