"""The page of problems in benchmarks/fits: what is generated, what is resumed, what is shown."""

import json
import sys
from math import exp, lgamma, log, pi, sqrt

import numpy as np
import pytest

from fits import fits, models, page, problems, references
from harness.lines import Lines

ROWS = 5  # of which the slow density is computed


def small(problem):
    """A problem of few enough rows for a test."""
    return problem._replace(
        train=problem.train[:60],
        fresh=problem.fresh[:50],
        starts=[start[:60] for start in problem.starts],
        bayes=problem.bayes[:60],
        log_density=problem.log_density[:50],
    )


# ---- problems ------------------------------------------------------------------------------------

SIMULATED = [
    "overlapping",
    "separated",
    "one_gaussian",
    "heavy_tails",
    "uniform",
    "rare",
    "correlated",
    "levels",
    "counts",
    "documents",
    "mixed_with_gaps",
    "tables",
]


@pytest.mark.parametrize("seed", [0, 3])
def test_every_kind_generates_what_it_says(seed):
    kinds = problems.KINDS
    assert set(SIMULATED) < set(kinds)
    for name, make in kinds.items():
        problem = make(seed)
        n_rows, n_columns = problem.train.shape
        assert problem.fresh.shape[1] == n_columns, name
        assert len(problem.starts) == problem.view_of.max() + 1
        assert problem.view_of.shape == (n_columns,)
        assert all(np.shape(start) == (n_rows,) for start in problem.starts)
        gaps = np.isnan(problem.train).mean()
        assert (0.1 < gaps < 0.2) if name == "mixed_with_gaps" else gaps == 0.0, name
        again = make(seed)
        assert np.array_equal(problem.train, again.train, equal_nan=True)
        assert not np.array_equal(problem.train, make(seed + 100).train)
        if name in SIMULATED:
            assert len(problem.fresh) >= 1000
            assert np.isfinite(problem.log_density).all()
            assert len(problem.bayes) == (n_columns if name == "tables" else n_rows)


# What a column's cell says of a component, from the formulas.
def normal(column, k, x):
    mean, deviation = column.means[k], column.deviations[k]
    return exp(-((x - mean) ** 2) / (2 * deviation**2)) / (deviation * sqrt(2 * pi))


def categorical(column, k, x):
    return column.probabilities[k][int(x)]


def poisson(column, k, x):
    return exp(x * log(column.rates[k]) - column.rates[k] - lgamma(x + 1))


def of_columns(law, row):
    total = 0.0
    for k, log_weight in enumerate(law.log_weights):
        density = exp(log_weight)
        for column, x in zip(law.columns, row):
            if not np.isnan(x):
                density *= globals()[column.family](column, k, x)
        total += density
    return total


def of_gaussians(law, row):
    total = 0.0
    for log_weight, mean, covariance in zip(law.log_weights, law.means, law.covariances):
        z = np.linalg.solve(np.linalg.cholesky(2 * pi * covariance), row - mean)
        total += exp(log_weight - pi * (z @ z)) / sqrt(np.linalg.det(2 * pi * covariance))
    return total


def of_students(law, row):
    """Four degrees of freedom: the density of t is 3/8 (1 + x^2 / 4)^(-5/2)."""
    assert law.degrees == 4
    density = 1.0
    for x, scale in zip(row, law.scales):
        density *= 0.375 * (1 + (x / scale) ** 2 / 4) ** -2.5 / scale
    return density


def of_cube(law, row):
    return float(all(0 <= x <= 1 for x in row))


def of_documents(law, row):
    total = 0.0
    for log_weight, topic in zip(law.log_weights, law.topics):
        log_density = log_weight + lgamma(sum(row) + 1)
        for count, share in zip(row, topic):
            log_density += count * log(share) - lgamma(count + 1)
        total += exp(log_density)
    return total


def of_views(law, row):
    density = 1.0
    for v, of_view in enumerate(law.laws):
        density *= of_columns(of_view, [x for x, view in zip(row, law.view_of) if view == v])
    return density


SLOW = {
    "Columns": of_columns,
    "Gaussians": of_gaussians,
    "Students": of_students,
    "Cube": of_cube,
    "Documents": of_documents,
    "Views": of_views,
}


@pytest.mark.parametrize("name", SIMULATED)
def test_true_density_is_that_of_the_formula(name):
    problem = problems.KINDS[name](1)
    slow = SLOW[type(problem.law).__name__]
    expected = [log(slow(problem.law, row)) for row in problem.fresh[:ROWS]]
    np.testing.assert_allclose(problem.log_density[:ROWS], expected, rtol=1e-9, atol=1e-9)


