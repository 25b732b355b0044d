"""Chains whose time limits count processor seconds of this process, not the wall clock's."""

import contextlib
import threading
import time
from unittest import mock

SHORTEST = 1e-3  # seconds between two looks at the processor's clock


class ProcessorTimer(threading.Timer):
    """Calls its function once the process has used so many more processor seconds."""

    def __init__(self, interval, function, *arguments):
        super().__init__(interval, function, *arguments)
        self.end = time.process_time() + interval

    def run(self):
        """Sleep for as long as it must take at least, again and again."""
        while (left := self.end - time.process_time()) > 0:
            if self.finished.wait(max(left, SHORTEST)):
                return
        if not self.finished.is_set():
            self.function(*self.args, **self.kwargs)


@contextlib.contextmanager
def processor_clock():
    """In this context, fits of one thread are timed and limited by processor seconds."""
    with (
        mock.patch.object(time, "perf_counter", time.process_time),
        mock.patch.object(threading, "Timer", ProcessorTimer),
    ):
        yield
