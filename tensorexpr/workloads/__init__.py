"""Standard operator suites, which the benchmark and the tests share.

operators    the registered workloads
case         a workload with its arguments, flops and bytes
suites       ansor, resnet50, mobilenet, bert, memory, gemm, awkward
topi_cases   the suite topi: single operators
"""

from .case import Case, Drawn
from .suites import SUITES, suite

__all__ = ["SUITES", "Case", "Drawn", "suite"]
