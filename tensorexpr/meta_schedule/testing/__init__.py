"""Helpers of tests and experiments with design spaces.

te_workload        standard operators, as functions to schedule
space_generation   what rules make of a program, and whether it is what one expects
schedule_rule      the default rules of a target one by one
relay_workload     networks of torchvision as modules of Relay
dummy_object       builders, runners and mutators that do nothing
local_rpc          a tracker and a server of their own, for programs that start them
"""
