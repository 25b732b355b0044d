"""One chain: warm-up, in which step sizes, units and ladder adapt, then draws, all of it frozen.

A chain is a pure function of the target, the plan, a starting point and a seed.
"""

# SPDX-License-Identifier: BSD-3-Clause

import time
from typing import NamedTuple

import numpy as np
from scipy.interpolate import PchipInterpolator
from threadpoolctl import threadpool_limits

from ._inner import Inner
from ._levels import Levels
from ._recentre import recentre
from ._targets import prior_draw
from ._walks import ParallelWalk, TransitionWalk

PARALLEL = ("spt", "pt", "none")
SUBSAMPLED = ("spt", "stt")
METHODS = ("spt", "stt", "pt", "tt", "none")
CHUNK_SECONDS = 0.05  # between two looks at the clock and the stop flag
MAX_STARTS = 1000  # draws from the prior until one has a likelihood
N_TILTS = 4  # sets of rows of re-centred levels, each pass takes one of
CROSSES = 0.1  # acceptance of passes from which on they do the work ..
RECENTRED_BASE_MOVES = 0.1  # .. and so many updates of the target's level are enough
LEAST_REJECTION = 0.01  # of a pair, when a ladder adapts: no two levels may coincide


class Plan(NamedTuple):
    """What all chains share."""

    method: str
    betas: np.ndarray  # with more than one level unless the method is "none" or there is one row
    adapt_ladder: bool
    samplers: tuple  # BaseInnerSampler
    metric: str
    swaps: str
    n_exchanges: int
    n_base_moves: float | None  # None: as passes are accepted
    recentre: bool
    n_draws: int
    n_warmup: int
    max_time: float | None


class Iterations(NamedTuple):
    """What `Walk.advance` writes, a row per iteration."""

    draws: np.ndarray
    densities: np.ndarray
    work: np.ndarray
    candidates: np.ndarray  # of no columns where they are not wanted

    @classmethod
    def empty(cls, n, chain, candidates=False):
        d = chain.target.n_parameters
        return cls(
            np.empty((n, d)),
            np.empty((n, 2)),
            np.empty((n, len(chain.betas) - 1, 2)),
            np.empty((n, (d + 1) * candidates)),
        )


def run_chain(target, plan, seed, start, stop=None, progress=None):
    """Run one chain.

    Parameters
    ----------
    target : Target
    plan : Plan
    seed : SeedSequence
    start : ndarray of shape (n_parameters,) or None
        None draws from the prior.
    stop : StopFlag or None
        Once set, what has been drawn is returned.
    progress : callable or None
        ``progress(share)`` is told the share of the iterations that is done, or of the time, and
        returns whether to stop.

    Returns
    -------
    record : dict of str to ndarray, number or None
    """
    with threadpool_limits(1, user_api="blas"):
        chain = _Chain(target, plan, seed, start, stop, progress)
        n_warmup = chain.warm_up()
        return chain.draw() | {"n_warmup": n_warmup}


