"""The suites of peers: cells run once, go on where they were cut, and stand in the tables."""

import json
import sys

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from fits import (
    ablation_page,
    clustering,
    decisions,
    drawn_fills,
    imputation,
    number_of_clusters,
    odd_rows,
    outliers,
    rare_classes,
    samples,
    suite_page,
)
from harness.suite import KEYS, Suite, files


@pytest.fixture
def folder(tmp_path):
    """A folder of one labelled table."""
    rng = np.random.default_rng(0)
    y = np.arange(60) % 2
    X = np.c_[4.0 * y, -4.0 * y] + rng.normal(size=(60, 2))
    np.savez(tmp_path / "fcps_two.npz", X=X, y=y, labels0=y + 1, labels1=np.where(y, 1, 0))
    return tmp_path


def run(suite, monkeypatch, folder, *arguments):
    monkeypatch.setattr(sys, "argv", ["", str(folder), "--results", str(folder), *arguments])
    suite.run("A suite.")
    return (folder / f"{suite.name}.jsonl").read_text().splitlines()


CASES = [
    (clustering.SUITE, ("kmeans_given", "ward_given")),
    (outliers.SUITE, ("isolation_forest", "local_outlier_factor")),
]


@pytest.mark.parametrize("suite, methods", CASES, ids=lambda case: getattr(case, "name", ""))
def test_a_cell_is_run_once_and_stands_in_the_table(suite, methods, monkeypatch, folder):
    one = run(suite, monkeypatch, folder, "--seeds", "1", "--methods", methods[0])
    assert len(one) == 1
    lines = run(suite, monkeypatch, folder, "--seeds", "2", "--methods", *methods)
    assert len(lines) == 4 and lines[0] == one[0]
    found = suite_page.records(suite.name, folder)
    assert {method for _, method in found} == set(methods)


def test_clusters_are_compared_with_the_best_labelling_without_noise(monkeypatch, folder):
    path = files(folder)["fcps_two"]
    record = clustering.measure(path, clustering.kmeans_given, 0)
    assert record["ari"] == 1.0 and record["n_clusters"] in (1, 2)


@pytest.mark.parametrize("look", odd_rows.LOOKS)
def test_outliers_of_known_kinds(look):
    """They weigh as much among new rows as among training rows, and lose what their kind says."""
    for kind in odd_rows.KINDS:
        train, fresh, odd, weights = odd_rows.table(look, kind, 0)
        share = weights[odd].sum()
        assert weights.sum() == pytest.approx(1.0) and 0.01 <= share <= 0.2
        assert len(fresh) == len(odd) == odd_rows.ORDINARY + odd_rows.ODD
        assert 300 <= len(train) <= 5000 and 2 <= train.shape[1] <= 50
    cells = odd_rows.as_numbers(odd_rows.table(look, "diffuse", 0)[1])
    assert cells.dtype == float and np.isfinite(cells).all()


def test_rows_are_broken_in_no_column_of_their_own():
    """Cells of other rows: the columns have the same laws, and are independent."""
    rng = np.random.default_rng(0)
    groups = odd_rows.Groups(rng, 4)
    groups.form, groups.factors[:], groups.bends[:] = "normal", 6.0, 0.0
    whole, broken = groups.draw(rng, 2000), odd_rows.broken(rng, groups, 2000, 4)
    assert stats.ks_2samp(whole, broken).pvalue.min() > 1e-6
    assert np.corrcoef(whole.T)[0, 1] > 0.5 > 0.2 > abs(np.corrcoef(broken.T)[0, 1])


def test_groups_have_the_tails_of_their_form():
    """The excess kurtosis of the offsets is low of a uniform law, and high of a heavy one."""
    groups, which = odd_rows.Groups(np.random.default_rng(0), 3), np.zeros(5000, dtype=int)
    groups.factors[:], groups.bends[:], tails = 0.0, 0.0, {}
    for groups.form in odd_rows.FORMS:
        rows = groups.offsets(np.random.default_rng(1), which)
        tails[groups.form] = stats.kurtosis(rows).mean()
    assert tails["uniform"] < -1.0 < -0.3 < tails["normal"] < 0.3 < 3.0 < tails["heavy"]
    groups.bends[:] = 2.0
    assert stats.skew(groups.offsets(np.random.default_rng(1), which)).min() > 1.0


