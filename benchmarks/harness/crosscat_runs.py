"""What the crosscat benchmarks share: fits and what is told of them, fresh processes, verdicts."""

import multiprocessing
import resource
import time
import warnings

import numpy as np
from sklearn.exceptions import ConvergenceWarning

import skanneal
from skanneal.schedules import resolve_schedule


def estimator(name, **parameters):
    """The estimator of that name with parameters.

    Rounded numbers stay as they are: the figures of others are densities on repeated values.
    """
    return getattr(skanneal, name)(rounding=None, **parameters)


def as_published(name, **parameters):
    """The same without what CrossCat has not: links between views."""
    published = {"linked_views": False} if name == "CrossCatPY" else {}
    return estimator(name, **(published | parameters))


def schedule_of(name, n_sweeps=None, max_time=None):
    """The named schedule with other sweeps or a time limit, where given."""
    changes = {"n_sweeps": n_sweeps, "max_time": max_time}
    return resolve_schedule(name).set_params(
        **{key: value for key, value in changes.items() if value is not None}
    )


def fitted(model, X, family="normal", **options):
    """Fit, with options; the seconds, sweeps and views of it. Columns of floats are numbers, of
    this family."""
    model.set_params(families={family: X.select_dtypes("float").columns.tolist()})
    wall, cpu = time.perf_counter(), time.process_time()
    with warnings.catch_warnings():
        # Short budgets do not converge: that is what is shown.
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X, **options)
    return {
        "seconds": time.perf_counter() - wall,
        "cpu_seconds": time.process_time() - cpu,
        "sweeps": model.n_sweeps_,
        "views": float(np.mean([n_views(chain[-1]) for chain in model.draws_])),
    }


def n_views(draw):
    """Views of a draw; 1 of a single mixture."""
    return len(np.unique(view_labels(draw))) if hasattr(draw, "view_labels") else 1


def view_labels(draw):
    return np.asarray(draw.view_labels)


def spread(values):
    """Standard deviation, or nan of a single value."""
    return float(np.std(values, ddof=1)) if len(values) > 1 else np.nan


def in_fresh_process(function, *arguments):
    """The dict that a function returns in a process of its own, with that process's peak memory.

    "start_mb" is the peak when only the modules were loaded, "peak_mb" that of the whole process.
    A child's peak counts from its parent's: call this before anything large is loaded.
    """
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_send, args=(function, arguments, theirs))
    process.start()
    theirs.close()  # so that a process that dies ends the wait
    record = ours.recv()
    process.join()
    return record


def _send(function, arguments, pipe):
    start = {"start_mb": peak_mb()}
    pipe.send(function(*arguments) | start | {"peak_mb": peak_mb()})


def peak_mb():
    """Peak memory of this process in MB (10^6 bytes)."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6


def verdict(*passed):
    """A cell of a table: whether all of it passed."""
    return "pass" if all(passed) else "FAIL"


def show(rows, digits=4):
    """Print dicts of one set of keys as an aligned table."""
    cells = [[_text(value, digits) for value in row.values()] for row in rows]
    names = list(rows[0])
    widths = [max(len(line[i]) for line in [names, *cells]) for i in range(len(names))]
    for line in [names, *cells]:
        print("  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)))


def _text(value, digits):
    if isinstance(value, float):
        return "" if np.isnan(value) else f"{value:.{digits}g}"
    return str(value)
