"""Which family describes a table's numbers, decided by the density of rows not yet seen.

The candidates are the families that name columns of numbers as theirs (`default_for`). Each of them
in turn describes the columns that were left to "auto"; all other columns stay in the model. The
candidate that describes columns one by one takes logarithms of the columns that these describe
better (_logarithms.py). Candidates that describe whole rows take plain numbers; one of them
competes with logarithms, too, if those of all columns go better along a line (_box_cox.py). Chains
of each candidate grow, and give rows that they have not seen a density (_contest.py). All densities
are with respect to Lebesgue measure of the same columns, so they can be compared; rows that are at
an atom, such as a zero among logarithms, are not judged. The competition may take a third of the
time, half as much as the fit that follows.

Where columns are partitioned, the candidates are those that views can divide, and chains have all
columns in one view: whether numbers depend on each other within clusters shows there too.
"""

# SPDX-License-Identifier: BSD-3-Clause

import functools

import numpy as np

from .._native._warning import warn
from ..encoding import NOTHING, CollinearCodec, Recoded, open_table, warn_of_repeats
from ..encoding._codecs import as_numbers
from ..families import FAMILIES, candidates, default_family, family_of_logarithms
from ..parallel import OfFamilies, seed_below
from ._box_cox import columns_of_logarithms
from ._contest import Contest
from ._logarithms import choose_logarithms

FEWEST_ROWS = 60  # fewer rows tell nothing about families of whole rows
MOST_COLUMNS = 100  # more are not tried in row families: a row step costs their number squared
FIRST_ROWS, MOST_ROWS = 100, 16_384  # a chain sees so many at first, and at most
ROWS_PER_COLUMN = 10  # at first: covariances show their worth only if there are as many
SHARE_OF_TIME = 1 / 3  # of a fit's time limit, which the competition may take
SEED = np.random.SeedSequence([*b"families"])  # such as nobody's own numbers are drawn from


def decide(
    encoder,
    X,
    cells,
    plan_of,
    hyperparameters,
    n_jobs,
    limit,
    names=None,
    rivals=None,
    earlier=None,
):
    """Decide the families of all columns of numbers that were left to "auto".

    Parameters
    ----------
    encoder, X, cells, plan_of, hyperparameters, n_jobs, limit, names
        As of `choose_family`. With names no column is described by logarithms.
    rivals : list of str or None, default=None
        The candidates where no names are given; None is all families that name columns of numbers
        as theirs. Of a single one there is no competition.
    earlier : dict or None
        The evidence of the fit that this one goes on, which decides.

    Returns
    -------
    encoder : Encoder
    cells : TrainingCells
        The same object if no column was encoded anew.
    evidence : dict or None
        What becomes `family_evidence_`.
    """
    logarithms, of_rows, shown, evidence = NOTHING, NOTHING, None, earlier
    if names is None:
        of_rows = _of_rows(encoder, X)
    rivals = names or rivals or candidates("float")
    if earlier is not None:
        logarithms = Recoded.of(encoder, X, _logarithms_of(earlier, encoder))
    elif names is None:
        end = limit.part(SHARE_OF_TIME if len(rivals) < 2 else SHARE_OF_TIME / 2)
        own = seed_below(SEED, OfFamilies.LOGARITHMS)
        task = encoder, X, cells, plan_of, hyperparameters, own, n_jobs, end
        logarithms, shown = choose_logarithms(*task)
    own = np.setdiff1d([*logarithms.codecs], encoder.open_numbers)  # those with many atoms
    encoder, cells = logarithms.among(own).put(encoder, cells)
    if earlier is None:
        if len(rivals) > 1:
            known = encoder, cells, logarithms, of_rows
            task = plan_of, hyperparameters, n_jobs, limit
            evidence = choose_family(*known, *task, rivals)
        evidence = _with_logarithms(evidence, shown, encoder, rivals)
    if evidence is not None:
        winner, columns = evidence["winner"], encoder.open_numbers
        if FAMILIES[winner].joint:  # else also of columns that did not compete
            columns = np.intersect1d(evidence["columns"], columns)
        encoder, cells = _in_family(encoder, cells, columns, winner, logarithms, of_rows)
    return encoder, cells, evidence


def _of_rows(encoder, X):
    """The columns of numbers as logarithms, if all of them are to be; else none.

    Rows of logarithms and plain numbers were turned down: where they are more probable, their
    chains take longer to agree."""
    table, number = open_table(X, "X", sparse=True), default_family("float")
    if not set(encoder.open_numbers.tolist()) <= encoder.amounts.keys():
        return NOTHING
    columns = {int(j): as_numbers(table.column(j), number) for j in encoder.open_numbers}
    if len(columns_of_logarithms(columns)) < len(columns):
        return NOTHING
    return Recoded.of(encoder, X, dict.fromkeys(columns, family_of_logarithms(number)))