def test_figures_of_samples():
    """Training rows are copies, and nearer, other rows are not; a copula keeps margins, and trees
    a curve, too."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=900)
    whole = pd.DataFrame({"x": x, "y": x**2 + 0.1 * rng.normal(size=900)})
    whole["level"] = np.where(x > 0, "high", "low")
    train, held_out, others = (whole[i : i + 300].reset_index(drop=True) for i in (0, 300, 600))
    assert 0.4 < samples.nearer(train, held_out, others) < 0.6
    assert samples.nearer(train, held_out, train) == 1.0 == samples.copies(train, train)
    assert samples.copies(others, train) == 0.0
    found = []
    for method in (samples.copula, samples.trees):
        drawn, _ = method(train, others, 0)
        assert drawn.dtypes.equals(train.dtypes) and samples.margins(train, drawn) < 0.1
        found.append(samples.pairs(held_out, drawn))
    assert found[1] < 0.8 * found[0]


def test_rare_classes_of_labelled_tables(monkeypatch, tmp_path, capsys):
    """One table of each data, none of ADBench's, words or gaps; a class is rare in both halves."""
    rng = np.random.default_rng(0)
    there = tmp_path / "balanced" / "raw"
    there.mkdir(parents=True)

    def written(name, n_rows=400, cell="{:.3f}"):
        kinds = np.arange(n_rows) % 2 + (np.arange(n_rows) > 0.9 * n_rows)
        lines = [
            f"{cell.format(x + 9 * kind)}, {x:.3f}, kind {kind}"
            for x, kind in zip(rng.normal(size=n_rows), kinds)
        ]
        (there / f"{name}.dat").write_text("\n".join(lines) + "\n")

    for name in ("place1", "place2", "glass-1", "wood", "gap", "other"):
        cell = {"wood": "oak {:.0f}", "gap": ""}.get(name, "{:.3f}")
        written(name, 60 if name == "other" else 400, cell)
    found = rare_classes.tables(tmp_path)
    stems = {name: path.stem for name, path in found.items()}
    assert stems == {"place": "place1", "other": "other"}
    for seed in range(3):
        train, fresh, odd = rare_classes.halves(found["place"], seed)
        share = rare_classes.RARE / (1 + rare_classes.RARE)
        assert odd.mean() == pytest.approx(share, abs=0.02) and len(odd) == len(fresh)
        assert len(fresh) == pytest.approx(0.3 * (len(train) + len(fresh)), abs=1)
        rare, usual = fresh[odd, 0], fresh[~odd, 0]
        assert np.abs(rare - rare.mean()).max() < 5.0  # of one class
        assert len(np.unique(np.rint((usual - usual.min()) / 9))) > 1  # of several
    methods = ("--methods", "isolation_forest", "neighbours", "--seeds", "1")
    assert len(run(rare_classes.SUITE, monkeypatch, tmp_path, *methods)) == 4
    monkeypatch.setattr(rare_classes, "OURS", "neighbours")
    rare_classes.summary(tmp_path)
    said = [json.loads(line) for line in capsys.readouterr().out.splitlines() if line[0] == "{"]
    assert [line["tables"] for line in said] == [2, 2]
    assert said[1]["ahead by"] == [0.0, 0.0] == said[1]["error"]


def test_no_time_no_cell(monkeypatch, folder):
    with pytest.raises(SystemExit, match="goes on from here"):
        run(outliers.SUITE, monkeypatch, folder, "--minutes", "0")
    with pytest.raises(SystemExit, match="no such method"):
        run(outliers.SUITE, monkeypatch, folder, "--methods", "tails")


def test_errors_of_imputation():
    """Against the formula: means have an error of about one standard deviation."""
    rng = np.random.default_rng(0)
    X = np.c_[rng.normal(3.0, 7.0, size=(400, 2)), rng.integers(0, 2, 400)]
    record = imputation.measure((X, 30), imputation.mean, 0)
    gaps = imputation.blanked(X, 30, 0)
    filled = [X[~gaps[:, j], j].mean() for j in range(2)]
    expected = np.mean(
        [np.sqrt(((X[gaps[:, j], j] - filled[j]) ** 2).mean()) / X[:, j].std() for j in range(2)]
    )
    assert record["error"] == pytest.approx(expected, abs=1e-4)
    assert 0.3 < record["falsely_classified"] < 0.7
    assert "covered" not in record


