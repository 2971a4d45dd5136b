"""The command line: `python -m tensorexpr`.

cli       subcommands
bench/    measuring against peers
report/   a tuning log as a page
"""