# The means of 5,000 rows of each component lie within 5 standard errors of the law's: among 2,200
# means a false alarm has a chance of 0.1 %.
def test_rows_have_the_means_of_their_components():
    for name in ("overlapping", "separated", "counts", "levels", "documents"):
        law, rng = problems.KINDS[name](0).law, np.random.default_rng(0)
        for k in range(len(law.log_weights)):
            rows = law.sample(rng, np.full(5000, k))
            if name == "overlapping":
                means = law.means[k]
            elif name == "documents":
                means = law.mean_total * law.topics[k]
            else:
                means = [mean_of(column, k) for column in law.columns]
            error = rows.std(axis=0) / np.sqrt(len(rows)) + 1e-3
            assert (np.abs(rows.mean(axis=0) - means) < 5 * error).all(), (name, k)


def mean_of(column, k):
    if column.family == "categorical":
        return column.probabilities[k] @ np.arange(column.probabilities.shape[1])
    return column.means[k] if column.family == "normal" else column.rates[k]


# ---- references and fits -------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["separated", "tables"])
@pytest.mark.few(1)
def test_chains_begin_where_they_are_told_to(name):
    problem = small(problems.KINDS[name](1))
    default = models.fitted(
        models.estimator(problem, 0, n_chains=2, schedule="sequential_gibbs"), problem.train
    )
    chains = models.chains(problem, 0, default)
    assert list(chains) == ["truth", "one", "many", "sequential", "anneal"]
    states = {name: model._states[0] for name, model in chains.items()}
    view = "state/view0/labels" if name == "tables" else "state/labels"
    assert np.array_equal(states["truth"][view], problem.starts[0])
    assert not states["one"][view].any()
    assert len(np.unique(states["many"][view])) > 10
    assert states["anneal"] is default._states[0]
    if name == "tables":
        assert np.array_equal(states["truth"]["state/view_of"], relabelled(problem.view_of))
        assert len(np.unique(states["many"]["state/view_of"])) == problem.train.shape[1]
    for model in chains.values():
        models.run_on(model, problem.train, 3, 1)
        assert models.draw_log_densities(model, problem.fresh[:7]).shape == (3, 7)
        assert np.isfinite(model.score(problem.fresh))


def relabelled(labels):
    """Labels numbered from 0 by value."""
    return np.unique(labels, return_inverse=True)[1]


def test_density_of_equal_draws_is_the_mean_over_groups():
    rng = np.random.default_rng(0)
    densities = [rng.normal(size=(4, 3)) for _ in range(2)]
    expected = []
    for i in range(0, 4, 2):  # two draws of each of two chains
        group = [densities[0][i], densities[1][i], densities[0][i + 1], densities[1][i + 1]]
        expected.append(np.log(np.mean(np.exp(group), axis=0)))
    found = references.of_equal_draws(densities, 4)
    np.testing.assert_allclose(found, np.mean(expected, axis=0), rtol=1e-12)
    steps = references.from_steps(references.in_steps(found))
    np.testing.assert_allclose(steps, found, atol=references.STEP)


def test_chains_that_differ_leave_a_problem_unresolved():
    agreement = references.agreement
    score, number = np.zeros((10, 4)), np.arange(10)
    said = agreement({"one": score, "many": score}, {"one": number, "many": number + 3})
    assert said["resolved"]
    assert said["components"] == [0, 12]
    apart = {"one": number, "many": number + 30}
    assert not agreement({"one": score, "many": score}, apart)["resolved"]
    worse = {"one": score, "many": score + 0.01}
    assert not agreement(worse, {"one": number, "many": number})["resolved"]


@pytest.fixture
def one_problem(monkeypatch):
    """The registry with one small problem, which counts how often it is made."""
    made = []
    rows = small(problems.KINDS["separated"](0))

    def only(seed):
        made.append(seed)
        return rows

    monkeypatch.setattr(problems, "KINDS", {"only": only})
    for module in (references, fits, page):
        monkeypatch.setattr(module, "KINDS", {"only": only})
    monkeypatch.setattr(references, "N_DRAWS", 5)
    return made


def run(module, monkeypatch, *arguments):
    monkeypatch.setattr(sys, "argv", [module.__file__, "--seeds", "1", *map(str, arguments)])
    module.main()


