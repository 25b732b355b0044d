"""What the pages on the two urns, permutations and tempering say in words, with numbers, is what
the lines say."""

import functools

import numpy as np
import pytest

from oracles.prose import Sentences, assert_said_and_so, records_of, verdicts
from papers import (
    permutation_cells,
    permutation_figures,
    tempering_cells,
    tempering_cost,
    tempering_figures,
    tempering_pays,
    two_urns_figures,
)
from papers.cells import of_figure
from papers.repeats import again_table
from papers.tempering_chains import agrees, rate
from papers.verdicts import REPRODUCED

says = Sentences()

# -- two urns --------------------------------------------------------------------------------------


@functools.cache
def distances():
    """Total variations of Figure 2's strategies."""
    found = two_urns_figures.distances(records_of(two_urns_figures))
    return {name: estimate.mean for name, estimate in found.items()}


@says(
    *("two_urns", two_urns_figures),
    "where early mistakes stay, and the Gibbs steps that follow mend part of that. Annealing on "
    "subsamples leaves little of it.",
)
def annealing_leaves_little_of_early_mistakes(records):
    first, mended, annealed = (
        distances()[name] for name in ("sequential", "sequential + gibbs", "anneal subsample")
    )
    return 0.2 < first < 0.3 and 0.1 < mended < 0.2 and 0.05 < annealed < 0.1


@says(
    *("two_urns", two_urns_figures),
    "stays next to the prior, while the paper's caption names it after sequential + Gibbs",
)
def annealed_energies_stay_next_to_the_prior(records):
    return distances()["prior"] > distances()["anneal energy"] > 0.95


@says(
    *("two_urns", two_urns_figures),
    "the end is as good as that of subsamples. If every ball of a handful counts, so that the cost "
    "is that of the others, there are too few steps while handfuls are large, and the end is close "
    "to the prior.",
)
def steps_are_worth_something_balls_are_not(records):
    found = distances()
    return found["anneal stepsize"] < found["anneal subsample"] and (
        0.8 < found["anneal stepsize, by balls"] < found["prior"]
    )


def annealed_growth(records, i):
    """How assignments per ball grew over the last doubling, to the i-th epsilon."""
    times = two_urns_figures.times_by_size(records, "theorem2", "anneal", i)
    per_ball = [time / n for n, time in times.items()]
    return per_ball[-1] / per_ball[-2]


@says(
    *("two_urns", two_urns_figures),
    r"their number still rises, by a tenth over the last doubling, and at $\epsilon = 0.05$ and "
    "$0.02$ it falls.",
)
def annealing_is_about_linear(records):
    first, *others = (annealed_growth(records, i) for i in range(3))
    return f"{first:.1f}" == "1.1" and max(others) < 1


def halvings(records, method):
    """How many times as much as the one before each halving of epsilon costs."""
    steps = [
        np.diff(record["times"])
        for cell, record in of_figure(records, "theorem2_epsilon").items()
        if cell.method == method
    ]
    return np.concatenate([each[1:] / each[:-1] for each in steps])


@says(
    *("two_urns", two_urns_figures),
    "For cold inference it does. For annealing a halving costs about twice as much as the one "
    "before it",
)
def a_halving_of_epsilon_costs_twice_as_much(records):
    cold, anneal = (np.exp(np.log(halvings(records, way)).mean()) for way in ("cold", "anneal"))
    return 0.9 < cold < 1.25 and 1.5 < anneal < 2.5


@says(
    *("two_urns", two_urns_figures),
    r"(with 100 balls it is behind at the last two $\epsilon$)",
)
def annealing_is_behind_at_high_accuracy(records):
    found = of_figure(records, "theorem2_epsilon").items()
    cold, anneal = (
        np.array(next(r["times"] for c, r in found if c.data == "N=100" and c.method == way))
        for way in ("cold", "anneal")
    )
    return np.flatnonzero(anneal > cold).tolist() == [len(cold) - 2, len(cold) - 1]


