"""A tuning log as one page: how the search went, what failed, what the model knew, and the best program.

command    the subcommand `report`
run        the records of one task, in numbers
charts     curve, histogram and scatter as SVG
nest       a program drawn as nested loops, as SVG
following  a log that grows;  live: the page of a search that runs, served on this machine
page       all of it as one self-contained HTML page;  network: the page of a tuned network
"""
