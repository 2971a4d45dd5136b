"""Sketches: programs with open decisions, made by rules stage by stage.

rule, rules/       what a rule is; Ansor's rules, and those that draw from `tensorexpr.spaces`
tiling             what Ansor's multi-level tiling rules share
generate           applying the rules in every way they allow; loops of stages that no rule took, programs on one thread
"""
