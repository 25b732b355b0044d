"""Tempered sampling of a target: several chains, one call."""

# SPDX-License-Identifier: BSD-3-Clause

import functools
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from .._native._types import Seed
from .._native._warning import warn
from ..parallel import Progress, TimeLimit, n_workers, run_tasks, say, spawn_seeds
from ..schedules import BaseLadder, GeometricLadder
from ._chain import METHODS, SUBSAMPLED, Plan, run_chain
from ._given import as_numbers
from ._gradients import check_gradient as check
from ._result import TemperingResult
from ._samplers import resolve_inner
from ._targets import Target

INTERRUPTED = "The run was interrupted: it keeps the draws made so far."
EXCHANGES_PER_ROW = 1 / 8  # of level 1 and iteration, where a row costs little


def sample(
    target: Any,
    *,
    method: str = "stt",
    schedule: Any = None,
    inner: Any = "hmc",
    n_chains: int = 4,
    n_draws: int = 250,
    n_warmup: int = 250,
    n_jobs: int | None = None,
    max_time: float | None = None,
    random_state: Seed = None,
    verbose: int = 0,
    progress: Any = None,
    init: ArrayLike | None = None,
    metric: str = "diagonal",
    swaps: str = "sequential",
    resample: Any = False,
    n_base_moves: Any = "auto",
    check_gradient: bool = False,
) -> TemperingResult:
    """Draw from a target by tempered Markov chains.

    Parameters
    ----------
    target : Target
        What to draw from.
    method : {"stt", "spt", "tt", "pt", "none"}, default="stt"
        "stt" and "tt" are tempered transitions, "spt" and "pt" parallel tempering. Levels have
        fewer rows in the methods with "s", and powers of the likelihood of all rows in the others.
        "none" is the inner sampler alone.
    schedule : ladder or None, default=None
        A `GeometricLadder` or `CustomLadder`; None is ``GeometricLadder()``.
    inner : {"hmc", "mh"}, inner sampler or sequence of them, default="hmc"
        What updates theta within a level. Several samplers are applied from the first to the last
        and back.
    n_chains : int, default=4
        Number of independent chains; with "spt" each has its own subsets of the rows.
    n_draws, n_warmup : int, default=250
        Iterations of each chain that are kept, and iterations before these, in which step sizes
        (and a ladder with `adapt`) adapt.
    n_jobs : int or None, default=None
        How many chains run at a time, through joblib. A target in plain Python holds the GIL.
    max_time : float or None, default=None
        Seconds of wall clock for all chains together; warm-up gets its share. Iterations that would
        end later are left out, except one. The number of draws then depends on the machine.
    random_state : int, None, RandomState, Generator or SeedSequence, default=None
        An int gives the same draws every time, for any `n_jobs`.
    verbose : int, default=0
        If above 0, a line is printed for each chain when it ends.
    progress : callable or None, default=None
        ``progress(chain, share)`` is called from time to time in the process of the chain, with the
        chain's number and the share of its iterations, or of its time, that is done. If it returns
        True, all chains stop, as after an interrupt. It must be picklable if chains run in other
        processes.
    init : array-like of shape (n_parameters,) or (n_chains, n_parameters), default=None
        Where chains start; None draws from the prior.
    metric : {"diagonal", "unit"}, default="diagonal"
        Whether step sizes are in units of the parameters' standard deviations, as estimated in
        warm-up.
    swaps : {"sequential", "even_odd"}, default="sequential"
        The pairs of levels in parallel tempering: all pairs from the hottest down, or even and odd
        pairs in turns.
    resample : bool or int, default=False
        With "spt", exchange rows between levels while drawing, with this many proposals per
        iteration. True means 1 or, with independent rows, an eighth of the rows of level 1. The
        draws stay exact, but the evidence cannot be estimated, because the constants of the levels
        change with their rows.
    n_base_moves : float or "auto", default="auto"
        Inner updates of the target's level before each tempered transition; 0.1 means one before
        every tenth, at random. "auto" is 1, and 0.1 with re-centred levels, whose passes cost far
        less than such an update. If `swap_acceptance` is high, fewer updates are faster.
    check_gradient : bool, default=False
        Whether to compare the target's gradient with finite differences before anything runs.

    Returns
    -------
    result : TemperingResult

    Raises
    ------
    ValueError, TypeError
        Naming the parameter at fault, before any chain runs.
    KeyboardInterrupt
        If an interrupt comes before any draw. Later, the draws made so far are returned, with a
        ConvergenceWarning.

    Examples
    --------
    >>> import numpy as np
    >>> from skanneal.tempering import GaussianMeanTarget, sample
    >>> rng = np.random.default_rng(0)
    >>> target = GaussianMeanTarget(rng.normal(2, 1, (100, 3)))
    >>> result = sample(target, method="spt", random_state=0)
    >>> bool(np.all(abs(result.flat.mean(axis=0) - target.posterior()[0]) < 0.05))
    True
    """
    if not isinstance(target, Target):
        raise TypeError(f"target must be a skanneal.tempering.Target, got {type(target).__name__}.")
    _one_of("method", method, METHODS)
    _one_of("metric", metric, ("diagonal", "unit"))
    _one_of("swaps", swaps, ("sequential", "even_odd"))
    for name, value, least in (
        ("n_chains", n_chains, 1),
        ("n_draws", n_draws, 1),
        ("n_warmup", n_warmup, 0),
    ):
        if not isinstance(value, Integral) or isinstance(value, bool) or value < least:
            raise ValueError(f"{name} must be an integer, at least {least}; got {value!r}.")
    if n_base_moves != "auto" and not (
        isinstance(n_base_moves, Real) and 0 <= n_base_moves < np.inf
    ):
        raise ValueError(
            f'n_base_moves must be "auto" or a number, at least 0; got {n_base_moves!r}.'
        )
    if max_time is not None and not (isinstance(max_time, Real) and 0 < max_time < np.inf):
        raise ValueError(f"max_time must be a positive number of seconds, got {max_time!r}.")
    limit = TimeLimit(max_time)
    _check_target(target)
    samplers = resolve_inner(inner, target)
    ladder = resolve_ladder(schedule)
    betas = ladder_of(ladder, method, target.n_rows)
    recentre = _recentres(ladder, method, target, betas, resample)
    if n_base_moves == "auto":
        n_base_moves = None if recentre else 1.0
    starts = _starts(init, target, n_chains)
    if check_gradient:
        check(target, None if starts[0] is None else starts[0])
    plan = Plan(
        method=method,
        betas=betas,
        adapt_ladder=bool(ladder.adapt),
        samplers=tuple(samplers),
        metric=metric,
        swaps=swaps,
        n_exchanges=_n_exchanges(resample, method, target, betas),
        n_base_moves=n_base_moves,
        recentre=recentre,
        n_draws=int(n_draws),
        n_warmup=int(n_warmup),
        max_time=None,
    )
    seeds = spawn_seeds(random_state, n_chains)
    tasks = [
        (limit, number, target, plan, seed, start, progress, verbose)
        for number, (seed, start) in enumerate(zip(seeds, starts))
    ]
    task = functools.partial(_chain_in_time, len(tasks), n_workers(n_jobs))
    with threadpool_limits(1, user_api="blas"):
        records, interrupted = run_tasks(task, tasks, n_jobs=n_jobs)
    records = [record for record in records if record is not None and len(record["draws"])]
    if not records:
        raise KeyboardInterrupt
    if limit and not interrupted and min(len(record["draws"]) for record in records) == 1 < n_draws:
        warn(
            f"max_time was over before every chain had made two draws: to make one each took "
            f"{limit.taken:.3g} seconds. Give more time, or fewer rows or chains.",
            ConvergenceWarning,
        )
    names = target.parameter_names
    if names is None:
        names = [f"theta[{i}]" for i in range(target.n_parameters)]
    result = TemperingResult(records, method, names, interrupted)
    if verbose:
        say(f"R-hat {np.max(result.r_hat):.3f}, bulk ESS {np.min(result.ess_bulk):.0f}")
    if interrupted:
        warn(INTERRUPTED, ConvergenceWarning)
    n_nan = int(result.nan_rejections.sum())
    if n_nan:
        warn(
            f"{n_nan} evaluations of the likelihood were not a number and counted as rejections "
            f"(nan_rejections says at which levels).",
            RuntimeWarning,
        )
    return result


