"""The command line, `python -m tensorexpr`, and what needs the whole house.

build     compile, with a schedule that is given or found
cli       subcommands
tvmc/     networks: load, tune, compile, run, verify
bench/    measuring against peers
report/   a tuning log as a page
"""

from ..later import later

__getattr__, __dir__ = later(__name__, {".build_module": "lower"}, submodules="build_module tvmc")
