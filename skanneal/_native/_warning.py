"""Warnings, at the line of the user's that asked for the work."""

# SPDX-License-Identifier: BSD-3-Clause

import concurrent.futures
import multiprocessing
import sys
import threading
import warnings
from itertools import takewhile
from pathlib import Path

import joblib
import sklearn.base


def _folder(module):
    """Where a package's files are."""
    return str(Path(module.__file__).parent) + "/"


OWN = str(Path(__file__).parents[1]) + "/"
DECORATOR = sklearn.base.__file__  # of `fit`, between a user and an estimator in any case
# What calls an estimator on the user's behalf: pipelines, cross-validation, workers.
BETWEEN = (
    *map(_folder, (sklearn, joblib, multiprocessing, concurrent.futures)),
    threading.__file__,
    "<frozen ",  # a worker's own start
)
_said = set()  # what was said within other estimators' work: (text, category, file, line)


def warn(message, category=UserWarning):
    """Warn, at the line outside of the package, of scikit-learn and of joblib that led here.

    No caller counts its distance from that line, so a warning has the same place whether its
    estimator is fitted by itself, within another one, or in a pipeline. In a worker process no line
    of the user's is on the stack: the place is then the nearest one outside of the package.

    Python's default is to show a text once at a place, but it forgets what it has shown whenever
    filters change, and scikit-learn changes them for each task of a pool. What fits that it asked
    for had to say, as in a cross-validation, is remembered here instead.

    Parameters
    ----------
    message : str
        Without figures that vary from fit to fit.
    category : type, default=UserWarning
    """
    outside = [frame for frame in _callers() if not _file(frame).startswith(OWN)]
    between = list(takewhile(lambda frame: _file(frame).startswith(BETWEEN), outside))
    frame = (outside[len(between) :] or outside)[0]
    module, place = frame.f_globals.get("__name__", ""), (_file(frame), frame.f_lineno)
    if any(_file(caller) != DECORATOR for caller in between):
        said = (message, category, *place)
        if said in _said and _action(message, category, module, frame.f_lineno) == "default":
            return
        _said.add(said)
    registry = frame.f_globals.setdefault("__warningregistry__", {})
    warnings.warn_explicit(message, category, *place, module, registry)


def _callers():
    """The frames below this module's, the nearest first."""
    frame = sys._getframe(2)
    while frame is not None:
        yield frame
        frame = frame.f_back


def _file(frame):
    return frame.f_code.co_filename


def _action(message, category, module, line):
    """What Python's filters do with a warning: the first that matches decides."""
    for action, text, of, name, at in warnings.filters:
        matches = _matches(text, message) and _matches(name, module) and at in (0, line)
        if matches and issubclass(category, of):
            return action
    return "default"


def _matches(pattern, text):
    """Whether a filter's part, nothing, a string or a compiled pattern, fits."""
    if pattern is None or isinstance(pattern, str):
        return pattern in (None, text)
    return pattern.match(text) is not None