class _Chain:
    def __init__(self, target, plan, seed, start, stop, progress):
        self.target, self.plan, self.stop, self.progress = target, plan, stop, progress
        self.n_done = 0  # iterations, of warm-up and draws
        self.bit_generator = np.random.PCG64(seed)
        self.generator = np.random.Generator(self.bit_generator)
        self.exact_prior = target.draws_prior
        self.order = np.argsort(self.generator.random(target.n_rows), kind="stable")
        d = target.n_parameters
        base = np.array([[sampler.step_size] for sampler in plan.samplers])
        positive = np.where(plan.betas > 0, plan.betas, plan.betas[plan.betas > 0][-1])
        self.build(plan.betas, base / np.sqrt(positive), np.ones(d))
        self.start(start)

    def build(self, betas, steps, scale):
        """Levels, updates and walk for a ladder."""
        plan, target = self.plan, self.target
        transitions = plan.method not in PARALLEL and len(betas) > 1
        self.betas = betas
        if plan.method in SUBSAMPLED:
            self.sizes = distinct_sizes(betas, target.n_rows)
            rung = np.minimum(np.arange(len(betas)), (self.sizes > 0).sum() - 1)
            power = np.where(self.sizes > 0, 1.0, 0.0)
        else:
            self.sizes = np.where(betas > 0, target.n_rows, 0)
            rung, power = np.zeros(len(betas), dtype=np.intp), betas
        distinct = self.sizes[self.sizes > 0] if plan.method in SUBSAMPLED else self.sizes[:1]
        self.bound = target.bind(self.order, distinct)
        self.levels = Levels(
            target,
            self.bound,
            rung,
            power,
            self.bit_generator,
            2 if transitions else len(betas),
            self.exact_prior,
        )
        updates = [sampler._update(target.n_parameters) for sampler in plan.samplers]
        self.inner = Inner(self.levels, updates, steps, scale)
        if transitions:
            n_moves = 1.0 if plan.n_base_moves is None else plan.n_base_moves
            if plan.recentre:  # levels that are no copies yet carry the chain nowhere
                n_moves = max(1.0, n_moves)
            self.walk = TransitionWalk(self.levels, self.inner, n_base_moves=n_moves)
        else:
            self.walk = ParallelWalk(
                self.levels,
                self.inner,
                even_odd=plan.swaps == "even_odd",
                n_exchanges=plan.n_exchanges,
            )

    def start(self, theta):
        """Put all replicas where every level has a density."""
        for i in range(self.n_replicas):
            for _ in range(1 if theta is not None else MAX_STARTS):
                first = prior_draw(self.target, self.generator) if theta is None else theta
                densities = self.levels.set_theta(i, first)
                if np.isfinite(densities).all():
                    break
            else:
                raise ValueError(
                    f"the log prior plus log likelihood at "
                    f"{'the start given by init' if theta is not None else 'draws from the prior'} "
                    f"is not finite (at levels {np.flatnonzero(~np.isfinite(densities)).tolist()}):"
                    f" give a start where it is, as init."
                )

    @property
    def n_replicas(self):
        """How many thetas the walk keeps between iterations."""
        return len(self.betas) if isinstance(self.walk, ParallelWalk) else 1

    # ---- warm-up --------------------------------------------------------------------------------

    def warm_up(self):
        """Adapt; returns the iterations made."""
        plan = self.plan
        began, n = time.perf_counter(), plan.n_warmup
        self.began = began
        per_iteration = None if plan.max_time is None else plan.max_time / (n + plan.n_draws)
        self.deadline = None if plan.max_time is None else began + plan.max_time
        self.inner.set_adapting(True)
        history, done, fit_seconds = [Iterations.empty(0, self, plan.recentre)], 0, 0.0
        stages = [n // 8, n // 4, n // 2, *([3 * n // 4] if plan.recentre else []), n]
        for stage in stages:
            self.walk.reset_counts()
            deadline = None if per_iteration is None else began + stage * per_iteration
            history.append(self.advance(stage - done, deadline, candidates=plan.recentre))
            n_new = len(history[-1].draws)
            done += n_new
            if stage == n or n_new == 0:
                continue
            if plan.adapt_ladder and len(self.betas) > 2:
                self.adapt_ladder()
            if stage >= n // 2 and plan.metric == "diagonal":
                recent = np.concatenate([made.draws for made in history[-2:]])
                self.inner.set_scale(posterior_scale(recent))
                self.inner.set_adapting(False)
                self.inner.set_adapting(True)
            now = time.perf_counter()
            if plan.recentre and (
                per_iteration is None or now + fit_seconds < began + n * per_iteration
            ):
                self.choose_base_moves(last=stage == stages[-2])
                self.recentre(history[-2:])
                fit_seconds = time.perf_counter() - now  # as the next fit may take
        self.inner.set_adapting(False)
        self.walk.reset_counts()
        if plan.n_exchanges:
            last = np.concatenate([made.draws for made in history])[done // 2 :]
            self.walk.set_reference(last.mean(axis=0) if len(last) else self.levels.get_theta(0))
        self.seconds_warmup = time.perf_counter() - began
        return done

    def adapt_ladder(self):
        """Move the levels in between to where neighbours reject equally often."""
        rejection = 1.0 - self.walk.get_pair_acceptance()
        betas = equal_rejection(self.betas, np.nan_to_num(rejection, nan=1.0))
        thetas = [self.levels.get_theta(i) for i in range(self.n_replicas)]
        old, steps, scale = self.betas, self.inner.get_steps(), self.inner.get_scale()
        position = np.interp(-betas, -old, np.arange(len(old)))
        steps = np.exp([np.interp(-betas, -old, np.log(row)) for row in steps])
        nearest = np.rint(position).astype(int)
        self.build(betas, steps, scale)
        for i in range(self.n_replicas):
            for theta in (thetas[nearest[i] if len(thetas) > 1 else 0], thetas[0]):
                if np.isfinite(self.levels.set_theta(i, theta)[i]):
                    break
        self.inner.set_adapting(True)

    def recentre(self, history):
        """Tilt the levels of fewer rows to what the target is where the chain has been."""
        scale = posterior_scale(np.concatenate([made.draws for made in history]))
        n_tilts = N_TILTS if isinstance(self.walk, TransitionWalk) else 1
        powers = self.sizes[0] / self.sizes[1:]
        if recentre(self.levels, history, scale, powers, self.generator, n_tilts):
            self.inner.set_adapting(True)

    def choose_base_moves(self, last):
        """Go over to few updates of the target's level once passes do the work."""
        if self.levels.tilted and isinstance(self.walk, TransitionWalk):
            n_moves = self.plan.n_base_moves
            if n_moves is None or not last:
                crosses = self.walk.get_pass_acceptance() >= CROSSES
                n_moves = RECENTRED_BASE_MOVES if crosses else 1.0
            self.walk.set_base_moves(n_moves)

    # ---- draws ----------------------------------------------------------------------------------

    def draw(self):
        """Draw with everything frozen; returns the record."""
        began = time.perf_counter()
        draws, densities, work, _ = self.advance(self.plan.n_draws, self.deadline, least=1)
        transitions = isinstance(self.walk, TransitionWalk)
        return {
            "draws": draws,
            "log_prior": densities[:, 0],
            "log_likelihood": densities[:, 1],
            "elapsed": self.elapsed,
            "work": work,
            "betas": self.betas,
            "sizes": self.sizes,
            "acceptance": self.inner.get_acceptance(),
            "swap_acceptance": self.walk.get_pair_acceptance(),
            "pass_acceptance": self.walk.get_pass_acceptance() if transitions else np.nan,
            "exchange_acceptance": np.nan if transitions else self.walk.get_exchange_acceptance(),
            "round_trips": self.walk.round_trips,
            "step_sizes": self.inner.get_steps(),
            "scale": self.inner.get_scale(),
            "nan_rejections": self.levels.get_nan_count(),
            "seconds_warmup": self.seconds_warmup,
            "seconds": time.perf_counter() - began,
        }

    def advance(self, n, deadline, candidates=False, least=0):
        """Up to n iterations: as many as there is time for, and `least` anyway."""
        made = Iterations.empty(n, self, candidates)
        elapsed = np.empty(n)
        done, chunk, quickest = 0, 1, np.inf  # seconds of an iteration: others were held up
        while done < n and not (self.stop is not None and self.stop.is_set()):
            began = time.perf_counter()
            if deadline is not None and done >= least:
                left = deadline - began
                if left <= (quickest if done else 0.0):
                    break
                if done:
                    chunk = min(chunk, max(1, int(left / quickest)))
            part = slice(done, min(n, done + chunk))
            self.walk.advance(*(array[part] for array in made))
            quickest = min(quickest, (time.perf_counter() - began) / (part.stop - part.start))
            done = part.stop
            now = time.perf_counter()
            elapsed[part] = np.linspace(began, now, done - part.start + 1)[1:] - self.began
            if now - began < CHUNK_SECONDS:
                chunk *= 2
            self.n_done += part.stop - part.start
            if self.progress is not None and self.progress(self.share(now)):
                self.stop.set()
        self.elapsed = elapsed[:done]
        return Iterations(*(array[:done] for array in made))

    def share(self, now):
        """The share of the iterations, or of the time if that is limited, that is behind."""
        of_work = self.n_done / (self.plan.n_warmup + self.plan.n_draws)
        of_time = 0.0 if self.deadline is None else (now - self.began) / self.plan.max_time
        return min(max(of_work, of_time), 1.0)


def distinct_sizes(betas, n_rows):
    """Rows of each level, strictly decreasing; a beta of 0 has none."""
    sizes = np.maximum(np.rint(betas * n_rows), betas > 0).astype(np.int64)
    n_positive = int((betas > 0).sum())
    for m in range(n_positive - 1, 0, -1):  # room for the hotter levels that follow
        sizes[m] = max(sizes[m], n_positive - m)
    for m in range(1, n_positive):
        sizes[m] = min(sizes[m], sizes[m - 1] - 1)
    return sizes


def equal_rejection(betas, rejection):
    """Inverse temperatures between which the rejection is spread evenly.

    Rejections of neighbours add up along the ladder, nearly whatever its levels (Syed,
    Bouchard-Cote, Deligiannidis and Doucet, 2022): equal shares of the sum are equal rejections.

    >>> equal_rejection(np.array([1.0, 0.5, 0.25]), np.array([0.3, 0.3])).tolist()
    [1.0, 0.5, 0.25]
    """
    total = np.r_[0.0, np.cumsum(np.maximum(rejection, LEAST_REJECTION))]
    even = np.linspace(0.0, total[-1], len(betas))
    moved = PchipInterpolator(total, betas)(even)
    moved[0], moved[-1] = betas[0], betas[-1]
    return moved


def posterior_scale(draws):
    """Standard deviations of the parameters, drawn towards their common size where draws are few.

    >>> posterior_scale(np.zeros((0, 2))).tolist()
    [1.0, 1.0]
    """
    n = len(draws)
    if n < 10:
        return np.ones(draws.shape[1])
    variances = draws.var(axis=0)
    common = np.exp(np.mean(np.log(np.maximum(variances, 1e-300))))
    if not np.isfinite(common) or common <= 1e-200:
        return np.ones(draws.shape[1])
    return np.sqrt((n * variances + 5.0 * common) / (n + 5.0))
