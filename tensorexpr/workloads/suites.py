"""The suites by name. Each is a function that makes its cases.

ansor      the operators of the Ansor paper (Zheng et al., OSDI 2020, section 7.1): four shapes each, batch 1 and 16
resnet50   every convolution of ResNet-50 (He et al. 2015), with bias and relu, batch 1
resnet50_packed  the same with weights that were packed in advance
mobilenet  every convolution of MobileNet-V2 (Sandler et al. 2018), batch 1
bert       the matrix products, norms and softmax of BERT-base (Devlin et al. 2018), sequence 128
memory     operators whose limit is the memory, not the arithmetic
gemm       square matrix products, small to large, and low precision
awkward    sizes that no tile divides: primes, 1, 7, 1000
topi       operators of topi by themselves, of every family that has a peer in PyTorch
"""

from __future__ import annotations

from collections.abc import Callable

from ..errors import WorkloadError
from ..target import Target
from . import operators as _registers  # noqa: F401  (importing registers the workloads)
from .case import Case
from .topi_cases import topi_cases

# Shapes for batch 1, as (name, workload, arguments); the first argument is the batch.
_ANSOR: tuple[tuple[str, str, tuple[tuple[int, ...], ...]], ...] = (
    (
        "C1D",
        "suite.conv1d",
        ((1, 256, 64, 128, 3, 2, 1), (1, 128, 128, 256, 1, 2, 0), (1, 64, 256, 256, 5, 1, 2), (1, 32, 512, 512, 3, 1, 1)),
    ),
    (
        "C2D",
        "suite.conv2d",
        ((1, 224, 224, 3, 64, 7, 2, 3), (1, 56, 56, 64, 64, 1, 1, 0), (1, 14, 14, 256, 256, 3, 1, 1), (1, 7, 7, 512, 512, 3, 1, 1)),
    ),
    (
        "C3D",
        "suite.conv3d",
        (
            (1, 16, 224, 224, 3, 64, 7, 2, 3),
            (1, 16, 56, 56, 64, 64, 1, 1, 0),
            (1, 16, 14, 14, 256, 256, 3, 1, 1),
            (1, 16, 7, 7, 512, 512, 3, 1, 1),
        ),
    ),
    (
        "GRP",
        "suite.conv2d",
        (
            (1, 56, 56, 64, 128, 3, 2, 1, 1, 4),
            (1, 28, 28, 128, 128, 3, 1, 1, 1, 4),
            (1, 14, 14, 256, 256, 3, 1, 1, 1, 4),
            (1, 7, 7, 512, 512, 3, 1, 1, 1, 4),
        ),
    ),
    (
        "DIL",
        "suite.conv2d",
        (
            (1, 224, 224, 3, 64, 7, 2, 3, 2),
            (1, 56, 56, 64, 64, 1, 1, 0, 2),
            (1, 14, 14, 256, 256, 3, 1, 1, 2),
            (1, 7, 7, 512, 512, 3, 1, 1, 2),
        ),
    ),
    (
        "DEP",
        "suite.depthwise",
        ((1, 112, 112, 32, 3, 1, 1), (1, 112, 112, 64, 3, 2, 1), (1, 14, 14, 512, 3, 2, 1), (1, 7, 7, 1024, 3, 1, 1)),
    ),
    (
        "T2D",
        "suite.conv2d_transpose",
        ((1, 4, 4, 512, 256, 4, 2, 1), (1, 8, 8, 256, 128, 4, 2, 1), (1, 16, 16, 128, 64, 4, 2, 1), (1, 32, 32, 64, 3, 4, 2, 1)),
    ),
    (
        "CAP",
        "suite.capsule",
        ((1, 16, 16, 32, 32, 3, 2, 1), (1, 8, 8, 32, 32, 3, 1, 1), (1, 16, 16, 8, 16, 3, 2, 1), (1, 8, 8, 16, 16, 3, 1, 1)),
    ),
    ("NRM", "suite.norm", ((1, 256, 256), (1, 512, 512), (1, 1024, 1024), (1, 4096, 1024))),
    (
        "ConvLayer",
        "suite.conv_layer",
        ((1, 224, 224, 3, 64, 7, 2, 3), (1, 56, 56, 64, 128, 3, 2, 1), (1, 28, 28, 128, 256, 1, 2, 0), (1, 7, 7, 512, 512, 3, 1, 1)),
    ),
    ("TBG", "suite.transpose_batch_gemm", ((1, 128, 12, 64), (1, 128, 16, 64), (1, 64, 12, 128), (1, 128, 12, 128))),
)
_GMM = ((128, 128, 128), (512, 32, 512), (512, 512, 512), (1024, 1024, 1024))
_RESNET50 = (
    # channels in, plane, channels out, kernel, stride, padding
    (3, 224, 64, 7, 2, 3),
    (64, 56, 64, 1, 1, 0),
    (64, 56, 64, 3, 1, 1),
    (64, 56, 256, 1, 1, 0),
    (256, 56, 64, 1, 1, 0),
    (256, 56, 128, 1, 1, 0),
    (128, 56, 128, 3, 2, 1),
    (128, 28, 512, 1, 1, 0),
    (256, 56, 512, 1, 2, 0),
    (512, 28, 128, 1, 1, 0),
    (128, 28, 128, 3, 1, 1),
    (512, 28, 256, 1, 1, 0),
    (256, 28, 256, 3, 2, 1),
    (256, 14, 1024, 1, 1, 0),
    (512, 28, 1024, 1, 2, 0),
    (1024, 14, 256, 1, 1, 0),
    (256, 14, 256, 3, 1, 1),
    (1024, 14, 512, 1, 1, 0),
    (512, 14, 512, 3, 2, 1),
    (512, 7, 2048, 1, 1, 0),
    (1024, 14, 2048, 1, 2, 0),
    (2048, 7, 512, 1, 1, 0),
    (512, 7, 512, 3, 1, 1),
)
_MOBILENET_EXPANSIONS = (
    # channels in, plane, expansion, channels out, stride: one of each kind of block
    (16, 112, 6, 24, 2),
    (24, 56, 6, 24, 1),
    (24, 56, 6, 32, 2),
    (32, 28, 6, 32, 1),
    (32, 28, 6, 64, 2),
    (64, 14, 6, 64, 1),
    (64, 14, 6, 96, 1),
    (96, 14, 6, 96, 1),
    (96, 14, 6, 160, 2),
    (160, 7, 6, 160, 1),
    (160, 7, 6, 320, 1),
)


