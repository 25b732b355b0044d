"""What the traces and the draws of several chains say about their convergence."""

# SPDX-License-Identifier: BSD-3-Clause

import numpy as np

from ..chains import side_by_side
from ..predictive._draws import partitions
from ..summary import convergence, diagnose

SEPARATION = "separation"  # the answer about the cut, which chains have no part in
UNDIAGNOSED = ("seconds", "sweeps", "n_assigned", "burn_in")  # entries of the trace that only go up
COMPARED_ROWS = 500  # of which partitions are compared
ROUNDING = 1e-6  # nats between log joint densities that say nothing


def judged(traces, draws, n_rows, block=None):
    """Fitted attributes: whether chains agree, R-hat and effective sample size.

    Parameters
    ----------
    traces : list of dict
        Of each chain, float arrays of shape (n_records,).
    draws : list of list of dict
        Of each chain, the draws' arrays.
    n_rows : int
        Rows of the data.
    block : int or None
        How many of the last records are judged; None: all of the final full-data stage, burn-in
        left out.
    """
    trace = side_by_side(traces)
    full = final_stage(trace, n_rows)
    if block is not None:
        full &= np.cumsum(full[:, ::-1], axis=1)[:, ::-1] <= block
    final = {name: np.where(full, trace[name], np.nan) for name in trace if name not in UNDIAGNOSED}
    if full.any() and np.ptp(trace["log_joint"][full]) < ROUNDING:
        final["log_joint"][full] = trace["log_joint"][full][0]
    rows = np.linspace(0, n_rows - 1, min(n_rows, COMPARED_ROWS)).astype(np.int64)
    kept = [[partitions(arrays, rows) for arrays in of] for of in draws]
    # log joint densities with values of missing cells in them say nothing of which chain is better
    found = convergence(final, kept, ranked=not any("fills" in arrays for arrays in draws[0]))
    r_hats, esses = diagnose(final)
    return {
        "r_hat_": r_hats,
        "ess_": esses,
        "converged_": found.pop("converged"),
        "convergence_": found,
    }


def final_stage(trace, n_rows):
    """Which records are of the final full-data stage, burn-in left out: (n_chains, n_records)."""
    full = trace["n_assigned"] == n_rows
    return full & (trace["burn_in"] == 0) if "burn_in" in trace else full


def failed(convergence):
    """The figures beyond their limits: dict of str to dict."""
    figures = convergence["figures"].items()
    return {name: figure for name, figure in figures if figure["agrees"] is False}


def opinion(verdict):
    """Say in a few words whether the chains agree, and by which figures they do not."""
    if verdict["converged_"]:
        return "the chains agree"
    beyond = failed(verdict["convergence_"]).items()
    if not beyond:
        return "too little to tell whether the chains agree"
    figures = ", ".join(f"{name} {figure['value']:.3g}" for name, figure in beyond)
    if len(verdict["convergence_"]["agreeing"]) == 1:
        return f"the chain has not settled: {figures}"
    return f"the chains do not agree: {figures}"


def settled(converged, answers):
    """Whether chains agree in everything, or on every answer that they were asked for, and the
    clusters do not hang on where the tree is cut."""
    of_chains = [answer["agrees"] for name, answer in answers.items() if name != SEPARATION]
    cut = answers.get(SEPARATION, {"agrees": True})["agrees"]
    return bool(cut and (converged or (of_chains and all(of_chains))))


def disagreement(convergence, advice, asked=None):
    """What to say of chains that disagree; nothing where there is too little to tell, where they
    agree on every answer that is asked for (by default all), or of one chain, whose halves differ
    by chance where it moves slowly.

    There are no figures in it, nor which of them are beyond their limits, so that Python shows it
    once where many fits have it to say.
    """
    answers = convergence.get("answers", {})
    asked = answers.keys() - {SEPARATION} if asked is None else asked
    answers = {name: of for name, of in answers.items() if name in asked}
    agreed = [name for name, answer in answers.items() if answer["agrees"]]
    nothing_to_say = not failed(convergence) or len(convergence["agreeing"]) == 1
    if nothing_to_say or settled(False, answers):
        return []
    if not answers:
        return [
            f"The chains do not agree: `convergence_` has the figures, and says which chains are "
            f"at odds with the others. {advice}"
        ]
    open_ = _listed([name for name in answers if name not in agreed])
    agree = f"agree on the {_listed(agreed)}, but not on" if agreed else "do not agree on"
    return [f'The chains {agree} the {open_}; `convergence_["answers"]` has the figures. {advice}']


def _listed(names):
    """Names in a sentence."""
    *first, last = names
    return f"{', '.join(first)} and the {last}" if first else last
