"""Standard operator suites, which the benchmark and the tests share.

operators    the registered workloads
case         a workload with its arguments, flops and bytes
suites       ansor, resnet50, mobilenet, bert, memory, gemm, awkward
"""

from .case import Case
from .suites import SUITES, suite

__all__ = ["SUITES", "Case", "suite"]
