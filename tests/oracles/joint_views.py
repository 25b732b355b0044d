"""Small tables of CrossCat with columns that have one normal law together in a view, enumerated.

Gaps (None) are integrated out.

A joint column is ("multivariate_normal", rows of one cell, hyper): its hyperparameters are those of
the normal-inverse-Wishart prior of this column alone. The columns of a view have the prior of which
each one's is the marginal: as many degrees of freedom more as there are columns more, and a
diagonal scale. kappa0 is one for all columns.
"""

import math

import numpy as np

from oracles.crosscat_enumeration import CrossCatTarget
from oracles.enumeration import clusters
from oracles.gaps_reference import observed_log_marginal

FAMILY = "multivariate_normal"


def joint_column(values, psi=0.6, *, kappa0=0.4, nu0=2.5, mu0=0.25):
    """A joint column of these numbers; lists of kappa0 or psi are grids of hyperparameters."""
    rows = [(None if value is None else float(np.float32(value)),) for value in values]
    hypers = [
        {"mu0": [mu0], "kappa0": kappa, "nu0": nu0, "scale0": [[scale]]}
        for kappa in np.atleast_1d(kappa0).tolist()
        for scale in np.atleast_1d(psi).tolist()
    ]
    return FAMILY, rows, hypers[0] if len(hypers) == 1 else hypers


def hyper_of_view(hypers):
    """The hyperparameters of columns together, of those of each alone."""
    return {
        "mu0": [hyper["mu0"][0] for hyper in hypers],
        "kappa0": hypers[0]["kappa0"],
        "nu0": hypers[0]["nu0"] + len(hypers) - 1,
        "scale0": np.diag([hyper["scale0"][0][0] for hyper in hypers]),
    }


class JointTarget(CrossCatTarget):
    """The target where columns of the family have one law in each view."""

    def _log_marginals(self, family, values, hyper):
        if family == FAMILY:
            return None
        return super()._log_marginals(family, values, hyper)

    @property
    def joint(self):
        return [f for f, (family, _, _) in enumerate(self.columns) if family == FAMILY]

    def log_joint(self, state):
        """-inf where columns do not share kappa0."""
        kappas = {self.columns[f][2]["kappa0"] for f in self.joint}
        return super().log_joint(state) if len(kappas) == 1 else -math.inf

    def log_view(self, features, content):
        key = features, content
        if key not in self.cache:
            others = [f for f in features if f not in self.joint]
            likelihood = math.fsum(self.log_lik[f][content] for f in others)
            joint = [f for f in features if f in self.joint]
            likelihood += self.beta * self.log_rows(joint, content[0])
            self.cache[key] = math.log(self.prior[content]) + likelihood
        return self.cache[key]

    def log_rows(self, joint, labels):
        """Log marginal likelihood of joint columns together."""
        if not joint:
            return 0.0
        hyper = hyper_of_view([self.columns[f][2] for f in joint])
        rows = [sum(cells, ()) for cells in zip(*(self.columns[f][1] for f in joint))]
        members = clusters(labels)
        return math.fsum(
            observed_log_marginal(FAMILY, [rows[i] for i in own], hyper) for own in members
        )
