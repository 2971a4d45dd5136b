"""Tuning a network within seconds.

    tuned = relax.tune_network(mod, params, "llvm -mcpu=icelake-server -num-cores 2", budget_s=60, records="resnet.json")
    print(tuned)                                 # what each kernel gained
    vm = relax.VirtualMachine(tuned.executable)
    with tuned.best():                           # another build with the same programs
        lib = relay.build(mod, target, params=params)

network     tune_network: the network by rules, the search, the comparison in the end
searching   which tasks get turns, and the task scheduler
styles      what finds programs: sketches, a template, schedules of blocks
comparing   which programs are faster within the network
known       what logs have of the tasks
timing      times of whole networks and of their kernels, in turn
outcome     what came of it
progress    lines while it runs
"""

from .network import tune_network
from .outcome import NetworkTuning, TaskOutcome
from .progress import TuningProgress

__all__ = ["NetworkTuning", "TaskOutcome", "TuningProgress", "tune_network"]
