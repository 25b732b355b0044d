"""The gallery's examples run, and say no warning to a reader."""

import os
import subprocess
import sys

import pytest

from oracles.places import ROOT

EXAMPLES = ROOT / "examples"


@pytest.mark.slow
@pytest.mark.parametrize("example", sorted(EXAMPLES.glob("plot_*.py")), ids=lambda path: path.stem)
def test_example_runs_without_a_warning(example, tmp_path):
    """Warnings to a user are of the class UserWarning, as scikit-learn's ConvergenceWarning is."""
    pytest.importorskip("matplotlib", reason="the examples draw")
    # That a figure is not shown is said by the backend of a process without a screen.
    quiet = "ignore:FigureCanvasAgg is non-interactive:UserWarning"
    command = [sys.executable, "-W", "error::UserWarning", "-W", quiet, str(example)]
    options = {"cwd": tmp_path, "env": os.environ | {"MPLBACKEND": "Agg"}}
    done = subprocess.run(command, capture_output=True, text=True, **options)
    assert done.returncode == 0, done.stderr
