"""Which columns of amounts are described by their logarithms, decided by cells not yet seen.

A column of numbers that was left to "auto" and has none below zero may hold amounts: waiting times,
weights, prices. Two candidates compete (_contest.py). In one these columns are plain numbers, in
the other one logarithms, with an atom where there are zeros; all other columns are alike. Column by
column the densities of judged cells are compared, given the rest of their row and per unit of the
amount, so that both are densities of the same number. Atoms are not judged: a density has no
probability for them.

Logarithms are chosen if they are ahead for sure, and by more than a trifle (see Lead). Where plain
numbers are not ahead by a standard error, their predictions decide. They lose as many nats as the
share of numbers that they predict below zero, where there is none. If this share is more than a
trifle, or if they predict more than EXPECTED such numbers among as many as they have seen,
logarithms are chosen. So numbers that merely happen to be positive stay plain. So does a column
that has a single 0, the least number of a scale that was shifted to begin there, unless logarithms
are ahead.

Logarithms that describe some columns better make the components better, and with them the densities
of other columns, whatever describes these. So if only its lead speaks for the logarithms of a
column, it competes once more, while the columns with predictions below zero have logarithms in both
candidates.

If the logarithms have a standard deviation s, a log-normal distribution is at most 3/4 s^2 nats
from a normal one (to second order in s, as 1/12 of the square of its skewness 3 s). In a component
s is at most half the range of the logarithms. So a column does not compete if that many nats are a
trifle.
"""

# SPDX-License-Identifier: BSD-3-Clause

import functools

import numpy as np

from ..encoding import NOTHING, Recoded
from ..parallel import OfLogarithms, seed_below
from ..summary._lead import Lead
from ._contest import FIRST_FOLDS, FOLDS, MOST_JUDGED, TRIFLE, Contest

FEWEST_ROWS, FEW_ROWS = 2 * FOLDS, 400  # in a smaller table than that every cell is judged
EXPECTED = 3.0  # of which there is none by chance with probability exp(-3), 5 %
MOST_ROWS = 1000  # a chain sees no more: they show what shape a column has
SWEEPS = 16  # of a chain; by ones of 8, logarithms are ahead where they are not by longer ones
NO_OFFSET = 1e-2  # standard deviations: a number that is so much when another is 0 is its multiple
SIMULATED = 1000  # rows, drawn to see what share of numbers is below zero


def choose_logarithms(encoder, X, cells, plan_of, hyperparameters, seed, n_jobs, end):
    """Choose the columns of amounts that are described by their logarithms.

    Parameters
    ----------
    encoder : Encoder
        Fitted.
    X : array-like, frame or list of rows of shape (n_rows, n_columns)
    cells : TrainingCells
        What the encoder's fit made of X.
    plan_of : callable
        ``plan_of(encoder, table)`` returns the `ChainPlan` of a fit.
    hyperparameters : "infer" or mapping of str to values
        As the estimators take it. Columns whose family it names stay as they are.
    seed : SeedSequence
    n_jobs : int or None
        Chains that run at a time.
    end : TimeLimit
        Of the competition.

    Returns
    -------
    chosen : Recoded
    evidence : dict or None
        What becomes "logarithms" of `family_evidence_`; None if no column competed.
    """
    given = () if isinstance(hyperparameters, str) else hyperparameters
    families = {
        j: family
        for j, family in encoder.amounts.items()
        if not {family, encoder.codecs[j].family} & set(given)
    }
    if not families or len(cells.exact[next(iter(families))]) < FEWEST_ROWS:
        return NOTHING, None
    recoded = Recoded.of(encoder, X, families)
    recoded = recoded.among([j for j in families if _bends(recoded.codecs[j], recoded.noisy[j])])
    if not recoded.codecs:
        return recoded, None

    copies, encoder = _without_copies(encoder, cells.exact, recoded.codecs.keys())
    every, recoded = recoded, recoded.among([j for j in recoded.codecs if j not in copies])
    rows = _some_rows(len(cells.exact[next(iter(families))]), seed)

    def compare(encoder, cells, recoded, *purposes):
        """The figures of a contest of these columns, or None if there was no time for it; purposes
        are those of its two seeds."""
        pairs = {"numbers": (encoder, cells), "logarithms": recoded.put(encoder, cells)}
        encoders, plans = {}, {}
        for name, (encoders[name], own) in pairs.items():
            table = encoders[name].table([None if c is None else c[rows] for c in own.noisy])
            plans[name] = plan_of(encoders[name], table)
        judge = functools.partial(of_cells, columns=[*recoded.codecs])
        seeds = [seed_below(seed, purpose) for purpose in purposes]
        task = encoders, plans, judge, MOST_ROWS, MOST_ROWS, seeds, n_jobs, end
        contest = Contest(*task, SWEEPS, FOLDS if len(rows) < FEW_ROWS else FIRST_FOLDS)
        return _figures(contest, recoded) if contest.next_stage() else None

    shown = compare(encoder, cells, recoded, OfLogarithms.ORDER, OfLogarithms.CHAINS)
    if shown is None:
        return recoded.among(()), None
    columns, refuted, ahead = (shown[name] for name in ("columns", "refuted", "ahead"))
    doubtful = ahead & ~refuted
    if refuted.any() and doubtful.any():  # is the gain their own, or their neighbours'?
        beside = recoded.among(columns[refuted]).put(encoder, cells)
        purposes = OfLogarithms.ORDER_AGAIN, OfLogarithms.CHAINS_AGAIN
        again = compare(*beside, recoded.among(columns[doubtful]), *purposes)
        for name in ("ahead", "margin", "standard_error", "negative") if again else ():
            shown[name][doubtful] = again[name]
        shown["row_steps"] += again["row_steps"] if again else 0
    shown["chosen"] = shown.pop("refuted") | shown.pop("ahead")
    sources = [columns.tolist().index(source) for source in copies.values()]
    for name in ("margin", "standard_error", "negative", "chosen"):
        shown[name] = np.append(shown[name], shown[name][np.array(sources, dtype=np.int64)])
    shown["columns"] = np.append(columns, np.array([*copies], dtype=np.int64))
    return every.among(shown["columns"][shown["chosen"]]), shown