@says(
    "two_urns", two_urns_figures, "the total variation is larger by about a quarter at every size"
)
def random_selection_is_worse_by_a_quarter(records):
    ratios = [
        record[f"random, {rate} sweeps"] / record[f"stratified, {rate} sweeps"]
        for record in of_figure(records, "selection").values()
        for rate in (5, 10)
    ]
    return 1.2 < min(ratios) and max(ratios) < 1.3


@says("two_urns", two_urns_figures, "its logarithm falls linearly in $N$")
def the_logarithm_of_the_gap_is_linear(records):
    gaps = [r["gap"] for c, r in of_figure(records, "theorem4_urns").items() if c.method == "cold"]
    falls = -np.diff(np.log(gaps))  # of equal steps of N
    return len(falls) == 4 and falls.max() / falls.min() < 1.15


@says("two_urns", two_urns_figures, "The power is right, and the logarithm is not needed.")
def the_power_of_epsilon_is_right(records):
    claims = verdicts(two_urns_figures.claims_of_theorems(records))
    return all(
        claims[f"Theorem 4, the equation: annealed time as {law}"] == REPRODUCED
        for law in ("(1/epsilon)^(delta/gamma)", "N")
    )


@says("two_urns", two_urns_figures, "Cold inference is quadratic in $N$.")
def cold_inference_is_quadratic(records):
    claims = verdicts(two_urns_figures.claims_of_theorems(records))
    found = [verdict for text, verdict in claims.items() if text.startswith("Theorem 2: cold, tot")]
    return found == [REPRODUCED] * 3


# -- permutations ----------------------------------------------------------------------------------

PERMUTING = "gibbs, permutation"


def near(records, panel, method):
    """Whether each run gets near the panel's best, and the mean seconds until then."""
    runs, budget = (
        permutation_figures.runs_of(records, panel),
        permutation_cells.PANELS[panel][-1],
    )
    seconds = list(permutation_figures.near_after(runs, method, budget).values())
    return [at < budget for at in seconds], np.mean(seconds)


@says(
    *("permutation", permutation_figures),
    "Gibbs alone seldom leaves a start with one cluster, though it merges hundreds of clusters "
    "fast. Permutation moves do both",
)
def gibbs_merges_but_does_not_split(records):
    (from_one, _), (from_many, seconds) = (near(records, panel, "gibbs") for panel in "ac")
    both = [near(records, panel, PERMUTING) for panel in "ac"]
    return (
        not any(from_one)
        and all(from_many)
        and all(map(all, (gets_there for gets_there, _ in both)))
        and seconds < both[1][1]
    )


@says(
    *("permutation", permutation_figures),
    "[Repeated cells](#how-this-was-measured) of now agree with them.",
)
def repeated_cells_of_permutations_agree(records):
    rows = again_table(permutation_figures, records).split("\n\n")[0].splitlines()[2:]
    found = [row.split(" | ")[-1].removesuffix(" |") for row in rows]
    return len(found) > 9 and set(found) == {"yes", "the same"}


@says(
    *("permutation", permutation_figures),
    "In 5 of the 50 orders by projection the beam keeps hardly anything of the sum, since a "
    "segment that was dropped never comes back; in uniform orders it keeps all.",
)
def orders_by_projection_may_lose_the_sum(records):
    shares = {"uniform": [], "projection": []}
    for (_, order), runs in permutation_figures.beam_runs(records).items():
        shares[order.split(",")[0]] += [run["share"] for run in runs]
    lost = [share for share in shares["projection"] if share < 0.99]
    return (
        (len(lost), len(shares["projection"])) == (5, 50)
        and max(lost) < 1e-20
        and min(shares["uniform"]) > 0.999
    )


@says(
    *("permutation", permutation_figures),
    "They are sums over 90 lags, which is too few for the largest cluster under Gibbs or "
    "permutations alone: those two times are too low.",
)
def some_times_are_too_low(records):
    last = {}
    for cell, record in of_figure(records, "mixing").items():
        last.setdefault(cell.method, []).append(record["largest"][permutation_cells.N_LAGS])
    high = {method for method, values in last.items() if np.mean(values) > 0.1}
    means = [np.mean(values) for method, values in last.items() if method not in high]
    expected = {"gibbs", PERMUTING, permutation_cells.MEAN}
    return permutation_cells.N_LAGS == 90 and high == expected and max(means) < 0.03


