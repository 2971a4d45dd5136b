"""Search: spaces, populations, features, cost models, evolution, measuring, records.

space        what the search asks of a design space (sample, mutate, features, program), and sketches as one
planned      spaces of rules whose choices are no steps of a trace
population   decisions as columns of candidates: sampling, mutation and crossover of their matrices
features/    what the model sees of a whole population, without lowering
cost_model/  analytic prior, boosted model, random
evolution    the best unseen candidates of several sketches
descent      from the best measured program to its neighbours
measure/     compile and run workers
records/     the log
trial        one measured program, the options of a search, who listens
learning     what is predicted of programs, and what is learned from results
proposals    what to measure next
budget       trials and seconds that are left
tuner        the loop over all of it
"""
