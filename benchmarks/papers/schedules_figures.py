"""Obermeyer, Glidden and Jonas (AISTATS 2014), section 4: Figure 3 and what stands beside it.

The paper's protocol: a chain is fitted to a random 7/8 of the rows and scores the others (at most
20,000 of them), mean log density in nats per row. The split and the seed are the chain's own and
the same for all schedules. ACS, the American Community Survey, stands in for the Census of 1990;
KDD is the tenth of the log that its authors issued, numbers as ``kdd_data.py`` says. The sampler of
"figure3" is the package's, that of "papers_kernel" and "papers_sweeps" the paper's, as
``schedules_kernel.py`` says. A call of a move from Python costs as much as hundreds of rows, which
the paper's program need not have spent: so "papers_sweeps" compares at equal assignments.
"""

import contextlib
import functools
import os

import numpy as np

from harness import crosscat_data, kdd_data
from harness.crosscat_runs import as_published, fitted, view_labels
from harness.kdd_data import split
from papers.cells import judged
from papers.processor_time import processor_clock
from papers.schedules_cells import (
    CENSUS_TEST,
    CROSSCATS,
    KERNEL,
    MIXTURE_ROWS,
    NAMED,
    PANELS,
    PAPERS,
    PROPOSALS,
    RARE,
)
from papers.schedules_cells import cells as cells
from papers.schedules_cells import cost as cost
from papers.schedules_claims import claims, claims_of_papers_kernel
from papers.schedules_kernel import MOVES, papers_kernel
from papers.schedules_scores import (
    census_table,
    column_sets_table,
    consistency_table,
    gains_picture,
    runs_of,
    scores_picture,
    scores_table,
    selection_table,
    with_ours,
)
from skanneal.moves import ColumnSets
from skanneal.schedules import resolve_schedule
from skanneal.states import Subsample, state_from_arrays
from skanneal.summary import expected_vi, relabel

NAME = "schedules"


@functools.lru_cache(maxsize=1)
def table_of(panel):
    """The rows of a panel."""
    load, n_rows, _ = PANELS.get(panel, (crosscat_data.kdd, MIXTURE_ROWS, None))
    return load(os.environ["SKANNEAL_DATA"], n_rows)


def measure(cell):
    """By the figure."""
    if cell.figure == "column_sets":
        return measure_column_sets(cell.data, int(cell.method.split()[0]), cell.seed)
    if cell.figure == "census":
        return measure_census(int(cell.data.split()[0].replace(",", "")), cell.seed)
    table = table_of(cell.data)
    train, test = split(len(table), cell.seed)
    name = "CrossCatPY" if cell.figure in CROSSCATS else "AnnealedDPMixture"
    is_papers = cell.figure in KERNEL
    is_selection = cell.figure == "selection"
    schedule = resolve_schedule("anneal" if is_selection else cell.method)
    schedule.set_params(**{"n_sweeps" if cell.figure == KERNEL[1] else "max_time": cell.budget})
    strata = {"strata": classes_of(train)} if cell.method == NAMED else {}
    if is_selection:
        schedule.set_params(selection=cell.method.split(",")[0])
    model = as_published(name, schedule=schedule, n_chains=1, n_jobs=1, random_state=cell.seed)
    if is_papers:
        model.set_params(moves=MOVES)
    with processor_clock(), papers_kernel(schedule) if is_papers else contextlib.nullcontext():
        record = fitted(model, table.iloc[train], **strata)
    found = {
        "score": float(model.score(table.iloc[test])),
        "chain_seconds": float(np.nanmax(model.trace_["seconds"])),
        "sweeps": float(record["sweeps"]),
    }
    if is_selection:
        return found | {"rare_recall": rare_recall(model.component_labels_, train)}
    return found | {"views": views_of(model, table.shape[1])}


def views_of(model, n_columns):
    """Each column's view in the last draw; one view for a single mixture."""
    draw = model.draws_[0][-1]
    views = view_labels(draw) if hasattr(draw, "view_labels") else np.zeros(n_columns, dtype=int)
    return relabel(views).tolist()