@says(
    *("permutation", permutation_figures),
    "panels g, i and j, in which some chains still climb at the end, for ten times as long (1.6 "
    "processor hours).",
)
def longer_runs_would_take_so_long(records):
    panels = [permutation_figures.runs_of(records, panel) for panel in "gij"]
    climbing = [
        np.polyfit(record["seconds_at"][-10:], record["log_joint"][-10:], 1)[0] > 0
        for runs in panels
        for seeds in runs.values()
        for record in seeds.values()
    ]
    seconds = sum(permutation_cells.PANELS[panel][-1] for panel in "gij")
    n_chains = permutation_cells.SEEDS * len(permutation_cells.HYBRIDS)
    return sum(climbing) > len(climbing) / 2 and f"{10 * n_chains * seconds / 3600:.1f}" == "1.6"


# -- tempering -------------------------------------------------------------------------------------

FOUR = "stt", "tt", "spt", "pt"


@says(
    "tempering", tempering_figures, "With 50 parameters this ladder is hardly crossed with either."
)
def ladders_of_many_parameters_are_hardly_crossed(records):
    found = [
        np.mean(record["swaps"])
        for (data, _), kinds in tempering_figures.subset_runs(records).items()
        for seeds in kinds.values()
        for record in seeds.values()
        if " 50 parameters" in data
    ]
    return len(found) == 12 and max(found) < 0.05


@says(
    *("tempering", tempering_figures),
    "with subsets, one more gradient per update, which weighs most where rows are few.",
)
def subsets_cost_more_than_predicted_where_rows_are_few(records):
    costs = tempering_figures.costs(records)
    for model, sizes in tempering_cells.COST_ROWS.items():
        predicted = tempering_cost.predicted(model)
        for way in ("stt", "spt"):
            few, many = (
                costs[model, n][way] / costs[model, n]["none"] / predicted[way]
                for n in (sizes[0], sizes[-1])
            )
            if not few > many > 1:
                return False
    return True


@says(
    *("tempering", tempering_figures),
    "Draw by draw, all tempered methods approach agreement faster than Hamiltonian Monte Carlo "
    "alone.",
)
def tempered_chains_agree_in_fewer_draws(records):
    paths = tempering_figures.paths(records)
    draws, _, alone = paths.pop("none")
    return set(paths) == set(FOUR) and all(
        (path[2] < np.interp(path[0], draws, alone)).all() for path in paths.values()
    )


@says(
    *("tempering", tempering_figures),
    "Per second both forms by subsets are ahead of it in the second half of the time, and those by "
    "powers are not. None has agreed at its end, and one run of each decides nothing.",
)
def subsets_agree_sooner_in_the_end(records):
    paths = tempering_figures.paths(records)
    _, seconds, alone = paths["none"]
    half = tempering_cells.budget_of(tempering_cells.FIGURE2) / 2

    def is_ahead(way):
        _, at, r_hat = paths[way]
        return r_hat[at > half] < np.interp(at[at > half], seconds, alone)

    return (
        all(is_ahead(way).all() for way in ("stt", "spt"))
        and not any(is_ahead(way).any() for way in ("tt", "pt"))
        and min(path[2].min() for path in paths.values()) > 1.1
    )


def records_of_512_rows(records):
    """Those of Table 1."""
    rows = tempering_cells.ROWS["table1"]
    return [
        record
        for row, ways in tempering_figures.by_row(records).items()
        for seeds in ways.values()
        for record in seeds.values()
        if row in rows
    ]


@says("tempering", tempering_figures, "most cells end there undecided")
def most_cells_of_512_rows_end_undecided(records):
    return np.mean([agrees(record) for record in records_of_512_rows(records)]) < 0.5


@says(
    *("tempering", tempering_figures),
    "at the 0.1 to 1 a second that most of its cells have, this would take 200 to 2,000 seconds a "
    "cell, and so 6 to 60 hours for the 108 cells of one seed.",
)
def cells_of_512_rows_would_take_so_long(records):
    rates = np.array([rate(record, "bulk") for record in records_of_512_rows(records)])
    n_ways = sum(len(tempering_cells.ways_of(setting)) for setting in ("paper", "tuned"))
    n_cells = n_ways * len(tempering_cells.ROWS["table1"])
    hours = [round(n_cells * 200 / rate / 3600) for rate in (1, 0.1)]
    return n_cells == 108 and hours == [6, 60] and ((0.1 < rates) & (rates < 1)).mean() > 0.5


