"""Which cells the tables and pictures of van de Meent, Paige and Wood have, and their runs."""

from itertools import product

from papers import tempering_chains
from papers import tempering_pays as pays
from papers.cells import Cell
from papers.tempering_chains import N_CHAINS, WAYS
from papers.tempering_cost import measure_cost
from papers.tempering_regression import N_SPLITS, measure_regression
from papers.tempering_subsets import SUBSETS, measure_subsets

SEEDS = 3
PAPER = ("none", "stt", "tt", "spt", "pt")
COST_ROWS = {"gaussian": (64, 128, 256, 512, 1024, 2048), "gp": (64, 128, 256, 512, 1024)}
COST_PARAMETERS = {"gaussian": 50, "gp": 20}
SMALLER = 128  # rows of Table 1 where most cells end in their time
# By table or panel: model, inner sampler, parameters, rows.
ROWS = {
    "table1": [("gp", "hmc", d, 512) for d in (5, 10, 15, 20, 25)]
    + [("gp", "mh", d, 512) for d in (5, 10, 15, 20)],
    "table1_smaller": [("gp", "hmc", d, SMALLER) for d in (5, 10, 15, 20, 25)]
    + [("gp", "mh", d, SMALLER) for d in (5, 10, 15, 20)],
    "table2": [("gaussian", "hmc", d, 1024) for d in (5, 10, 50, 100)]
    + [("gaussian", "mh", d, 256) for d in (5, 10, 50, 100)],
    "figure3_gaussian": [("gaussian", "hmc", 50, n) for n in COST_ROWS["gaussian"]],
    "figure3_mh": [("gp", "mh", 20, n) for n in COST_ROWS["gp"]],
    "figure3_hmc": [("gp", "hmc", 15, n) for n in COST_ROWS["gp"]],
}
FIGURE2 = ("gp", "hmc", 20, 512)
SUBSET_ROWS = [
    ("gaussian", "hmc", 5, 256),
    ("gaussian", "hmc", 50, 256),
    ("gp", "hmc", 10, SMALLER),
]
SUBSET_WAYS, SUBSET_DRAWS = ("spt", "stt"), 300


def data_of(row):
    """A row's name in the lines."""
    model, inner, n_parameters, n_rows = row
    return f"{model} {inner} {n_parameters} parameters {n_rows} rows"


def row_of(data):
    """Its inverse."""
    model, inner, n_parameters, _, n_rows, _ = data.split()
    return model, inner, int(n_parameters), int(n_rows)


def budget_of(row):
    """Processor seconds per chain: a process's evaluation grows as the rows' cube."""
    model, _, _, n_rows = row
    if model == "gaussian":
        return 1.5
    return {64: 3.0, 128: 3.0, 256: 12.0, 512: 20.0, 1024: 60.0}[n_rows]


def ways_of(setting):
    """In the paper's setting its methods; tuned, also longer updates and re-centred levels."""
    return PAPER if setting == "paper" else tuple(WAYS)


def cells():
    """Cheap ones first, then as the paper has them."""
    costs_of = [(m, "hmc", COST_PARAMETERS[m], n) for m, sizes in COST_ROWS.items() for n in sizes]
    for row, way in product(costs_of[:-1], PAPER):
        yield Cell("cost", data_of(row), way, 0, 1.0)
    for seed, row, way, subsets in product(range(SEEDS), SUBSET_ROWS, SUBSET_WAYS, SUBSETS):
        yield Cell("subsets", data_of(row), f"{way}: {subsets}", seed)
    for name, n_splits in reversed(N_SPLITS.items()):
        yield from (Cell("regression", name, "beside scikit-learn", s) for s in range(n_splits))
    rows = list(dict.fromkeys(row for rows in ROWS.values() for row in rows))
    cheap = [row for row in rows if budget_of(row) <= 3]
    rest = sorted((row for row in rows if row not in cheap), key=budget_of)
    for seed, setting, row in product(range(1), ("paper", "tuned"), cheap):
        yield from sampling_cells(row, setting, seed)
    for seed, row, setting in product(range(1), rest[:2], ("paper", "tuned")):
        yield from sampling_cells(row, setting, seed)
    for seed, row, setting in product(range(1, SEEDS), cheap, ("paper", "tuned")):
        yield from sampling_cells(row, setting, seed)
    yield from (Cell("cost", data_of(costs_of[-1]), way, 0, 1.0) for way in PAPER)
    yield from pays.cells()
    for seed, row, setting in product(range(SEEDS), rest, ("paper", "tuned")):
        if seed > 0 or row not in rest[:2]:
            yield from sampling_cells(row, setting, seed)


def sampling_cells(row, setting, seed):
    """A row's cells of one setting and seed."""
    for way in ways_of(setting):
        yield Cell("sampling", data_of(row), f"{setting}: {way}", seed, budget_of(row))


def cost(cell, typical):
    """Processor seconds of a cell that was not measured: at most its budget of each chain."""
    if cell.figure in ("subsets", "regression"):
        return typical
    return 2 * cell.budget if cell.figure == "cost" else N_CHAINS * cell.budget


def measure(cell):
    """By the figure."""
    if cell.figure == "regression":
        return measure_regression(cell.data, cell.seed)
    if cell.figure == "pays":
        return pays.measure_pays(cell.data, cell.method, cell.seed, cell.budget)
    row = row_of(cell.data)
    if cell.figure == "cost":
        return measure_cost(*row, cell.method, cell.budget)
    if cell.figure == "subsets":
        return measure_subsets(*row, *cell.method.split(": "), cell.seed, SUBSET_DRAWS)
    setting, way = cell.method.split(": ")
    return tempering_chains.run(*row, setting, way, cell.seed, cell.budget)
