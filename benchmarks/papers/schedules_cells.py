"""Which cells the tables and pictures of Obermeyer, Glidden and Jonas (2014) have."""

from itertools import product

from harness import crosscat_data
from papers.cells import Cell

CHAINS = 8
KERNEL = ("papers_kernel", "papers_sweeps")  # figures with the paper's kernel
CROSSCATS = ("figure3", *KERNEL)  # figures of CrossCatPY by this protocol
PAPERS = ("linear_anneal", "prior_gibbs", "sequential_gibbs")
METHODS = ("anneal", *PAPERS)
OTHERS = (*METHODS, "accelerating_anneal", "energy_anneal")  # of one mixture
# Panel: how it is loaded, rows, processor seconds of the longest runs.
PANELS = {
    "Dartmouth, 307 x 63": (crosscat_data.dartmouth, 307, 6.0),
    "ACS, 10,000 x 35": (crosscat_data.acs, 10_000, 12.0),
    "KDD, 10,000 x 39": (crosscat_data.kdd, 10_000, 12.0),
    "KDD, 100,000 x 39": (crosscat_data.kdd, 100_000, 60.0),
    "ACS, 170,254 x 35": (crosscat_data.acs, 170_254, 60.0),
    "KDD, 494,021 x 39": (crosscat_data.kdd, 494_021, 90.0),
}
MIXTURE = "KDD, 60,000 x 39, one mixture"
MIXTURE_ROWS, MIXTURE_SECONDS = 60_000, 9.0
KDD = list(PANELS)[-1]
NAMED = "stratified, by class"  # strata are KDD's classes; else a sketch of the rows finds them
SELECTIONS, SELECTION_SECONDS, RARE = ("random", "window", "stratified", NAMED), 30.0, 0.001
CENSUS_ROWS, CENSUS_TEST = (100_000, 1_000_000), 20_000
SHARES = (1 / 9, 1 / 3, 1)  # of a panel's seconds
SWEEPS, MOST_SWEPT = (5, 20), 10_000  # budgets of "papers_sweeps", rows of its largest panels
SIZES = (10, 30, 100, 300, 1000, 3000, 10_000)  # rows, for the acceptance of sets of columns
PROPOSALS = 1000


def cells():
    """Small tables first; chains outermost, so that a cut run has some of everything."""
    for names in (list(PANELS)[:1], list(PANELS)[1:3]):
        yield from cells_of_panels(names)
    for name, chain, size in product(list(PANELS)[:3], range(4), SIZES):
        if size <= PANELS[name][1]:
            yield Cell("column_sets", name, f"{size} rows", chain)
    for chain, share, method in product(range(CHAINS), SHARES, OTHERS):
        yield Cell("mixture", MIXTURE, method, chain, round(share * MIXTURE_SECONDS, 2))
    for chain, selection in product(range(CHAINS), SELECTIONS):
        yield Cell("selection", KDD, selection, chain, SELECTION_SECONDS)
    yield from (Cell("census", f"{n:,} x 68, simulated", "anneal") for n in CENSUS_ROWS)
    yield from cells_of_panels(list(PANELS)[3:])


def cells_of_panels(names):
    """Each with the package's kernel and with the paper's."""
    for chain, name in product(range(CHAINS), names):
        for share, (figure, methods) in product(
            SHARES, (("figure3", METHODS), (KERNEL[0], PAPERS))
        ):
            for method in methods:
                yield Cell(figure, name, method, chain, budget_of(name, share))
        sweeps = SWEEPS if PANELS[name][1] <= MOST_SWEPT else ()
        for n_sweeps, method in product(sweeps, PAPERS):
            yield Cell(KERNEL[1], name, method, chain, n_sweeps)


def budget_of(panel, share):
    """Processor seconds."""
    return round(share * PANELS[panel][2], 2)


def cost(cell, typical):
    """Processor seconds of a cell that was not measured, loading and scoring included."""
    if cell.figure == KERNEL[1]:
        return typical
    return cell.budget + 2 if cell.budget else typical
