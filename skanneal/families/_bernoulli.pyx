"""Bernoulli with a Beta prior: the categorical family on two levels, false and true.

Model, per feature: x ~ Bernoulli(p), p ~ Beta(a, b); a belongs to true. Levels are coded false 0,
true 1, so the coordinates stand in the order (b, a).
"""

from ._categorical cimport Categorical


cdef class Bernoulli(Categorical):
    """Booleans. Coordinates of a feature's hyperparameters: b, a."""

    family = "bernoulli"
    cells = "boolean"
    default_for = "boolean"
    coordinate_names = ("b", "a")
    forms = ("positive", "positive")
    argument_names = ("a", "b")
    cell_cost = 0.5
