"""What the papers' pages say of how things were measured is what the scripts do."""

import pytest

from harness import kdd_data
from oracles.prose import words_of
from papers import (
    accelerated_course,
    accelerated_synthetic,
    accelerated_table,
    evidence_figures,
    help_figures,
    permutation_beam,
    permutation_cells,
    permutation_figures,
    permutation_models,
    schedules_cells,
    tempering_cells,
    tempering_chains,
    tempering_pays,
    two_urns,
    two_urns_figures,
    two_urns_theorems,
)
from skanneal.estimators import _annealed

URNS, PAIR = two_urns.URNS, two_urns_theorems.barrier_urns(1000)
YALE, DIGITS, CIFAR, _ = (seconds for _, seconds, _ in accelerated_table.DATA.values())
WORDS = {2: "two", 3: "three", 4: "four", 8: "eighth"}


def percents(shares):
    """As in "20, 50 and 80 %"."""
    *others, last = (f"{100 * share:g}" for share in shares)
    return f"{', '.join(others)} and {last} %"


SAID = {
    "two_urns": [
        f"{URNS.n_red} red and {URNS.n_blue} blue balls, $p = {URNS.p}$, ${two_urns.SWEEPS} N$",
        f"histograms of {two_urns.BINS} x {two_urns.BINS} bins",
        f"({two_urns_figures.CONCENTRATION} here)",
        f"with {percents(two_urns_figures.SHARES)} of the red and of the blue balls on the left",
        f"of {2 * len(two_urns_figures.SHARES) ** 2} numbers",
        f"over $N$, at {two_urns_figures.LARGE[-1]:,} balls",
        f"{PAIR.n_red / 10:.0f} % of the balls have both, $p = {PAIR.p}$",
    ],
    "schedules": [
        f"noise of standard deviation {kdd_data.NOISE}",
        f"Of the {kdd_data.N_ALL:,} rows {schedules_cells.MIXTURE_ROWS:,} are taken at random",
        f"fewer than {100 * schedules_cells.RARE:g} % of the rows",
        f"a sketch of {_annealed.SKETCH_ROWS} rows finds the strata",
        f"each of {WORDS[evidence_figures.N_CHAINS]} chains and {evidence_figures.N_SWEEPS} sweeps",
        f"(half a second, and {1e6 * help_figures.SECONDS:g} microseconds for each cell of the "
        f"table) and score {help_figures.TEST_ROWS} further rows",
        f"standard errors over {WORDS[help_figures.SEEDS]} tables",
        f"logarithmic beyond {help_figures.LINEAR} nats",
        f"on an {WORDS[help_figures.PART]} of the rows",
    ],
    "crosscat": [f"scores the others, at most {kdd_data.MOST_TEST_ROWS:,}"],
    "permutation": [
        f"{permutation_models.POINTS:,} points come from spherical normal clusters",
        f"{permutation_beam.POINTS} points of {permutation_beam.CLUSTERS} clusters",
        f"lacks at most {100 * permutation_figures.NEAR:g} % of the highest",
        f"in sweeps, of {permutation_cells.KEPT:,} as in the paper",
    ],
    "tempering": [
        f"R-hat is below {tempering_chains.AGREE} and the bulk effective sample size above "
        f"{tempering_chains.ENOUGH}",
        f"in {tempering_cells.budget_of(tempering_cells.FIGURE2):g} processor seconds of each",
        f"{tempering_pays.BUDGET:g} processor seconds each",
        f"the same with {tempering_cells.SMALLER} rows",
    ],
    "accelerated": [
        f"{YALE:g} on Yale, {DIGITS:g} on MNIST, {CIFAR:g} on CIFAR",
        f"of 10,000 images for testing {accelerated_table.TEST_ROWS:,} are taken",
        f"the mean over {accelerated_table.N_DRAWS} draws",
        f"Densities are those of {accelerated_course.TEST_ROWS} test images here",
        f"{accelerated_synthetic.N_TRAIN:,} rows of {accelerated_synthetic.TOTAL} counts over "
        f"{accelerated_synthetic.N_COLUMNS} columns, from {accelerated_synthetic.N_COMPONENTS} ",
        f"within {accelerated_synthetic.MARGIN} nats of the algorithms' median",
        f"({accelerated_table.LEVEL_ROWS:,} test images)",
    ],
}


@pytest.mark.parametrize("page", SAID)
def test_pages_say_how_it_was_measured(page):
    missing = [sentence for sentence in SAID[page] if sentence not in words_of(page)]
    assert not missing


def test_numbers_that_pages_have_in_other_words():
    tuning = "(100, 300, 1,000) and $\\gamma$ (0.03 to 1) are chosen by a tenth of the training"
    assert tuning in words_of("accelerated")
    assert accelerated_table.COMPONENTS == (100, 300, 1000)
    assert accelerated_table.VALIDATION == 10
    assert (min(accelerated_table.GAMMAS), max(accelerated_table.GAMMAS)) == (0.03, 1.0)
    assert help_figures.OWN_SECONDS == 0.5
    assert two_urns_figures.STEPS == 1_000_000
