"""Which tasks are under way, and what the others have returned."""

# SPDX-License-Identifier: BSD-3-Clause

import threading


class Ledger:
    """Count the tasks of this process that are under way, and keep the results by task number."""

    def __init__(self):
        self.results = {}
        self.n_running = 0
        self.changed = threading.Condition()

    def __reduce__(self):
        # Locks cannot travel: another process gets a ledger of its own, which nobody reads.
        return Ledger, ()

    def begin(self, stop):
        """Count a task in, unless it is too late to begin."""
        with self.changed:
            if stop.asked:
                return False
            self.n_running += 1
            return True

    def end(self):
        """Count a task out."""
        with self.changed:
            self.n_running -= 1
            self.changed.notify_all()

    def join(self):
        """Wait for the tasks under way; to be called once the stop flag is set."""
        with self.changed:
            self.changed.wait_for(lambda: self.n_running == 0)
