"""Progress: lines of `verbose`, and the tasks that scikit-learn's callbacks are told of."""

import pickle
import re

import joblib
import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV

import skanneal
from oracles.public_estimators import names, quick
from skanneal.estimators import _rounds
from skanneal.parallel import Progress
from skanneal.parallel._progress import PARTS
from skanneal.tempering import GaussianMeanTarget, sample

callback = pytest.importorskip("sklearn.callback", reason="scikit-learn has them from 1.9 on")

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def rows(n_rows=60):
    side = np.where(np.arange(n_rows) % 2, 4.0, -4.0)
    return side[:, None] + np.random.default_rng(0).normal(size=(n_rows, 2))


def of_two_chains(name, **given):
    """A quick estimator of two chains, or with one inside."""
    model = quick(name, **given)
    if "estimator" in model.get_params(deep=False):
        return model.set_params(estimator__n_chains=2)
    if name == "AcceleratedDPMixture":
        model.set_params(schedule__n_exact=30)
    return model.set_params(n_chains=2)


class Notes:
    """A callback that notes the tasks by the names on their way, in the order of their ends.

    In other processes it is a copy, so that it writes to a file. It asks to stop at the end of the
    task named `stops_at`.
    """

    max_propagation_depth = None

    def __init__(self, path, stops_at=None):
        self.path, self.stops_at = str(path), stops_at

    def setup(self, estimator, context):
        self._write("setup")

    def teardown(self, estimator, context):
        self._write("teardown")

    def on_fit_task_begin(self, estimator, context):
        pass

    def on_fit_task_end(self, estimator, context):
        way, task = [], context
        while task is not None:
            number = "" if task.task_name in ("part", "fit") else f" {task.task_id}"
            way.insert(0, task.task_name + number)
            task = task.parent
        self._write("/".join(way))
        return self.stops_at in (way[-1], f"{way[-1]} {context.task_id}")

    def _write(self, line):
        with open(self.path, "a") as file:
            file.write(line + "\n")

    def lines(self):
        with open(self.path) as file:
            return file.read().splitlines()


@pytest.mark.parametrize("name", names())
@pytest.mark.few(4)
def test_every_estimator_tells_its_callbacks(name, tmp_path):
    notes = Notes(tmp_path / "notes")
    model = of_two_chains(name).set_callbacks(notes)
    model.fit(rows(), rows()[:, 0])
    lines = notes.lines()
    assert (lines[0], *lines[-2:]) == ("setup", "fit", "teardown")
    for chain in (0, 1):
        (of_chain,) = {line for line in lines if line.endswith(f"/chain {chain}")}
        assert lines.count(of_chain + "/part") == PARTS
        assert lines.index(of_chain) > max(
            i for i, line in enumerate(lines) if line == of_chain + "/part"
        )
    assert any(line.endswith("round 0") for line in lines)
    assert not [attribute for attribute in vars(model) if "callback_fit" in attribute]


@pytest.mark.parametrize("name", ["AnnealedDPMixture", "TemperedGaussianMean"])
@pytest.mark.slow
def test_processes_tell_the_same_and_bits_do_not_change(name, tmp_path):
    X, told = rows(), []
    plain = of_two_chains(name).fit(X)
    for backend in ("threading", "loky"):
        notes = Notes(tmp_path / backend)
        model = of_two_chains(name, n_jobs=2).set_callbacks(notes)
        with joblib.parallel_config(backend):
            model.fit(X)
        told.append(sorted(notes.lines()))
        assert np.array_equal(model.trace_["log_joint"], plain.trace_["log_joint"], equal_nan=True)
    assert told[0] == told[1]


