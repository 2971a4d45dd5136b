"""Sketches: programs with open decisions, made by rules stage by stage.

state              a program while its sketch is made
rule, rules/       what a rule is; Ansor's rules, and those that draw from `spaces`
operands           what a stage reads along each of its axes
tiling             what the multi-level tiling rules share
register_plan      what a register tile's sketch fixes: the axis in the lanes, the order of loops, what is packed
register_tiling    plans as steps;  packing: panels of an operand;  dot_products: tiles of instructions that sum small numbers
simple_stage       loops of stages that no other rule took, those of Ansor's among them
serial             programs on one thread
generate           applying the rules in every way they allow
"""
