"""Sketches: programs with open decisions, made by rules stage by stage.

rule, rules/       what a rule is; Ansor's rules, and those that draw from `tensorexpr.spaces`
tiling             what Ansor's multi-level tiling rules share
simple_stage       loops of stages that no other rule took, those of Ansor's among them
serial             programs on one thread
generate           applying the rules in every way they allow
"""