@says(
    *("tempering", tempering_figures),
    "What is left of `sampling` are cells of the process of 512 rows and more, with the budgets of "
    "above, in which many chains do not agree; 1,024 rows take 3.6 processor hours at most.",
)
def what_is_left_are_processes_of_many_rows(records):
    cells = [cell for cell in tempering_cells.cells() if cell.figure == "sampling"]
    rows = {cell: tempering_cells.row_of(cell.data) for cell in cells}
    left = [rows[cell] for cell in cells if cell not in records]
    largest = [cell for cell in cells if rows[cell][0] == "gp" and rows[cell][3] == 1024]
    hours = sum(tempering_cells.cost(cell, None) for cell in largest) / 3600
    return all(row[0] == "gp" and row[3] >= 512 for row in left) and f"{hours:.1f}" == "3.6"


def barriers(records, lowest, highest):
    """(rows, parameters) and runs of the map's settings whose barriers are so high."""
    found = tempering_pays.runs_of(records).items()
    return [(setting[1:], ways) for setting, ways in found if lowest <= setting[0] <= highest]


def factor(ways, way):
    """How many times the inner sampler's rate; not a number if no chains agree."""
    logs = tempering_pays.gains(ways, way)
    return np.exp(np.mean(logs)) if logs else np.nan


@says(
    *("tempering", tempering_figures),
    "with two parameters parallel tempering by powers gives at best a few times as many draws, and "
    "with twenty all four methods give fewer.",
)
def tempering_brings_little_over_a_low_barrier(records):
    low = barriers(records, 2, 2)
    few = [factor(ways, "pt") for (_, n_parameters), ways in low if n_parameters == 2]
    many = [factor(ways, w) for (_, n_parameters), ways in low if n_parameters == 20 for w in FOUR]
    return 1 < max(few) < 5 and max(many) < 1


@says(
    *("tempering", tempering_figures),
    "From eight nats on its chains stay where they are in nearly all settings, and with two "
    "parameters tempered chains that agree give some ten to some hundred times as many effective "
    "draws, parallel tempering mostly more than transitions. Powers are mostly ahead of subsets",
)
def tempered_chains_cross_high_barriers(records):
    high = barriers(records, 8, 32)
    moved = [all(map(agrees, ways["none"].values())) for _, ways in high]
    found = [
        {way: factor(ways, way) for way in FOUR if all(map(agrees, ways[way].values()))}
        for (_, n_parameters), ways in high
        if n_parameters == 2
    ]
    values = [value for of in found for value in of.values()]

    def often(one, other):
        return np.mean([of[one] > of.get(other, 0) for of in found if one in of])

    return (
        sum(moved) <= len(moved) / 6
        and 3 < min(values) < 30
        and 100 < max(values) < 1000
        and min(often("pt", "tt"), often("spt", "stt"), often("pt", "spt")) > 0.5
    )


@says(
    *("tempering", tempering_figures),
    "With twenty parameters only powers cross the barrier of 32 nats, and with 4,096 rows hardly "
    "any run does.",
)
def few_chains_cross_the_highest_barrier(records):
    highest = barriers(records, 32, 32)
    crossing = {
        way
        for (_, n_parameters), ways in highest
        for way, seeds in ways.items()
        if n_parameters == 20 and any(map(agrees, seeds.values()))
    }
    large = [
        agrees(record)
        for (n_rows, _), ways in highest
        for seeds in ways.values()
        for record in seeds.values()
        if n_rows == 4096
    ]
    return crossing == {"pt"} and np.mean(large) < 0.1


# -- all of them -----------------------------------------------------------------------------------


@pytest.mark.parametrize(("page", "family", "sentence", "is_so"), says.said, ids=says.names())
def test_a_sentence_is_what_the_lines_say(page, family, sentence, is_so):
    assert_said_and_so(page, family, sentence, is_so)