def test_ranks(tmp_path):
    lines = [
        f'{{"version": "{version}", "set": "iris 10", "method": "{method}", "seed": 0, '
        f'"error": {error}, "falsely_classified": null}}'
        for version, method, error in (("peer 1", "mean", 0.9), ("abc", "default", 0.5))
    ]
    (tmp_path / "imputation.jsonl").write_text("\n".join(lines) + "\n")
    text = suite_page.ranks(tmp_path)
    assert "| mean | peer 1 | 2.000 |" in text and "| default | skanneal abc | 1.000 |" in text


def test_shares_of_pooled_intervals(tmp_path):
    """Of two seeds together, of the last version of a set and method; the default beside rivals,
    and without gaps."""
    lines = [
        f'{{"version": "{version}", "set": "{name}", "method": "{method}", "seed": {seed}, '
        f'"n_tables": 25, "between": [2, 1, {b}], "squares": [1, 1, 1], '
        f'"covered": [{c}, 25, 25], "covered_whole": [25, 25, 24]}}'
        for version, name, method, seed, b, c in (
            ("old", "normal MAR", "default", 0, 9, 0),
            ("old", "heavy MAR", "default", 0, 1, 25),
            ("new", "normal MAR", "default", 0, 1, 25),
            ("new", "normal MAR", "default", 1, 2, 20),
            ("new", "normal MAR", "mixture", 0, 9, 0),
            ("rival 1.2", "normal MAR", "miceforest", 0, 1, 15),
        )
    ]
    (tmp_path / "pooled.jsonl").write_text("\n".join(lines) + "\n")
    text = suite_page.pooled(tmp_path)
    assert "| normal MAR | no gaps |  | 50 | 1.00 | 1.00 | 0.96 |  |  |  |" in text
    ours = "| 50 | 0.90 | 1.00 | 1.00 | 2.00 | 1.00 | 1.50 |"
    assert f"| normal MAR | default | skanneal new {ours}" in text
    theirs = "| 25 | 0.60 | 1.00 | 1.00 | 2.00 | 1.00 | 1.00 |"
    assert f"| normal MAR | miceforest | rival 1.2 {theirs}" in text
    assert "| heavy MAR | default | skanneal old | 25 | 1.00 | 1.00 | 1.00 | 2.00 |" in text
    assert text.count("normal MAR") == 3


@pytest.mark.parametrize("name", drawn_fills.sets(None))
def test_scores_of_drawn_fills(name):
    """Of what is right, and of draws that are one standard deviation above and below it."""
    law, gaps_of = drawn_fills.sets(None)[name]
    rng = np.random.default_rng(0)
    frame = drawn_fills.table(*law(rng))
    gaps = drawn_fills.blanked(frame, gaps_of == "MCAR", rng)
    assert not gaps[:, 0].any() and abs(gaps[:, 1:].mean() - drawn_fills.GAPS) < 0.05
    large = frame["x0"] > frame["x0"].median()
    assert (gaps[large].mean() > 1.5 * gaps[~large].mean()) == (gaps_of == "MAR")
    right = drawn_fills.scores(frame, gaps, [frame] * 20)
    assert right == {"energy": 0.0, "error": 0.0, "wrong": 0.0, "covered": 1.0}
    only = np.zeros_like(gaps)
    only[:, 1] = True
    apart = [frame.assign(x1=frame["x1"] + sign * frame["x1"].std()) for sign in (-1, 1)]
    found = drawn_fills.scores(frame, only | (gaps & (np.arange(8) > 4)), apart)
    expected = 1.0 - 0.5 * 2.0  # of two draws that are two apart
    assert found["energy"] == pytest.approx(expected) and found["wrong"] == 0.0
    wrong = [frame.assign(c0=frame["c0"].map({"a": "b", "b": "a"}))] * 20
    only[:, 5], only[:, 1] = True, False
    found = drawn_fills.scores(frame, only | (gaps & (np.arange(8) == 1)), wrong)
    assert found["wrong"] == 1.0 and found["energy"] == pytest.approx(1.0)


