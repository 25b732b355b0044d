"""The claims of Obermeyer, Glidden and Jonas (2014), and what the lines say of each."""

import itertools
from itertools import product

import numpy as np

from papers.schedules_cells import KERNEL, PAPERS
from papers.schedules_scores import (
    OURS,
    acceptances,
    disagreements,
    runs_of,
    scores,
    with_ours,
    z_of,
)
from papers.verdicts import Estimate, deviation, is_positive, mean, paired


def over_budgets(values):
    """Mean over budgets, of numbers or of dicts of seed to number: budgets share their splits."""
    values = list(values)
    if not isinstance(values[0], dict):
        return float(np.mean(values))
    shared = set.intersection(*(set(of) for of in values))
    return {seed: float(np.mean([of[seed] for of in values])) for seed in shared}


def claims(records):
    """The paper's claims, panel by panel; those on spreads have panels as their units."""
    spreads, gaps, found = [], [], disagreements(records)
    for panel, budgets in runs_of(records).items():
        budget, methods = list(budgets.items())[-1]
        for ours, other in product(("linear_anneal", "anneal"), PAPERS[1:]):
            if {ours, other} <= methods.keys():
                gain = paired(scores(methods[ours]), scores(methods[other]))
                text = f"{panel}, {budget:g} s: `{ours}` beats `{other}`"
                yield text, f"{gain.text(3)} nats per row", is_positive(gain)
        whole = {
            budget: methods
            for budget, methods in budgets.items()
            if all(len(methods.get(method, {})) > 2 for method in PAPERS)
        }
        if not whole:
            continue
        prior, sequential = (
            over_budgets(scores(methods[name]) for methods in whole.values()) for name in PAPERS[1:]
        )
        lead = paired(prior, sequential)
        text = (
            f"{panel}, mean over budgets: sequential initialisation is no better than the prior's"
        )
        yield text, f"worse by {lead.text(3)} nats per row", is_positive(lead)
        sds = [[deviation(scores(m[name]).values()) for name in PAPERS[:2]] for m in whole.values()]
        spreads.append(over_budgets(np.log(prior / ours) for ours, prior in sds))
        views = [[found[panel, budget, name].mean for name in PAPERS[:2]] for budget in whole]
        gaps.append(over_budgets(prior - ours for ours, prior in views))
    if spreads:
        less, closer = mean(spreads), mean(gaps)
        text = "`linear_anneal` has a lower spread of scores than `prior_gibbs`"
        measured = f"`prior_gibbs` {np.exp(less.mean):.2f} times as much, {less.n} panels"
        yield text, measured, is_positive(less)
        text = "`linear_anneal`'s chains agree more on the views than `prior_gibbs`'s"
        measured = f"variation of information lower by {closer.text(2)} nats, {closer.n} panels"
        yield text, measured, is_positive(closer)
    for panel, sizes in acceptances(records).items():
        few, many = min(sizes), max(sizes)
        fall = paired(dict(enumerate(sizes[few])), dict(enumerate(sizes[many])))
        text = f"{panel}: fewer sets of columns are accepted of {many:,} rows than of {few}"
        yield text, f"{100 * fall.mean:.1f} ± {100 * fall.error:.1f} per cent", is_positive(fall)


def claims_of_papers_kernel(records):
    """With the paper's kernel: one schedule against another, panel by panel and in all."""
    for figure, equal in zip(KERNEL, ("seconds", "sweeps"), strict=True):
        runs = runs_of(records, figure)
        for ours, other in itertools.combinations(PAPERS, 2):
            found = {panel: z_gain(budgets, ours, other) for panel, budgets in runs.items()}
            found = {panel: gain for panel, gain in found.items() if gain}
            if len(found) > 1:
                found[f"all {len(found)} data sets"] = over_panels(found.values())
            for panel, gain in found.items():
                text = f"equal {equal}, {panel}: `{ours}` beats `{other}`"
                yield text, f"z-score higher by {gain.text(2)}", is_positive(gain)
    yield from claims_of_set_lengths(records)
    for panel, budgets in with_ours(records).items():
        budget, methods = list(budgets.items())[-1]
        if {OURS, PAPERS[0]} <= methods.keys():
            gain = paired(scores(methods[OURS]), scores(methods[PAPERS[0]]))
            text = f"{panel}, {budget:g} seconds: the package's `anneal` beats the paper's"
            yield text, f"{gain.text(2)} nats per row", is_positive(gain)


def claims_of_set_lengths(records):
    """Annealing of a set length against cold chains with a time limit: the budgets of sweeps whose
    chains take about as long."""
    limited = runs_of(records, KERNEL[0])
    for panel, budgets in runs_of(records, KERNEL[1]).items():
        for (n_sweeps, methods), other in product(budgets.items(), PAPERS[1:]):
            annealed = methods.get(PAPERS[0], {})
            took = mean(scores(annealed, "chain_seconds").values())
            for of in limited.get(panel, {}).values():
                cold = of.get(other, {})
                seconds = mean(scores(cold, "chain_seconds").values())
                if cold and took.mean / 2 < seconds.mean < 2 * took.mean:
                    gain = paired(scores(annealed), scores(cold))
                    text = f"{panel}: {n_sweeps:g} sweeps of `{PAPERS[0]}` in {took.text(1)} s "
                    text += f"beat `{other}` in {seconds.mean:.1f} s"
                    yield text, f"{gain.text(2)} nats per row", is_positive(gain)


def z_gain(budgets, *both):
    """What one schedule gains over another in z-scores, mean over budgets; None if not known."""
    z = z_of(budgets)
    of_budgets = [
        {method: {seed: z[budget, method, seed] for seed in methods[method]} for method in both}
        for budget, methods in budgets.items()
        if set(both) <= methods.keys()
    ]
    if not of_budgets:
        return None
    return paired(*(over_budgets(of[method] for of in of_budgets) for method in both))


def over_panels(estimates):
    """Mean over data sets, whose errors are independent: of these data sets, not of others."""
    estimates = list(estimates)
    average = float(np.mean([estimate.mean for estimate in estimates]))
    error = float(np.sqrt(np.sum([e.error**2 for e in estimates])) / len(estimates))
    return Estimate(average, error, min(e.n for e in estimates))
