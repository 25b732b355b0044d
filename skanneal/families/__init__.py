"""Likelihood families and the table of encoded rows.

To add a family: one file with its class (the contract is `FamilyBlock`) and one line in FAMILIES.
"""

from ._base import FamilyBlock
from ._bernoulli import Bernoulli
from ._categorical import Categorical
from ._known_normal import KnownNormal
from ._multinomial import Multinomial
from ._multivariate_normal import MultivariateNormal
from ._normal import Normal
from ._poisson import Poisson
from ._table import MISSING_COUNT, Table

FAMILIES = {
    family.family: family
    for family in (
        Normal,
        Categorical,
        Bernoulli,
        Poisson,
        MultivariateNormal,
        KnownNormal,
        Multinomial,
    )
}

__all__ = ["FAMILIES", "MISSING_COUNT", "FamilyBlock", "Table"]
