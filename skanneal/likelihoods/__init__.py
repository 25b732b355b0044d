"""Likelihoods with instantiated features.

To add one: one file with its class (the contract is `Likelihood`) and one line in LIKELIHOODS.
"""

from ._base import ConjugateLikelihood, Likelihood, TableRows
from ._checked import checked
from ._multinomial import Multinomial

LIKELIHOODS = {"multinomial": Multinomial}

__all__ = ["LIKELIHOODS", "ConjugateLikelihood", "Likelihood", "TableRows", "checked"]
