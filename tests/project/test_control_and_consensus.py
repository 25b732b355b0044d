"""The benchmarks of interrupts, time limits and consensus partitions: each cell is run once."""

import json
import sys
from pathlib import Path

import pytest

from fits import consensus, control


def lines_after(module, monkeypatch, folder, *arguments):
    monkeypatch.setattr(sys, "argv", ["", "--results", str(folder), *arguments])
    module.main()
    path = folder / f"{Path(module.__file__).stem}.jsonl"
    return list(map(json.loads, path.read_text().splitlines()))


@pytest.fixture
def measured(monkeypatch):
    """The cells that `control` measures, with a measurement that takes no time."""
    cells = []

    def measure(*cell):
        cells.append(cell)
        return {"late": 0.25 * len(cells), "kept": 1, "begun": 2, "load": 0.0}

    monkeypatch.setattr(control, "measure", measure)
    return cells


def test_control_goes_on_where_it_was_cut(measured, monkeypatch, tmp_path, capsys):
    chosen = "--estimators", "TemperedGPRegressor"
    with pytest.raises(SystemExit, match="goes on from here"):
        lines_after(control, monkeypatch, tmp_path, *chosen, "--minutes", "0")
    assert not measured
    lines = lines_after(control, monkeypatch, tmp_path, *chosen)
    cells = [tuple(line[key] for key in control.KEYS) for line in lines]
    assert len(set(cells)) == len(measured) == 12
    assert {line["rows"] for line in lines} == {100}
    printed = capsys.readouterr().out
    assert "interrupt TemperedGPRegressor          0.875   1.500    6  6 of 12" in printed
    assert "max_time loky 2 4                      3.000   3.000    1  1 of 2" in printed
    assert lines_after(control, monkeypatch, tmp_path, *chosen) == lines
    assert len(measured) == 12
    lines_after(control, monkeypatch, tmp_path, *chosen, "--seconds", "1")  # other cells
    assert len(measured) == 24


def test_a_fit_is_interrupted_and_limited():
    for what in control.MEASURES:
        record = control.measure(what, "AnnealedDPMixture", "sequential", 1, 1, 3.0, 40)
        assert record["begun"] == record["kept"] == 1 and -1.5 < record["late"] < 30


@pytest.mark.slow  # it starts a process
def test_consensus_is_measured_once(monkeypatch, tmp_path, capsys):
    arguments = ("--rows", "60", "--draws", "5", "--overlaps", "little", "--losses", "vi")
    (line,) = lines_after(consensus, monkeypatch, tmp_path, *arguments)
    assert line["expected_loss"] <= line["best_draws_loss"] and line["rows"] == 60
    monkeypatch.setattr(consensus, "ProcessPoolExecutor", None)  # a second run needs none
    assert lines_after(consensus, monkeypatch, tmp_path, *arguments) == [line]
    one, two = (out for out in capsys.readouterr().out.split("overlap")[1:])
    assert one == two


def test_what_costs_too_much_or_is_worse_is_told():
    good = {"seconds": 9.0, "mebibytes": 900.0, "expected_loss": 1.0, "best_draws_loss": 1.0}
    assert consensus.is_good(good)
    for bad in ({"seconds": 11.0}, {"mebibytes": 1100.0}, {"expected_loss": 1.1}):
        assert not consensus.is_good(good | bad)
