"""Which tasks are under way, and what the others have returned."""

# SPDX-License-Identifier: BSD-3-Clause

import threading
from pathlib import Path


class Ledger:
    """Count the tasks that are under way, and keep the results by task number.

    Parameters
    ----------
    folder : str or Path, optional
        Where other processes leave a file for each task that they begin.
    """

    def __init__(self, folder=None):
        self.results = {}
        self.n_running = 0  # in this process
        self.changed = threading.Condition()
        self.folder = None if folder is None else Path(folder)

    def __reduce__(self):
        # Locks cannot travel: another process gets a ledger of its own, which nobody reads.
        return Ledger, (self.folder,)

    def begin(self, i, stop):
        """Count task i in, unless it is too late to begin."""
        with self.changed:
            if stop.asked:
                return False
            self.n_running += 1
        if self.folder is not None:
            (self.folder / str(i)).touch()
        return True

    def end(self):
        """Count a task out."""
        with self.changed:
            self.n_running -= 1
            self.changed.notify_all()

    @property
    def is_idle(self):
        """Whether no task is under way, here or in another process that leaves files.

        Without the lock: a signal handler asks while this very thread may hold it.
        """
        return self.n_running == 0 and not self.unreturned

    @property
    def begun(self):
        """Tasks that other processes have begun, as far as they leave files."""
        if self.folder is None:
            return set()
        return {int(path.name) for path in self.folder.iterdir() if path.name.isdigit()}

    @property
    def unreturned(self):
        """Those of them that have not returned."""
        return self.begun - self.results.keys()

    def join(self):
        """Wait for the tasks under way in this process; to be called once the stop flag is set."""
        with self.changed:
            self.changed.wait_for(lambda: self.n_running == 0)