def classes_of(rows):
    """The classes of rows of KDD's whole table."""
    return kdd_data.load(os.environ["SKANNEAL_DATA"])[1][rows]


def rare_recall(components, rows):
    """Mean over KDD's classes of less than 0.1 % of the rows: the share of a class's rows that lie
    in components of which it makes up more than half."""
    _, classes, names, sizes = kdd_data.load(os.environ["SKANNEAL_DATA"])
    counts = np.zeros((components.max() + 1, len(names)), dtype=np.int64)
    np.add.at(counts, (components, classes[rows]), 1)
    found = np.where(2 * counts > counts.sum(axis=1, keepdims=True), counts, 0).sum(axis=0)
    shown = (sizes < RARE * sizes.sum()) & (counts.sum(axis=0) > 0)
    return float((found[shown] / counts.sum(axis=0)[shown]).mean())


def measure_census(n_rows, seed):
    """A default fit of simulated rows like those of the Census of 1990, beside the truth."""
    table, truth = crosscat_data.census_like(n_rows + CENSUS_TEST, seed)
    train, test = table.iloc[:n_rows], table.iloc[n_rows:]
    model = as_published("CrossCatPY", n_chains=1, n_jobs=1, random_state=seed)
    with processor_clock():
        record = fitted(model, train)
    return {
        "score": float(model.score(test)),
        "truth": float(truth.log_density(test).mean()),
        "fit_seconds": float(record["cpu_seconds"]),
        "vi_to_truth": float(expected_vi(np.array(views_of(model, 68)), [truth.view_of])),
    }


def measure_column_sets(panel, n_rows, seed):
    """How many proposals of new sets of columns are accepted after a default fit of some rows."""
    table = table_of(panel)
    rows = np.sort(np.random.default_rng([seed, 2]).permutation(len(table))[:n_rows])
    X = table.iloc[rows]
    model = as_published("CrossCatPY", n_chains=1, n_jobs=1, random_state=seed)
    fitted(model, X)
    return propose_column_sets(model, X, seed, PROPOSALS)


def propose_column_sets(model, X, seed, n_proposals):
    """Proposals of new sets of columns given the last draw of a fit to X, and those accepted."""
    encoded = model._encoder.table(model._encoder.encode(model, X))
    bit_generator = np.random.PCG64(seed)
    subsample = Subsample(len(X), "window", bit_generator)
    subsample.fill()
    state = state_from_arrays(model.draws_[0][-1].arrays, encoded, subsample)
    grids = model.hyperparameter_grids_
    pairs = np.meshgrid(grids["concentration"], grids["discount"], indexing="ij")
    move = ColumnSets(np.stack([values.ravel() for values in pairs], axis=1))
    proposed = accepted = 0
    while proposed < n_proposals:
        info = move.sweep(state, bit_generator)
        proposed += info.proposed
        accepted += info.accepted
    return {"proposed": int(proposed), "accepted": int(accepted)}


def tables(records):
    """All tables of the pages, by name."""
    return {
        "verdicts": judged(claims(records), records, "figure3", "column_sets"),
        "figure3": scores_table(records, "figure3"),
        "papers_kernel": scores_table(records, KERNEL[0], PAPERS[0]),
        "papers_sweeps": scores_table(records, KERNEL[1], PAPERS[0], "sweeps"),
        "papers_verdicts": judged(claims_of_papers_kernel(records), records, *KERNEL, "figure3"),
        "mixture": scores_table(records, "mixture"),
        "consistency": consistency_table(records),
        "column_sets": column_sets_table(records),
        "selection": selection_table(records),
        "census": census_table(records),
    }


def pictures(records):
    """All pictures of the pages, by name."""
    found = {"figure3": runs_of(records), "papers_kernel": with_ours(records)}
    drawn = {name: scores_picture(panels) for name, panels in found.items() if panels}
    return drawn | ({"gains": gains_picture(records)} if found["figure3"] else {})
