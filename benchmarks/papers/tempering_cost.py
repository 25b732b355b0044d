"""Cost of a tempered draw relative to the inner sampler's: predicted and measured.

Figure 1 of van de Meent, Paige and Wood (2014), with steps so small that nearly all moves are
accepted and every method does the same work per update. With s = sum_m beta_m^a and a cost of an
evaluation that grows as rows^a, the paper's formulas, corrected, are

    subsampled parallel tempering     s              eq. (15)
    subsampled tempered transitions   2 s - 2 + 1    eq. (16): levels 1 .. M twice, and one update
                                                     at level 0 per pass
    parallel tempering                M + 1          eq. (17)
    tempered transitions              2 M + 1        eq. (18), the same update added

They leave out the evaluations that swaps and passes add, and one gradient per update where a level
of other rows is entered; the inner sampler alone keeps its gradient.
"""

import time

import numpy as np

from papers.tempering_chains import begin, plan_of
from papers.tempering_models import ALPHA, LEAPFROG, prior_mean, target
from skanneal.schedules import GeometricLadder
from skanneal.tempering import HMC

LADDER = GeometricLadder()
REPEATS = 5


def measure_cost(model, inner, n_parameters, n_rows, way, budget):
    """Least processor seconds per draw of one chain, of five runs that share the budget."""
    assert inner == "hmc"
    problem = target(model, n_parameters, n_rows)
    sampler = HMC(step_size=1e-4, n_leapfrog=LEAPFROG[model], random_length=False, adapt=False)
    plan = plan_of(problem, way, LADDER, sampler)._replace(metric="unit")
    seed, start = np.random.SeedSequence(0), prior_mean(model, n_parameters)
    chain = begin(problem, plan, seed, start)

    def seconds(n_draws):
        began = time.process_time()
        chain.advance(n_draws, None)
        return time.process_time() - began

    seconds(2)  # the first draws come with what is made once
    n = max(1, int(2 * budget / REPEATS / seconds(2)))
    return {"draws": n, "per_draw": min(seconds(n) for _ in range(REPEATS)) / n}


def predicted(model):
    """Relative cost of each method by the formulas."""
    betas = LADDER.inverse_temperatures()
    total, top = float((betas ** ALPHA[model]).sum()), len(betas) - 1
    return {"spt": total, "stt": 2 * total - 1, "pt": top + 1.0, "tt": 2.0 * top + 1}
