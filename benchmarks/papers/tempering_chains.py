"""Tempered chains that go on until they agree, or until their processor seconds are spent.

``skanneal.tempering.sample`` makes so many draws, or draws for so long. Here all chains go on in
turns, between which their draws are looked at, with everything as it was: so this drives the
package's chain itself.
"""

import time

import numpy as np

from papers.tempering_models import (
    paper_sampler,
    paper_starts,
    paper_steps,
    target,
    tuned_sampler,
)
from skanneal.schedules import GeometricLadder
from skanneal.summary import ess, r_hat
from skanneal.tempering._chain import Plan, _Chain
from skanneal.tempering._result import paper_ess
from skanneal.tempering._sample import ladder_of

N_CHAINS = 3  # as in the paper
AGREE, ENOUGH = 1.05, 200  # R-hat and effective sample size at which a cell stops
FIRST, GROWTH = 32, 1.25  # draws at the first look, and by what they grow until the next
WARM_UP = 0.25  # of the budget, where step sizes are found
RECENTRED = GeometricLadder(n_levels=2, recentre=True)
# By name: method, ladder, and how many times as long trajectories are (Metropolis: walks).
WAYS = {
    "none": ("none", GeometricLadder(), 1),
    "stt": ("stt", GeometricLadder(), 1),
    "tt": ("tt", GeometricLadder(), 1),
    "spt": ("spt", GeometricLadder(), 1),
    "pt": ("pt", GeometricLadder(), 1),
    "none x4": ("none", GeometricLadder(), 4),
    "stt re-centred": ("stt", RECENTRED, 2),
}


def chains(model, inner, n_parameters, n_rows, setting, way, seed):
    """Three chains at their starts.

    Parameters
    ----------
    model : {"gaussian", "gp"}
    inner : {"hmc", "mh"}
    n_parameters, n_rows : int
    setting : {"paper", "tuned"}
        The paper's fixed steps, or steps that a warm-up finds for the same acceptance everywhere.
    way : str
        Of `WAYS`.
    seed : int
        Of the chains; the data have one of their own.
    """
    method, ladder, longer = WAYS[way]
    problem, is_paper = target(model, n_parameters, n_rows), setting == "paper"
    sampler = paper_sampler(model, inner) if is_paper else tuned_sampler(model, inner, longer)
    plan = plan_of(problem, method, ladder, sampler)
    plan = plan._replace(metric="unit", n_base_moves=0.0) if is_paper else plan
    steps = paper_steps(inner, plan.betas)[np.newaxis] if is_paper else None
    seeds = np.random.SeedSequence(seed).spawn(N_CHAINS)
    starts = paper_starts(model, n_parameters)
    return [begin(problem, plan, *own, steps) for own in zip(seeds, starts, strict=True)]


def plan_of(problem, method, ladder, sampler):
    """What ``sample`` plans by default."""
    return Plan(
        method=method,
        betas=ladder_of(ladder, method, problem.n_rows),
        adapt_ladder=False,
        samplers=(sampler,),
        metric="diagonal",
        swaps="sequential",
        n_exchanges=0,
        n_base_moves=None if ladder.recentre else 1.0,
        recentre=ladder.recentre and method != "none",
        n_draws=1,
        n_warmup=0,
        max_time=None,
    )


def begin(problem, plan, seed, start, steps=None):
    """A chain at its start, its steps frozen; with steps for each level, if they are given."""
    chain = _Chain(problem, plan, seed, start, None, None)
    if steps is not None:
        chain.build(plan.betas, steps, np.ones(problem.n_parameters))
        chain.start(start)
    chain.warm_up()  # of no iterations
    return chain


def warm_up(chain, budget):
    """Find step sizes in about so many processor seconds; returns those spent."""
    began = time.process_time()
    chain.advance(8, None)
    n = int(np.clip(8 * budget / max(time.process_time() - began, 1e-4), 64, 20_000))
    chain.plan = chain.plan._replace(n_warmup=n)
    chain.warm_up()
    return time.process_time() - began


def run(model, inner, n_parameters, n_rows, setting, way, seed, budget):
    """What the chains have reached when they stop.

    Returns
    -------
    record : dict
        ``stopped`` is whether all parameters agree; rates are per processor second of all chains'
        kept draws. ``path`` has draws per chain, seconds per chain, median R-hat by eq. (7).
    """
    running = chains(model, inner, n_parameters, n_rows, setting, way, seed)
    return follow(running, budget, is_tuned=setting == "tuned")


def follow(running, budget, *, is_tuned):
    """What these chains have reached when they stop; the record of `run`."""
    in_warm_up = sum(warm_up(c, WARM_UP * budget) for c in running) if is_tuned else 0.0
    left = N_CHAINS * budget - in_warm_up
    parts, spent, wanted, path = [[] for _ in running], 0.0, FIRST, []
    while True:
        done = sum(map(len, parts[0]))
        began = time.process_time()
        for chain, part in zip(running, parts, strict=True):
            part.append(chain.advance(wanted - done, None).draws)
        spent += time.process_time() - began
        draws = np.array([np.concatenate(part) for part in parts])
        kept = draws if is_tuned else draws[:, wanted // 2 :]
        path.append((wanted, spent / N_CHAINS, float(np.median(paper_r_hat(kept)).clip(0, 1e6))))
        agree = converged(kept)
        per_draw = spent / wanted
        if agree or spent + (GROWTH - 1) * wanted * per_draw > left:
            break
        wanted = int(np.ceil(GROWTH * wanted))
    seconds = per_draw * kept.shape[1]
    columns = np.moveaxis(kept, -1, 0)
    found = {
        "r_hat": float(np.max([r_hat(column) for column in columns])),
        "bulk": float(np.min([ess(column) for column in columns])),
        "paper_r_hat": float(np.median(paper_r_hat(kept))),
        "paper_ess": float(np.median([paper_ess(column) for column in columns])),
    }
    found = {name: value if np.isfinite(value) else None for name, value in found.items()}
    return found | {
        "stopped": bool(agree),
        "draws": wanted,
        "kept_seconds": seconds,
        "warm_up_seconds": in_warm_up,
        "path": path,
    }


def paper_r_hat(draws):
    """Equations (4) to (7), of each parameter; infinite where no chain has moved."""
    within = draws.var(axis=1, ddof=1).mean(axis=0)
    between = draws.shape[1] * draws.mean(axis=1).var(axis=0, ddof=1)
    n = draws.shape[1]
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = ((n - 1) / n * within + between / n) / within
    return np.sqrt(np.nan_to_num(ratio, nan=np.inf, posinf=np.inf))


def converged(draws):
    """Whether every parameter has an R-hat below 1.05 and more than 200 effective draws."""
    if paper_r_hat(draws).max() > 1.2 or draws[:, :, 0].size < ENOUGH:
        return False  # the rest costs more
    columns = np.moveaxis(draws, -1, 0)
    return all(r_hat(column) < AGREE and ess(column) > ENOUGH for column in columns)


def rate(record, estimator):
    """Effective draws per processor second; what does not move counts as one draw a chain."""
    return (record[estimator] or N_CHAINS) / record["kept_seconds"]


def agrees(record):
    """Whether R-hat is at most 1.1 for every parameter."""
    return record["r_hat"] is not None and record["r_hat"] <= 1.1