def ansor() -> list[Case]:
    """The operators of the Ansor paper, batch 1 and 16."""
    cases = []
    for batch in (1, 16):
        for family, workload, shapes in _ANSOR:
            for number, shape in enumerate(shapes):
                cases.append(Case(f"{family}-{number}-b{batch}", workload, (batch, *shape[1:]), (1,) if family != "NRM" else ()))
        for number, (m, n, k) in enumerate(_GMM):
            cases.append(Case(f"GMM-{number}-b{batch}", "suite.batch_gemm", (batch, m, n, k)))
    return cases


def resnet50() -> list[Case]:
    """The 23 different convolutions of ResNet-50."""
    return [
        Case(
            f"conv{kernel}x{kernel}-{ci}-{plane}-{co}-s{stride}",
            "suite.conv2d_bias_relu",
            (1, ci, plane, plane, co, kernel, stride, pad),
            (1, 2),
        )
        for ci, plane, co, kernel, stride, pad in _RESNET50
    ]


def resnet50_packed(panel: int = 32) -> list[Case]:
    """The convolutions of ResNet-50 with constant weights in panels of so many channels."""
    return [Case(case.name, "suite.conv2d_bias_relu_packed", (*case.args, panel), case.constants) for case in resnet50()]


def mobilenet() -> list[Case]:
    """The convolutions of MobileNet-V2: first, expand, depthwise and project of each kind of block, last."""
    shapes: dict[tuple[str, tuple[int, ...]], str] = {}

    def pointwise(ci: int, plane: int, co: int) -> None:
        shapes.setdefault(("suite.conv2d_bias_relu", (1, ci, plane, plane, co, 1, 1, 0)), f"conv1x1-{ci}-{plane}-{co}")

    def depthwise(c: int, plane: int, stride: int) -> None:
        shapes.setdefault(("suite.depthwise_nchw", (1, c, plane, plane, 3, stride, 1, 1)), f"depthwise3x3-{c}-{plane}-s{stride}")

    shapes["suite.conv2d_bias_relu", (1, 3, 224, 224, 32, 3, 2, 1)] = "conv3x3-3-224-32-s2"
    depthwise(32, 112, 1)
    pointwise(32, 112, 16)
    for ci, plane, expansion, co, stride in _MOBILENET_EXPANSIONS:
        pointwise(ci, plane, ci * expansion)
        depthwise(ci * expansion, plane, stride)
        pointwise(ci * expansion, plane // stride, co)
    pointwise(320, 7, 1280)
    return [Case(name, workload, args, (1, 2)) for (workload, args), name in shapes.items()]


def bert() -> list[Case]:
    """BERT-base on 128 tokens: projections, attention, feed-forward, norm and softmax."""
    return [
        Case("projection", "suite.dense", (128, 768, 768), (1, 2)),
        Case("feed-forward-in", "suite.dense", (128, 3072, 768, "gelu"), (1, 2)),
        Case("feed-forward-out", "suite.dense", (128, 768, 3072), (1, 2)),
        Case("scores", "suite.batch_gemm", (12, 128, 128, 64, True)),
        Case("context", "suite.batch_gemm", (12, 128, 64, 128)),
        Case("attention-scores", "suite.attention_scores", (12, 128, 64)),
        Case("softmax", "suite.softmax", (1536, 128)),
        Case("layer-norm", "suite.layer_norm", (128, 768)),
    ]


def memory() -> list[Case]:
    """Operators that move data."""
    return [
        Case("relu-fma-4M", "suite.elementwise", (1 << 22,)),
        Case("relu-fma-256K", "suite.elementwise", (1 << 18,)),
        Case("chain-1M", "suite.elementwise_chain", (1 << 20,)),
        Case("softmax-1024x1024", "suite.softmax", (1024, 1024)),
        Case("softmax-128x768", "suite.softmax", (128, 768)),
        Case("layer-norm-1024x1024", "suite.layer_norm", (1024, 1024)),
        Case("layer-norm-128x768", "suite.layer_norm", (128, 768)),
        Case("sum-rows-4096", "suite.reduce", (4096, 4096, 1)),
        Case("sum-columns-4096", "suite.reduce", (4096, 4096, 0)),
        Case("transpose-2048", "suite.transpose", (2048, 2048)),
        Case("depthwise3x3-256-56", "suite.depthwise_nchw", (1, 256, 56, 56, 3, 1, 1)),
        Case("matvec-1000", "suite.matvec", (1000, 1000)),
        Case("matvec-4096", "suite.matvec", (4096, 4096)),
        Case("norm-4096x1024", "suite.norm", (1, 4096, 1024)),
    ]


def gemm() -> list[Case]:
    """Square products, and low precision."""
    cases = [Case(f"gemm-{n}", "suite.gemm", (n, n, n)) for n in (64, 128, 256, 512, 1024, 2048)]
    cases.append(Case("bmm-12x128x128x64", "suite.batch_gemm", (12, 128, 128, 64)))
    cases.append(Case("bmm-transposed-12x128x128x64", "suite.batch_gemm", (12, 128, 128, 64, True)))
    cases.append(Case("bfloat16-1024", "suite.gemm_low", (1024, 1024, 1024, "bfloat16", "bfloat16", "float32"), (1,)))
    cases.append(Case("int8-1024", "suite.gemm_low", (1024, 1024, 1024, "uint8", "int8", "int32"), (1,)))
    return cases


def awkward() -> list[Case]:
    """Sizes that no tile divides."""
    return [
        Case("gemm-1000", "suite.gemm", (1000, 1000, 1000)),
        Case("gemm-1009", "suite.gemm", (1009, 1009, 1009)),
        Case("gemm-17x1023x513", "suite.gemm", (17, 1023, 513)),
        Case("gemm-7x1000x1", "suite.gemm", (7, 1000, 1)),
        Case("gemm-1x1x1009", "suite.gemm", (1, 1, 1009)),
        Case("softmax-7x1009", "suite.softmax", (7, 1009)),
        Case("sum-columns-1009x7", "suite.reduce", (1009, 7, 0)),
        Case("conv3x3-7-13-19", "suite.conv2d_bias_relu", (1, 7, 13, 13, 19, 3, 1, 1)),
        Case("transpose-1009x997", "suite.transpose", (1009, 997)),
        Case("relu-fma-1000003", "suite.elementwise", (1000003,)),
    ]


SUITES: dict[str, Callable[[], list[Case]]] = {
    **{suite.__name__: suite for suite in (ansor, resnet50, mobilenet, bert, memory, gemm, awkward, resnet50_packed)},
    "topi": topi_cases,
}


def suite(name: str, target: Target | None = None) -> list[Case]:
    """The cases of a suite.

    Args:
        name: of the suite.
        target: for which weights are packed: whoever packs them in advance does it for the machine they are used on. 512-bit vectors
            without one.

    Raises:
        WorkloadError: for an unknown name; the message lists the suites.
    """
    if name not in SUITES:
        raise WorkloadError(f"there is no suite {name!r}; suites: {', '.join(SUITES)}")
    if name == "resnet50_packed" and target is not None:
        # Two vectors, as wide as register tiles are. Of a panel twice as wide a tile reads every other line, and the prefetcher brings
        # both: on Zen 3, whose second level such a panel fills, 3x3 of 512 channels on 7 x 7 took 2.22 ms instead of 1.74.
        return resnet50_packed(max(16, 2 * target.vector_bits // 32))
    return SUITES[name]()