def test_widths_of_intervals():
    values = np.repeat([0.0, 1.0, 4.0, 5.0], [5, 6, 2, 7])
    assert decisions.widths(values, 0.5, np.array([1.0, 4.0])).tolist() == [0.5, 0.5]
    found = decisions.widths(values, None, np.array([0.0, 1.0, 5.0, 4.0]))
    np.testing.assert_array_equal(found, [1.0, 2.0, 1.0, np.nan])


def test_decisions_about_a_table(tmp_path):
    """Rounded numbers, atoms, levels and a constant; then a density beyond what rounding allows."""
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=400), rng.integers(0, 3, 400), np.ones(400)])
    X = np.column_stack([X, np.where(rng.random(400) < 0.5, 0.0, rng.normal(5.0, size=400))])
    X[:, 0] = X[:, 0].round(1)
    np.savez(tmp_path / "table.npz", X=X)
    record = decisions.measure(tmp_path / "table.npz", decisions.default, 0)
    families = {"normal": [0], "categorical": [1], "constant": [2], "semi_continuous": [3]}
    assert record["families"] == families and record["rounding"] == {"0": 0.1}
    assert record["atoms"]["3"]["values"] == [0.0] and record["log_interval"] < 0.33
    assert record["why"]["1"] == "3 values"

    def as_it_stands(seed):
        return decisions.default(seed).set_params(rounding=None)

    X[:, 0] = np.where(np.arange(400) % 2, np.exp(np.rint(2 * X[:, 0])), X[:, 0])
    np.savez(tmp_path / "table.npz", X=X)
    assert decisions.measure(tmp_path / "table.npz", as_it_stands, 0)["log_interval"] > 1.0


def test_each_cell_has_one_key():
    for suite in (
        clustering.SUITE,
        outliers.SUITE,
        imputation.SUITE,
        decisions.SUITE,
        drawn_fills.SUITE,
    ):
        assert isinstance(suite, Suite)
        names = [name for of in suite.methods.values() for name in of]
        assert len(names) == len(set(names))
    assert len(set(KEYS)) == 4


def test_a_rule_is_compared_with_fits_of_its_commit(tmp_path):
    """A later commit, of which there are fewer fits, changes nothing in what was measured."""
    cells = [
        (version, name, method, seed, score)
        for name, width in (("overlapping", 2), ("separated", 4))
        for version, method, seed, score in (
            ("one", "today", 0, 3.0 * width),
            ("one", "no_waiting", 0, 1.0 * width),
            ("two", "today", 1, 9.0 * width),
        )
    ]
    (tmp_path / "ablation.jsonl").write_text(
        "".join(
            f'{{"version": "{version}", "set": "{name}", "method": "{method}", "seed": {seed}, '
            f'"score": {score}, "fit_seconds": {2.0 if method == "today" else 3.0}}}\n'
            for version, name, method, seed, score in cells
        )
    )
    text = ablation_page.table(tmp_path)
    assert "+2000.00 ± 0.00" in text and "| 1.50 | 2, 2 |" in text


def test_stated_numbers_of_clusters_are_compared_with_the_true_ones():
    """The last probability is that of more, however many these are; one of 0 says nothing."""
    said = [[0.0, 0.8, 0.2], [0.0, 0.8, 0.2], [0.0, 0.2, 0.6, 0.15, 0.05]]
    bins = list(number_of_clusters.reliability(said, [1, 5, 3]))
    assert [n for _, _, n in bins] == [1, 4, 1, 2]
    np.testing.assert_allclose([mean for mean, _, _ in bins], [0.05, 0.1875, 0.6, 0.8])
    np.testing.assert_allclose([share for _, share, _ in bins], [0.0, 0.5, 0.0, 0.5])


def test_the_yardstick_of_numbers_knows_the_family():
    X = np.random.default_rng(0).normal(size=(300, 2)) + 9.0 * (np.arange(300) % 3)[:, None]
    assert number_of_clusters.by_bic(X, 0).argmax() == 2