def _chain_in_time(
    n_tasks, n_at_a_time, limit, number, target, plan, seed, start, progress, verbose, stop
):
    """A chain with its share of what is left of the time."""
    plan = plan._replace(max_time=limit.share(number, n_tasks, n_at_a_time))
    if progress is not None:
        progress = functools.partial(progress, number)
    record = run_chain(target, plan, seed, start, stop, progress)
    if progress is not None:
        progress(1.0)
    Progress(number, verbose).say(described(record))
    return record


def resolve_ladder(schedule):
    """Return a validated copy of a ladder; None is the default one."""
    if schedule is None:
        return GeometricLadder()
    if not isinstance(schedule, BaseLadder):
        raise ValueError(
            f"schedule must be a ladder (GeometricLadder, CustomLadder) or None, not {schedule!r}."
        )
    ladder = clone(schedule)
    ladder.inverse_temperatures()
    return ladder


def ladder_of(ladder, method, n_rows):
    """Inverse temperatures for a method and so many rows."""
    if method == "none":
        return np.ones(1)
    if method in SUBSAMPLED:
        return ladder.levels(n_rows)[0]
    return ladder.inverse_temperatures()


def described(record):
    """What a chain has done, in a line."""
    swaps, n_draws = record["swap_acceptance"], len(record["draws"])
    crossing = f", lowest crossing {np.nanmin(swaps):.2f}" if n_draws and len(swaps) else ""
    return (
        f"{record['n_warmup']} + {n_draws} iterations, "
        f"{record['seconds_warmup'] + record['seconds']:.1f} s: acceptance "
        f"{np.nanmean(record['acceptance']) if n_draws else np.nan:.2f}{crossing}, "
        f"{record['round_trips']} round trips"
    )