def _in_family(encoder, cells, columns, name, logarithms, of_rows):
    """The encoder with a family for some columns of numbers, and the TrainingCells, with those of
    their logarithms that go with this family: `logarithms` of columns one by one, `of_rows`."""
    family = FAMILIES[name]
    if not family.joint:
        return logarithms.among(columns).put(encoder.with_family(columns, name), cells)
    if family.logarithms_of:
        encoder, cells = of_rows.among(columns).put(encoder, cells)
    return encoder.with_family(columns, name), cells


def with_logarithms(encoder, X, cells, columns):
    """The encoder, and the TrainingCells, in which some columns of rows of numbers are logarithms,
    beside the others."""
    if not len(columns):
        return encoder, cells
    rows = encoder.codecs[columns[0]].family
    families = dict.fromkeys(columns, family_of_logarithms(default_family("float")))
    encoder, cells = Recoded.of(encoder, X, families).put(encoder, cells)
    others = encoder.families_.get(rows, ())
    return encoder.with_family([*others, *columns], family_of_logarithms(rows)), cells


def choose_family(
    encoder, cells, logarithms, of_rows, plan_of, hyperparameters, n_jobs, limit, names=None
):
    """Choose the family of the columns of numbers that were left to "auto" by the evidence.

    Parameters
    ----------
    encoder : Encoder
        Fitted.
    cells : TrainingCells
        What the encoder's fit made of the table, with columns that `logarithms` has put there.
    logarithms : Recoded
        The columns that the candidate of single columns has in a family of logarithms.
    of_rows : Recoded
        The columns that are logarithms in the candidate of rows of these.
    plan_of : callable
        ``plan_of(encoder, table)`` returns the `ChainPlan` of a fit.
    hyperparameters : "infer" or mapping of str to values
        As the estimators take it.
    n_jobs : int or None
        Chains that run at a time.
    limit : TimeLimit
        Of the whole fit.
    names : list of str or None, default=None
        The candidates; None is all families that name columns of numbers as theirs.

    Returns
    -------
    evidence : dict or None
        What becomes `family_evidence_`; None if no column was left to be decided.
    """
    names, columns = names or candidates("float"), encoder.open_numbers
    given = () if isinstance(hyperparameters, str) else hyperparameters
    if not len(columns) or any(name in given for name in names):
        return None
    exact, reason = cells.exact, None
    if not all(FAMILIES[name].takes_gaps for name in names):
        columns = np.array([j for j in columns if not np.isnan(exact[j]).any()], dtype=np.int64)
    if len(columns) < 2:
        reason = "a single column without gaps"
    elif len(columns) > MOST_COLUMNS:
        reason = f"more than {MOST_COLUMNS} columns"
    elif len(exact[columns[0]]) < FEWEST_ROWS:
        reason = f"fewer than {FEWEST_ROWS} rows"
    zeros = np.intersect1d(columns, logarithms.with_atoms).astype(np.int64)
    if reason is None and np.sum(logarithms.at_atoms(zeros)) > len(exact[columns[0]]) - FEWEST_ROWS:
        reason = f"fewer than {FEWEST_ROWS} rows without a zero"
    if reason is not None:
        return _evidence(columns, names[0], reason)
    thinned = encoder.without_collinear(exact, columns)  # whose covariances have no density
    competing = np.intersect1d(columns, thinned.open_numbers)
    least = max(FIRST_ROWS, ROWS_PER_COLUMN * len(competing))
    if len(competing) == len(columns):
        names = _with_rows_of_logarithms(names, encoder, cells, columns, of_rows)
    plain, encoders, plans = thinned.table(cells.noisy), {}, {}
    for name in names:
        task = thinned, cells, competing, name, logarithms, of_rows
        encoders[name], others = _in_family(*task)
        table = plain if others is cells else encoders[name].table(others.noisy)
        plans[name] = plan_of(encoders[name], table)
    end = limit.part(SHARE_OF_TIME)
    judge = functools.partial(of_whole_rows, columns=zeros)
    seeds = [seed_below(SEED, purpose) for purpose in (OfFamilies.ORDER, OfFamilies.CHAINS)]
    contest = Contest(encoders, plans, judge, least, MOST_ROWS, seeds, n_jobs, end)
    order = contest.decided()
    if not contest.judged:
        return _evidence(columns, names[0], "max_time, which left no time to compete")
    nearest = min(order.leads)
    return _evidence(
        columns,
        names[order.leader],
        "evidence",
        margin=nearest.mean,
        standard_error=nearest.error,
        n_rows=np.array(contest.sizes[: len(contest.judged)]),
        log_density=dict(zip(names, order.means)),
        row_steps=contest.row_steps,
    )


