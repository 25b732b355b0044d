"""What estimates of the evidence by sequential Monte Carlo cost, and how far they vary.

One table, 200 rows of three Gaussians in four columns; `AnnealedDPMixture` with four chains of 20
sweeps, over the number of particles and how many there are at first.
"""

import numpy as np

from papers.cells import Cell, judged, of_figure, shown
from papers.processor_time import processor_clock
from papers.verdicts import deviation, is_about, paired
from skanneal import AnnealedDPMixture
from skanneal.schedules import SequentialMonteCarlo

NAME = "evidence"
SEEDS = 4
ROWS, COLUMNS, CENTRES, SPREAD = 200, 4, 3, 3.0
N_CHAINS, N_SWEEPS = 4, 20
DATA = f"{ROWS} x {COLUMNS}, {CENTRES} Gaussians"
SETTINGS = ((8, 8), (8, 256), (32, 32), (32, 256))  # particles, at first
WITHIN = 1.0  # nats: what two settings' means may differ by, and still be called the same


def name_of(n_particles, n_first):
    """A setting in the lines."""
    return f"{n_particles} particles, {n_first} at first"


def cells():
    """Cheap ones first."""
    for seed in range(SEEDS):
        for setting in SETTINGS:
            yield Cell("evidence", DATA, name_of(*setting), seed)


def cost(cell, typical):
    """Processor seconds of a cell that was not measured."""
    return typical


def rows():
    """The table."""
    rng = np.random.default_rng(0)
    centres = SPREAD * rng.normal(size=(CENTRES, COLUMNS))
    return centres[rng.integers(CENTRES, size=ROWS)] + rng.normal(size=(ROWS, COLUMNS))


def measure(cell):
    """A fit's estimate and what it says of its error."""
    n_particles, n_first = (int(word) for word in cell.method.split() if word.isdigit())
    schedule = SequentialMonteCarlo(n_particles=n_particles, n_first=n_first, n_sweeps=N_SWEEPS)
    model = AnnealedDPMixture(
        families="normal", schedule=schedule, n_chains=N_CHAINS, n_jobs=1, random_state=cell.seed
    )
    with processor_clock():
        model.fit(rows())
    return {"log_evidence": model.log_evidence_, "said_error": model.log_evidence_se_}


def runs_of(records):
    """Setting to seed to record."""
    found = {}
    for cell, record in of_figure(records, "evidence").items():
        found.setdefault(cell.method, {})[cell.seed] = record
    return {name_of(*s): found[name_of(*s)] for s in SETTINGS if name_of(*s) in found}


def evidence_table(records):
    """Estimates, their spread over seeds beside what they say of it, and their cost."""
    found = runs_of(records)
    lines = []
    for method, seeds in found.items():
        values = [record["log_evidence"] for record in seeds.values()]
        said = [record["said_error"] for record in seeds.values()]
        seconds = np.mean([record["seconds"] for record in seeds.values()])
        lines.append(
            (
                method,
                str(len(seeds)),
                ", ".join(f"{value:.1f}" for value in values),
                f"{deviation(values):.2f}",
                ", ".join(f"{error:.2f}" for error in said),
                f"{seconds:.0f}",
            )
        )
    headings = (
        *("", "fits", "`log_evidence_`", "sd over fits", "`log_evidence_se_`"),
        "processor seconds of a fit",
    )
    return shown(headings, lines, records, "evidence")


def claims(records):
    """The settings estimate one number."""
    found = runs_of(records)
    most = name_of(*SETTINGS[-1])
    values = {
        method: {seed: record["log_evidence"] for seed, record in seeds.items()}
        for method, seeds in found.items()
    }
    for method in values:
        if method != most and most in values:
            apart = paired(values[method], values[most])
            text = f"{method}: the same evidence as {most} (within {WITHIN:g} nat)"
            yield text, f"differs by {apart.text(2)}", is_about(apart, 0.0, WITHIN)


def tables(records):
    """All tables of the page, by name."""
    return {
        "evidence": evidence_table(records),
        "verdicts": judged(claims(records), records, "evidence"),
    }


def pictures(records):
    """None."""
    return {}
