"""Subsets of the levels: nested ones beside ones drawn independently of each other.

Van de Meent, Paige and Wood (2014), section 3, name both and report of "simple trials" that
exchanges between independent subsets are seldom accepted. Here level m of "independent" chains
holds n_m rows that were drawn without a look at the other levels: once for parallel tempering, anew
for each pass of tempered transitions. Steps are found in a warm-up, as elsewhere, and then so many
iterations are made; acceptances and effective draws per iteration do not depend on the clock.
Nested subsets are the cheaper ones besides, since one evaluation gives all hotter levels.
"""

import numpy as np

from papers.tempering_chains import N_CHAINS, begin, plan_of
from papers.tempering_models import paper_starts, target, tuned_sampler
from skanneal.schedules import GeometricLadder
from skanneal.summary import ess, r_hat
from skanneal.tempering import Target
from skanneal.tempering._bound import BoundPython

SUBSETS = ("nested", "independent")
LADDER = GeometricLadder()


class OwnSubsets(Target):
    """A target whose hotter levels hold rows of their own choice, evaluated by the target's code.

    Parameters
    ----------
    target : Target
        With code of its own for evaluations.
    independent_subsets : bool
        Otherwise the levels hold the first rows of one order.
    """

    independent = False  # no sum over the rings between nested levels
    has_gradient = True

    def __init__(self, target, independent_subsets):
        self.target, self.independent_subsets = target, independent_subsets
        self.n_parameters, self.n_rows = target.n_parameters, target.n_rows

    def bind(self, order, sizes):
        """The evaluator of one chain."""
        return BoundPython(_Levels(self, sizes, order), order, sizes)


class _Levels(OwnSubsets):
    """The levels of one chain."""

    def __init__(self, of, sizes, order):
        super().__init__(of.target, of.independent_subsets)
        everything = np.arange(self.n_rows)
        self.levels = {int(n): self.target.bind(everything, np.array([n])) for n in sizes}
        self.generator = np.random.default_rng(order[:8])  # the chain's own
        self.fewest, self.seen = int(min(sizes)), {}

    def log_prior(self, theta, gradient=False):
        """As the target's."""
        return self.levels[self.n_rows].prior(theta, gradient)

    def log_likelihood(self, theta, rows, gradient=False):
        """Of a level, which is known by how many rows it has."""
        level = self.levels[len(rows)]
        self.choose(rows, level)
        values, slope = level.evaluate(theta, 0, gradient)
        return values[0], slope

    def choose(self, rows, level):
        """Give a level its rows, if those of the walk have changed."""
        n = len(rows)
        key = rows[: self.fewest].tobytes()
        if n == self.n_rows or self.seen.get(n) == key:
            return
        self.seen[n] = key
        if self.independent_subsets:
            level.set_order(self.generator.permutation(self.n_rows))
        else:
            rest = np.setdiff1d(np.arange(self.n_rows), rows)
            level.set_order(np.concatenate([rows, rest]))


def measure_subsets(model, inner, n_parameters, n_rows, way, subsets, seed, n_draws):
    """Acceptances of three chains, and effective draws per 1,000 iterations of each.

    Parameters
    ----------
    way : {"spt", "stt"}
    subsets : {"nested", "independent"}
    n_draws : int
        Iterations of a chain after as many of warm-up.
    """
    problem = OwnSubsets(target(model, n_parameters, n_rows), subsets == "independent")
    plan = plan_of(problem, way, LADDER, tuned_sampler(model, inner))._replace(n_warmup=n_draws)
    seeds = np.random.SeedSequence(seed).spawn(N_CHAINS)
    made, swaps, passes = [], [], []
    for own, start in zip(seeds, paper_starts(model, n_parameters), strict=True):
        chain = begin(problem, plan, own, start)
        made.append(chain.advance(n_draws, None).draws)
        swaps.append(chain.walk.get_pair_acceptance())
        if way == "stt":
            passes.append(chain.walk.get_pass_acceptance())
    columns = np.moveaxis(np.array(made), -1, 0)
    effective = float(np.min([ess(column) for column in columns]))
    return {
        "r_hat": float(np.max([r_hat(column) for column in columns])),
        "per_1000": 1000 * effective / (N_CHAINS * n_draws),
        "swaps": np.mean(swaps, axis=0).round(4).tolist(),
        "passes": float(np.mean(passes)) if passes else None,
    }