def _one_of(name, value, allowed):
    if not isinstance(value, str) or value not in allowed:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, allowed))}, got {value!r}.")


def _check_target(target):
    for name in ("n_parameters", "n_rows"):
        value = getattr(target, name, None)
        if not isinstance(value, Integral) or value < 1:
            raise ValueError(
                f"{name} of {type(target).__name__} must be a positive integer, got {value!r}."
            )
    names = target.parameter_names
    given = list(names) if np.iterable(names) and not isinstance(names, str) else []
    right = len(given) == target.n_parameters and all(isinstance(name, str) for name in given)
    if names is not None and not right:
        raise ValueError(
            f"parameter_names of {type(target).__name__} must be None or {target.n_parameters} "
            f"strings, got {names!r}."
        )


def _starts(init, target, n_chains):
    """A starting point per chain, None where the prior is drawn from."""
    if init is None:
        if not target.draws_prior:
            raise ValueError(
                f"init must be given: {type(target).__name__} does not define draw_prior."
            )
        return [None] * n_chains
    starts = as_numbers("init", init)
    if starts.ndim == 1:
        starts = np.tile(starts, (n_chains, 1))
    if starts.shape != (n_chains, target.n_parameters):
        raise ValueError(
            f"init must have shape ({target.n_parameters},) or ({n_chains}, "
            f"{target.n_parameters}), got {np.shape(init)}."
        )
    if not np.isfinite(starts).all():
        raise ValueError("init must hold finite numbers only.")
    return list(starts)


def _n_exchanges(resample, method, target, betas):
    if isinstance(resample, np.bool_):
        resample = bool(resample)
    if not isinstance(resample, Integral) or resample < 0:
        raise ValueError(f"resample must be a bool or a number of proposals, got {resample!r}.")
    if resample and method != "spt":
        raise ValueError(
            f"resample exchanges rows between the levels of method='spt', not {method!r}: "
            f"'stt' draws new subsets for every pass anyway."
        )
    if resample is True and target.independent and len(betas) > 1:
        return max(1, round(EXCHANGES_PER_ROW * betas[1] * target.n_rows))
    return int(resample)


def _recentres(ladder, method, target, betas, resample):
    """Whether levels are re-centred; ValueError where they cannot be."""
    if not ladder.recentre or method == "none":
        return False
    for wrong, what in (
        (method not in SUBSAMPLED, f"levels of fewer rows: method='stt' or 'spt', not {method!r}"),
        (betas[-1] == 0, "rows at every level: the last must not be 0"),
        (ladder.adapt, "levels that stay where they are: adapt=False"),
        (resample, "subsets that stay as they are: resample=False"),
    ):
        if wrong:
            raise ValueError(f"a ladder with recentre=True needs {what}.")
    return len(betas) > 1
