"""Likelihoods with instantiated atoms.

To add one: one file with its class (the contract is `Likelihood`) and one line in LIKELIHOODS.
"""

from ._checked import checked
from ._conjugate import ConjugateLikelihood
from ._likelihood import Likelihood
from ._logistic_normal import LogisticNormal
from ._multinomial import Multinomial
from ._multivariate_normal import MultivariateNormal
from ._normal import Normal
from ._poisson import Poisson
from ._table_rows import TableRows

LIKELIHOODS = {
    "multinomial": Multinomial,
    "poisson": Poisson,
    "normal": Normal,
    "multivariate_normal": MultivariateNormal,
    "logistic_normal": LogisticNormal,
}

__all__ = ["LIKELIHOODS", "ConjugateLikelihood", "Likelihood", "TableRows", "checked"]
