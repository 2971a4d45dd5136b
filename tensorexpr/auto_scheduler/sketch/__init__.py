"""Sketches: programs with open decisions, made by rules stage by stage.

state         a program while its sketch is made
rule, rules/  what a rule is; the rules of a CPU
tiling        what the tiling rules share
simple_stage  loops of stages that no tiling rule took
generate      applying the rules in every way they allow
"""