@pytest.mark.parametrize("backend", ["threading", pytest.param("loky", marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    "name", ["AnnealedDPMixture", "AcceleratedDPMixture", "TemperedGaussianMean"]
)
def test_a_callback_can_stop_the_fit(name, backend, tmp_path):
    notes = Notes(tmp_path / "notes", stops_at="part 12")
    whole = of_two_chains(name).fit(rows())
    model = of_two_chains(name, n_jobs=2).set_callbacks(notes)
    with joblib.parallel_config(backend), pytest.warns(ConvergenceWarning, match="interrupted"):
        model.fit(rows())
    assert model.n_features_in_ == 2 and notes.lines()[-1] == "teardown"
    assert np.nanmin(model.trace_["sweeps"][:, -1]) < whole.trace_["sweeps"][0, -1]


@pytest.fixture
def two_rounds(monkeypatch):
    """A model of two chains that do not agree before the second round."""
    n_verdicts, real = [0], _rounds.judged

    def judged(*args):
        n_verdicts[0] += 1
        verdict = real(*args)
        verdict["convergence_"]["figures"]["r_hat of log_joint"]["agrees"] = n_verdicts[0] % 2 == 0
        return verdict | {"converged_": n_verdicts[0] % 2 == 0}

    monkeypatch.setattr(_rounds, "judged", judged)
    monkeypatch.setattr(_rounds, "most_sweeps", lambda *args: 400)
    return skanneal.AnnealedDPMixture(families="normal", n_chains=2, n_jobs=2, random_state=0)


def test_rounds_are_tasks_and_a_callback_can_end_them(two_rounds, tmp_path):
    model, X = two_rounds, rows()
    notes = Notes(tmp_path / "all")
    model.set_callbacks(notes).fit(X)
    ended = [line for line in notes.lines() if re.fullmatch(r"fit/round \d", line)]
    assert ended == ["fit/round 0", "fit/round 1", "fit/round 2"]
    for last in (0, 1):
        notes = Notes(tmp_path / str(last), stops_at=f"round {last}")
        with pytest.warns(ConvergenceWarning, match="interrupted"):
            model.set_callbacks(notes).fit(X)
        assert f"fit/round {last + 1}" not in notes.lines()


def test_an_error_ends_the_callbacks_too(tmp_path):
    notes = Notes(tmp_path / "notes")
    model = skanneal.AnnealedDPMixture(n_chains=1).set_callbacks(notes)
    with pytest.raises(ValueError, match="concentration"):
        model.set_params(concentration=-1.0).fit(rows())
    with pytest.raises(ValueError):
        model.set_params(concentration="infer").fit(np.full((3, 2), np.inf))
    assert notes.lines()[-2:] == ["setup", "teardown"]


def test_a_grid_search_hands_its_callbacks_on(tmp_path):
    notes = Notes(tmp_path / "notes")
    search = GridSearchCV(quick("AnnealedDPMixture"), {"thin": [1, 2]}, cv=2)
    search.set_callbacks(notes).fit(rows())
    assert sum(line.endswith("chain 0") for line in notes.lines()) == 5  # four fits and the refit


def test_without_callbacks_nothing_is_told():
    progress = Progress(3)
    assert progress(0.5) is False and progress.end() is False
    assert pickle.loads(pickle.dumps(progress)).number == 3


def test_sample_tells_of_its_chains():
    told = {0: [], 1: []}
    target = GaussianMeanTarget(rows())
    options = {"n_chains": 2, "n_draws": 20, "n_warmup": 10, "random_state": 0}
    result = sample(target, progress=lambda chain, share: told[chain].append(share), **options)
    assert result.draws.shape[1] == 20
    for shares in told.values():
        assert shares == sorted(shares) and shares[0] > 0 and shares[-1] == 1.0


# ------------------------------------------------------------------------------------------ lines
@pytest.mark.parametrize("name", [n for n in names() if hasattr(quick(n), "verbose")])
@pytest.mark.few(3)
def test_verbose_prints_a_line_per_stage_with_the_chain_named(name, capfd):
    model = of_two_chains(name, verbose=1, n_jobs=2)
    model.fit(rows(), rows()[:, 0])
    lines = capfd.readouterr().out.splitlines()
    of_chains = [line for line in lines if line.startswith("chain ")]
    assert all(re.match(r"chain [01]: \w[^:]* s: \w", line) for line in of_chains), lines
    for chain in (0, 1):
        assert 1 <= sum(line.startswith(f"chain {chain}: ") for line in of_chains) <= 3
    assert len(lines) - len(of_chains) <= 2
    assert model.set_params(verbose=0).fit(rows(), rows()[:, 0]) is model
    assert capfd.readouterr().out == ""


def test_rounds_say_whether_the_chains_agree(two_rounds, capfd):
    two_rounds.set_params(verbose=1).fit(rows())
    lines = capfd.readouterr().out.splitlines()
    first, second = [line for line in lines if line.startswith("round ")]
    assert re.match(r"round 1, .*: the chains do not agree: r_hat of log_joint \d", first)
    assert re.match(r"round 2, .*: the chains agree", second)
    # the schedule of each chain, then its draws in two rounds
    assert len(lines) == 2 + 2 * (2 + 1)
