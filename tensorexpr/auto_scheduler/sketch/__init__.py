"""Sketches: programs with open decisions, made by rules stage by stage.

rule, rules/       what a rule is; Ansor's rules, and those that draw from `tensorexpr.spaces`
tiling             what Ansor's multi-level tiling rules share
plans              tiles of matrix units, which layouts are made of, as a space beside the sketches
generate           applying the rules in every way they allow; loops of stages that no rule took, programs on one thread
"""
