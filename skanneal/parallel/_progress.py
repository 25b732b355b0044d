"""What a chain says of itself while it runs: lines to read, and tasks of scikit-learn's callbacks.

The callbacks' contexts are handed in from outside: here is nothing of scikit-learn's.
"""

# SPDX-License-Identifier: BSD-3-Clause

import sys

PARTS = 20  # tasks that callbacks see of a chain


class Progress:
    """How far one chain has come.

    Calling it with a share of the chain's work tells the callbacks, and returns whether one of
    them asks the fit to stop.

    Parameters
    ----------
    number : int, default=0
        Of the chain.
    verbose : int, default=0
        Above 0: print a line per stage.
    task : sklearn.callback.CallbackContext or None, default=None
        Of all chains; the chain's own is made under it. None if there are no callbacks.
    estimator : estimator or None, default=None
        Handed to the callbacks.

    Examples
    --------
    >>> from skanneal.parallel import Progress
    >>> progress = Progress(number=2, verbose=1)
    >>> progress(0.5)
    False
    >>> progress.say("all rows are in")
    chain 2: all rows are in
    """

    def __init__(self, number=0, verbose=0, task=None, estimator=None):
        self.number, self.verbose = number, verbose
        self._all_chains, self._estimator = task, estimator
        self._own, self._done, self._stops = None, 0, False

    def __call__(self, share):
        if self._all_chains is None:
            return False
        if self._own is None:
            self._own = self._begun(self._all_chains, "chain", self.number, PARTS)
        while self._done < min(int(share * PARTS), PARTS):
            self._done += 1
            self._ended(self._begun(self._own, "part"))
        return self._stops

    def end(self):
        """Note that the chain ends, however far it has come."""
        if self._own is not None:
            self._ended(self._own)
            self._own = self._all_chains = None
        return self._stops

    def say(self, text):
        """Print a line if lines are wanted."""
        if self.verbose:
            say(f"chain {self.number}: {text}")

    def _begun(self, parent, name, number=None, n_parts=0):
        task = parent.subcontext(name, task_id=number, max_subtasks=n_parts)
        return task.call_on_fit_task_begin(estimator=self._estimator)

    def _ended(self, task):
        self._stops |= task.call_on_fit_task_end(estimator=self._estimator)


def say(line):
    """Print a line in one piece: threads and processes print beside each other."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()
