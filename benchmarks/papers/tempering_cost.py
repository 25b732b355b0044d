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

from papers.tempering_models import ALPHA, LEAPFROG, prior_mean, target
from skanneal.schedules import GeometricLadder
from skanneal.tempering import HMC, sample

LADDER = GeometricLadder()


def measure_cost(model, inner, n_parameters, n_rows, way, budget):
    """Least processor seconds per draw of one chain in three runs of a third of the budget."""
    assert inner == "hmc"
    problem = target(model, n_parameters, n_rows)
    sampler = HMC(step_size=1e-4, n_leapfrog=LEAPFROG[model], random_length=False, adapt=False)
    options = {"method": way, "schedule": LADDER, "inner": sampler, "metric": "unit"}
    options |= {"n_chains": 1, "n_warmup": 0, "init": prior_mean(model, n_parameters)}

    def seconds(n_draws):
        began = time.process_time()
        sample(problem, n_draws=n_draws, random_state=0, **options)
        return time.process_time() - began

    n = 4  # a call has costs of its own: they are the same for n and 2 n draws
    while seconds(n) < budget / 6 and n < 50_000:
        n *= 2
    return {"draws": n, "per_draw": min(max(seconds(2 * n) - seconds(n), 0) / n for _ in range(3))}


def predicted(model):
    """Relative cost of each method by the formulas."""
    betas = LADDER.inverse_temperatures()
    total, top = float((betas ** ALPHA[model]).sum()), len(betas) - 1
    return {"spt": total, "stt": 2 * total - 1, "pt": top + 1.0, "tt": 2.0 * top + 1}