def _with_rows_of_logarithms(names, encoder, cells, columns, of_rows):
    """The candidates, and after each of whole rows the one that takes logarithms, if there are any
    whose covariances have a density."""
    out = []
    for name in names:
        out.append(name)
        others = [of for of, family in FAMILIES.items() if family.logarithms_of == name]
        if others and FAMILIES[name].joint and of_rows.among(columns).codecs:
            own = _in_family(encoder, cells, columns, others[0], NOTHING, of_rows)
            if own[0].without_collinear(own[1].exact, columns) is own[0]:
                out += others
    return out


def of_whole_rows(reached, encoder, table, seed, columns):
    """Contest's judge: log density of each row, nan if it is at an atom in one of these columns."""
    densities = reached.log_density(table)
    for place in encoder.apart.places(columns)[1]:
        densities[np.isin(table.column(place), table.atoms[place])] = np.nan
    return densities


def set_collinear_apart(encoder, exact, proper, left):
    """Return the encoder without the columns that their family would not bear: covariances have no
    density where a column is a linear function of others, and where columns are independent within
    components, these would part the rows along the line.

    Parameters
    ----------
    encoder : Encoder
    exact : list of ndarray
        The cells of its fit without noise, see `TrainingCells`.
    proper : collection of str
        Families whose covariances are bounded by what the user gives.
    left : int array
        Columns of numbers that were left to "auto". Those of which the user names a family of
        single columns have it, and of fewer than FEWEST_ROWS rows all have.

    Warns
    -----
    UserWarning
        Naming the columns, and those of the others that repeat one in other values.
    """
    for name, columns in encoder.families_.items():
        family = FAMILIES.get(name)
        if family is None or (family.joint and (name in proper or not family.bounds_density)):
            continue
        among = columns if family.joint else np.intersect1d(columns, left)
        if family.joint or (len(among) and len(exact[among[0]]) >= FEWEST_ROWS):
            encoder = encoder.without_collinear(exact, among)
    label = encoder.names.label
    for j, codec in enumerate(encoder.codecs):
        if isinstance(codec, CollinearCodec):
            own = (j, codec.codec), *((i, encoder.codecs[i]) for i in codec.sources)
            column, *others = [
                f"the logarithm of {label(i)}" if of.of_logarithms else label(i) for i, of in own
            ]
            joint = FAMILIES[codec.given_family].joint
            reason = "has no density for it" if joint else "would part the rows along it"
            warn(
                f"{column} is a linear function of {', '.join(others)}: it is set apart, since the "
                f"family {codec.given_family!r} {reason}.",
            )
    warn_of_repeats(encoder, exact)
    return encoder


def report(evidence, label):
    """Return the evidence as lines to print; ``label(j)`` is how column j is called."""
    shown = evidence["logarithms"]
    if shown is not None:
        chosen = ", ".join(map(label, shown["columns"][shown["chosen"]])) or "none"
        yield f"logarithms  {chosen}, after {shown['n_rows']} rows"
    line = f"families    {evidence['winner']}"
    if evidence["decided_by"] != "evidence":
        yield f"{line}, without a competition: {evidence['decided_by']}"
        return
    margin, error = evidence["margin"], evidence["standard_error"]
    ahead = f"ahead by {margin:.3g}" if margin >= 0.0 else f"simpler, and behind by {-margin:.3g}"
    yield f"{line}, {ahead} +- {error:.2g} nats per row after {evidence['n_rows'][-1]} rows"


def _with_logarithms(evidence, shown, encoder, rivals):
    """The evidence of the columns of numbers, and beside it that of their logarithms."""
    if evidence is None and shown is not None:
        reason = "a single candidate" if len(rivals) < 2 else "no other column of numbers"
        evidence = _evidence(encoder.open_numbers, candidates("float")[0], reason)
    return None if evidence is None else evidence | {"logarithms": shown}


def _logarithms_of(evidence, encoder):
    """By column, the families of logarithms that were chosen."""
    shown = evidence["logarithms"]
    chosen = [] if shown is None else shown["columns"][shown["chosen"]].tolist()
    return {j: encoder.amounts[j] for j in chosen if j in encoder.amounts}


def _evidence(columns, winner, decided_by, **figures):
    """The dict that `family_evidence_` is; without figures where there was no competition."""
    nothing = {
        "margin": np.nan,
        "standard_error": np.nan,
        "n_rows": np.empty(0, dtype=np.int64),
        "log_density": {},
        "row_steps": 0,
    }
    return {"winner": winner, "decided_by": decided_by, "columns": columns} | nothing | figures