def _without_copies(encoder, exact, competing):
    """What the contest does without, since a column that another one gives is no test of it.

    Returns
    -------
    copies : dict of int to int
        Columns that are multiples of another one, and which: they have logarithms if that has.
    encoder : Encoder
        With these set apart, and with those that a single column that competes gives.
    """
    copies, codecs, new = {}, encoder.codecs, encoder
    for j, codec in enumerate(encoder.without_collinear(exact, encoder.open_numbers).codecs):
        if codec is codecs[j] or len(codec.sources) > 1:
            continue
        (source,) = codec.sources
        slope = codecs[j].scale / codecs[source].scale * codec.weights[0]
        at_zero = codecs[j].offset + codecs[j].scale * codec.intercept
        is_multiple = abs(at_zero - slope * codecs[source].offset) <= NO_OFFSET * codecs[j].scale
        if is_multiple and {source, j} <= competing:
            copies[j] = source
            new = new.without_collinear(exact, [source, j])
        elif len({source, j} & competing) == 1:
            own, other = (j, source) if j in competing else (source, j)
            thinned = new.without_collinear(exact, [own, other])
            new = thinned if thinned.codecs[own] is codecs[own] else new  # the one of more gaps
    return copies, new


def _figures(contest, recoded):
    """What a contest of some columns says of them."""
    (n_rows,), (said,) = contest.sizes, contest.judged
    negative = said[0, :, 1].mean(axis=0)
    densities = np.moveaxis(said[:, :, 0], -1, 0)
    leads = [_lead(contest, of_column) for of_column in densities]
    several = ~np.array([_single_zero(recoded.codecs[j], recoded.noisy[j]) for j in recoded.codecs])
    foretold = several & (negative > min(TRIFLE, EXPECTED / n_rows))
    return {
        "columns": np.array([*recoded.codecs]),
        "refuted": foretold & np.array([(-lead).is_tie(TRIFLE) for lead in leads]),
        "ahead": np.array([lead.is_sure(TRIFLE) for lead in leads]),
        "margin": np.array([lead.mean for lead in leads]),
        "standard_error": np.array([lead.error for lead in leads]),
        "negative": negative,
        "n_rows": n_rows,
        "row_steps": contest.row_steps,
    }


def of_cells(reached, encoder, table, seed, columns):
    """Contest's judge: of each row and column the log density of the cell given the rest of the
    row, nan where it is missing or an atom, and how often a number is drawn below zero.

    Returns
    -------
    said : ndarray of shape (n_rows, 2, n_columns)
    """
    _, places = encoder.apart.places(columns)
    densities = -reached.cell_surprisals(table, table.n_columns)[:, places]
    for i, place in enumerate(places):
        densities[np.isin(table.column(place), table.atoms[place]), i] = np.nan
    nothing = reached.table(reached.schema.missing_cells(1))
    drawn = reached.simulate(nothing, seed, SIMULATED)
    drawn = [encoder.codecs[j].decode(drawn[place]) for j, place in zip(columns, places)]
    drawn = [encoder.jitter.nearest(j, of, encoder.codecs) for j, of in zip(columns, drawn)]
    below = [np.mean(of < 0.0) for of in drawn]
    return np.stack([densities, np.broadcast_to(below, densities.shape)], axis=1)


def _some_rows(n_rows, seed):
    """Positions of as many rows as chains see and judge, of all if there are no more."""
    n = MOST_ROWS + MOST_JUDGED
    generator = np.random.Generator(np.random.PCG64(seed_below(seed, OfLogarithms.ROWS)))
    return np.sort(generator.choice(n_rows, min(n, n_rows), replace=False))


def _bends(codec, cells):
    """Whether the logarithms of a column are so far from a line that its families may differ."""
    elsewhere = cells[~np.isnan(cells) & ~np.isin(cells, getattr(codec, "atom_cells", ()))]
    spread = codec.scale * np.ptp(elsewhere.astype(np.float64)) / 2.0 if len(elsewhere) else 0.0
    return 0.75 * spread**2 > TRIFLE


def _lead(contest, densities):
    """The Lead of logarithms over numbers, by the cells of a column that both judge, of densities
    of shape (2, n_judged); nan if these are too few."""
    both = ~np.isnan(densities).any(axis=0)
    if np.count_nonzero(both) < FEWEST_ROWS:
        return Lead(np.nan, np.nan)
    order = contest.order([densities])
    (lead,) = order.leads
    return lead if order.leader == 1 else -lead


def _single_zero(codec, cells):
    """Whether one cell is 0: where a scale begins, perhaps, as that of numbers from 0 to 1."""
    return np.count_nonzero(np.isin(cells, getattr(codec, "atom_cells", ()))) == 1
