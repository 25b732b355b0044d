"""scikit-learn's callbacks (`ProgressBar` and others), which it has from version 1.9 on.

They are experimental and may change. So no other module knows more about them than that a task has
subtasks, which begin and end. The subtasks of a fit are rounds, those of a round are chains, and
those of a chain are parts of equal size (see `Progress`).
"""

# SPDX-License-Identifier: BSD-3-Clause

import contextlib

from sklearn.base import clone

from ..parallel import Progress

try:
    from sklearn.callback import CallbackSupportMixin
except ImportError:  # before 1.9

    class CallbackSupportMixin:
        """An estimator that cannot have callbacks."""


def begin_fit(estimator, n_rounds=1):
    """Begin the task of a fit, if anybody follows it."""
    if has_callbacks(estimator):
        task = estimator._init_callback_context(max_subtasks=n_rounds)
        task.call_on_fit_task_begin(estimator=estimator)


def end_fit(estimator):
    """End the task of a fit whose attributes are set."""
    task = getattr(estimator, "_callback_fit_ctx", None)
    if task is not None:
        task.call_on_fit_task_end(estimator=estimator, reconstruction_attributes={})


def has_callbacks(estimator):
    """Whether the estimator has callbacks of its own, or from the one that it is part of."""
    return bool(getattr(estimator, "_skl_callbacks", ()))


class Round:
    """The chains of a fit, which run side by side, once.

    It is a context manager. A chain may go to another process with its `Progress`, which takes only
    the parameters of the estimator along.

    Attributes
    ----------
    stops : bool
        Whether a callback asked, at the end, that no other round follows.
    """

    def __init__(self, estimator, n_chains):
        self._estimator, self._verbose, self.stops = estimator, estimator.verbose, False
        self._task, self._sent, self._n_chains = None, None, n_chains

    def __enter__(self):
        fit = getattr(self._estimator, "_callback_fit_ctx", None)
        if fit is not None:
            self._sent = clone(self._estimator)
            self._task = fit.subcontext(
                "round", max_subtasks=self._n_chains, sequential_subtasks=False
            ).call_on_fit_task_begin(estimator=self._estimator)
        return self

    def __exit__(self, *error):
        if self._task is not None and error == (None, None, None):
            self.stops = self._task.call_on_fit_task_end(estimator=self._estimator)

    def chain(self, number):
        """Return the Progress of a chain."""
        return Progress(number, self._verbose, self._task, self._sent)

    @property
    def all_chains(self):
        """What `sample` tells how far its chains have come; None without callbacks."""
        chains = [self.chain(number) for number in range(self._n_chains)]
        return AllChains(chains) if self._task is not None else None


class AllChains:
    """Tells each chain's Progress, and ends it when the chain is through."""

    def __init__(self, chains):
        self.chains = chains

    def __call__(self, number, share):
        chain = self.chains[number]
        return chain(share) or (share >= 1.0 and chain.end())


@contextlib.contextmanager
def handed_on(estimator, inner):
    """Let the callbacks of an estimator follow the fit of the one inside of it."""
    if not has_callbacks(estimator):
        yield
        return
    fit = estimator._init_callback_context(max_subtasks=1)
    fit.call_on_fit_task_begin(estimator=estimator)
    task = fit.subcontext("estimator").call_on_fit_task_begin(estimator=estimator)
    with task.propagate_callback_context(inner):
        yield
    task.call_on_fit_task_end(estimator=estimator)
    fit.call_on_fit_task_end(estimator=estimator)