@pytest.mark.slow
def test_a_finished_cell_is_not_run_again(one_problem, monkeypatch, tmp_path):
    run(references, monkeypatch, "--results", tmp_path, "--minutes", 1e-9)
    assert one_problem == []
    run(fits, monkeypatch, "--results", tmp_path)  # without a reference there is no cell
    assert one_problem == []
    run(references, monkeypatch, "--results", tmp_path, "--times", 0.5)
    run(fits, monkeypatch, "--results", tmp_path, "--ways", "default", "cut")
    assert len(one_problem) == 2
    before = {path.name: path.read_text() for path in tmp_path.glob("*.jsonl")}
    assert {name: text.count("\n") for name, text in before.items()} == {
        "references.jsonl": 1,
        "problems.jsonl": 2,
    }
    run(references, monkeypatch, "--results", tmp_path)
    run(fits, monkeypatch, "--results", tmp_path, "--ways", "default", "cut")
    assert len(one_problem) == 2
    assert before == {path.name: path.read_text() for path in tmp_path.glob("*.jsonl")}
    run(fits, monkeypatch, "--results", tmp_path, "--ways", "default", "sequential_gibbs")
    cells = list(map(json.loads, (tmp_path / "problems.jsonl").read_text().splitlines()))
    assert [cell["way"] for cell in cells] == ["default", "cut", "sequential_gibbs"]
    assert cells[1]["sweeps"] < 0.2 * cells[0]["sweeps"]
    assert abs(cells[2]["sweeps"] - cells[0]["sweeps"]) < 1


@pytest.mark.slow
def test_a_reference_for_which_time_is_short_is_run_by_a_longer_run(
    one_problem, monkeypatch, tmp_path
):
    lines = Lines(tmp_path / "references.jsonl", references.KEYS)
    model = references.MODEL
    lines.add({"model": model, "kind": "only", "seed": 0, "needs": 120})
    run(references, monkeypatch, "--results", tmp_path, "--minutes", 1)
    assert one_problem == []
    run(references, monkeypatch, "--results", tmp_path, "--minutes", 10, "--times", 0.5)
    assert one_problem == [0]


# ---- the page ------------------------------------------------------------------------------------


def write_lines(folder, model):
    start = {"score": -1.0, "components": [2, 4]}
    other = {"score": -1.25, "components": [7, 9]}
    references = [
        {"kind": "rare", "seed": 0, "resolved": True, "starts": {"one": start}, "times": 50},
        {"kind": "rare", "seed": 1, "resolved": True, "starts": {"one": start}, "times": 20},
        {"kind": "levels", "seed": 0, "resolved": False, "starts": {"one": start, "many": other}},
        {"kind": "tables", "seed": 6, "needs": 7200},
    ]
    fit = {"error": 0.002, "ari": 0.5, "inside": True, "converged": True}
    cells = [
        {"kind": "rare", "seed": 0, "way": "default", "gap": 0.001},
        {"kind": "rare", "seed": 1, "way": "default", "gap": 0.05, "inside": False},
        {"kind": "rare", "seed": 0, "way": "cut", "gap": 0.2, "converged": False},
        {"kind": "rare", "seed": 0, "way": "linear_anneal", "gap": 0.004},
        {"kind": "levels", "seed": 0, "way": "default", "gap": 9.0},
    ]
    for name, records in (("references", references), ("problems", cells)):
        text = "".join(
            json.dumps(
                {"commit": "abc1234", "model": model} | (fit if name == "problems" else {}) | record
            )
            + "\n"
            for record in records
        )
        (folder / f"{name}.jsonl").write_text(text)


def test_the_tables_are_made_from_the_lines(tmp_path):
    write_lines(tmp_path, references.MODEL)
    text = page.tables(tmp_path)
    row = "| {} | 2 | 0.0255 | 0.0500 | 0.0020 | 1 of 2 | 0.50 | 2 of 2 | 1 of 2 | 1 of 1 |"
    assert row.format("rare") in text.splitlines()
    assert row.format("all") in text.splitlines()
    assert "| rare | 0.0255 | 0.0040 |" in text.splitlines()
    assert "9.0" not in text  # a gap to what nobody knows
    assert "- levels, seed 0: the starts' scores differ by 0.2500; components from" in text
    assert "- tables, seed 6: about 120 minutes" in text
    assert "**Package of commit `abc1234`** (references of 20 and 50 times the work)" in text


def test_fits_and_references_of_another_model_are_left_out(tmp_path):
    write_lines(tmp_path, references.MODEL - 1)
    assert page.tables(tmp_path) == ""


def test_a_version_without_claims_has_dashes(tmp_path):
    write_lines(tmp_path, references.MODEL)
    path = tmp_path / "problems.jsonl"
    path.write_text(path.read_text().replace('"converged": true', '"converged": null'))
    assert "| 0.50 | – | – | 1 of 1 |" in page.tables(tmp_path)


def test_the_kept_lines_make_the_page():
    assert page.tables()
    for name, function in problems.KINDS.items():
        assert f"**{name}.** {function.__doc__.split()[0]}" in page.kinds_in_words()
