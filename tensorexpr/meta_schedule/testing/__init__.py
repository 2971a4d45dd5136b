"""Helpers of tests and experiments with design spaces.

te_workload        standard operators, as functions to schedule
space_generation   what rules make of a program, and whether it is what one expects
dummy_object       builders, runners and mutators that do nothing
local_rpc          a tracker and a server of their own, for programs that start them
"""
