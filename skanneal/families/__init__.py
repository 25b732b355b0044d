"""Likelihood families and the table of encoded rows.

A family is one file, `_<name>.pyx`, whose class says all that anyone needs of it (the contract is
`FamilyBlock`), and one line here.
"""

from importlib import import_module

from ._base import FamilyBlock
from ._table import MISSING_COUNT, Table


def _family(name):
    """The class in the family's file that has its name."""
    members = vars(import_module(f"._{name}", __name__)).values()
    return next(member for member in members if getattr(member, "family", None) == name)


# By name. Blocks add to a row's scores in this order: the bits of the sum depend on it.
FAMILIES = {
    name: _family(name)
    for name in (
        "normal",
        "categorical",
        "bernoulli",
        "poisson",
        "gamma_exponential",
        "log_normal",
        "semi_continuous",
        "semi_continuous_log_normal",
        "negative_binomial",
        "multivariate_normal",
        "known_normal",
        "multinomial",
        "multivariate_t",
        "multivariate_log_normal",
    )
}


def candidates(dtype):
    """Names of the families that "auto" may give to columns of the sorts "float", "atoms", "levels"
    or "boolean".

    Families declare this themselves (`default_for`). Candidates for the same columns have one sort
    of cell. If there are several, the evidence chooses; until then columns have the first.
    """
    return [name for name, family in FAMILIES.items() if family.default_for == dtype]


def default_family(dtype):
    """Name of the first of the candidates for "float", "levels" or "boolean" columns."""
    return candidates(dtype)[0]


def family_of_logarithms(name):
    """Name of the family that is the named one of the logarithms of positive numbers."""
    return next(other for other, family in FAMILIES.items() if family.logarithms_of == name)


def reads_sparse(name):
    """Whether this names a family whose rows may come as a sparse matrix."""
    return isinstance(name, str) and name in FAMILIES and FAMILIES[name].cells == "count_row"


__all__ = [
    "FAMILIES",
    "MISSING_COUNT",
    "FamilyBlock",
    "Table",
    "candidates",
    "default_family",
    "family_of_logarithms",
    "reads_sparse",
]
