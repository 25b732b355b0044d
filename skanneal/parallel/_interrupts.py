"""What SIGINT does while tasks run, and between them."""

# SPDX-License-Identifier: BSD-3-Clause

import contextlib
import signal
import threading


@contextlib.contextmanager
def interrupt_sets(stop, ledger):
    """Let the first SIGINT set the stop flag instead of raising KeyboardInterrupt.

    The exception can be raised between any two bytecodes of a task in the main thread, and would
    leave its state torn. Nothing is changed outside of the main thread, where signals cannot be
    handled, nor where the handler is not Python's own: somebody wants it.

    Parameters
    ----------
    stop : StopFlag
    ledger : Ledger
        Without a task under way that sees the flag, KeyboardInterrupt is raised after all.
    """
    before = signal.getsignal(signal.SIGINT)
    ours = before is signal.default_int_handler or isinstance(before, InterruptNote)
    if not _in_main_thread() or not ours:
        yield
        return

    def set_flag(signum, frame):
        signal.signal(signal.SIGINT, signal.default_int_handler)
        stop.set()
        # With no such task the work is done in processes that the flag does not reach.
        if ledger.is_idle:
            raise KeyboardInterrupt

    signal.signal(signal.SIGINT, set_flag)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


class InterruptNote:
    """Note the first SIGINT between tasks instead of raising what would tear a state.

    This is a context manager; inside of it, `run_tasks` handles the signal as it always does.

    Attributes
    ----------
    noted : bool
        Whether there was an interrupt between tasks.

    Examples
    --------
    >>> import signal
    >>> from skanneal.parallel import InterruptNote
    >>> with InterruptNote() as note:
    ...     signal.raise_signal(signal.SIGINT)
    >>> note.noted
    True
    """

    def __init__(self):
        self.noted = False

    def __call__(self, signum, frame):
        signal.signal(signal.SIGINT, signal.default_int_handler)
        self.noted = True

    def __enter__(self):
        is_pythons = signal.getsignal(signal.SIGINT) is signal.default_int_handler
        if _in_main_thread() and is_pythons:
            signal.signal(signal.SIGINT, self)
        return self

    def __exit__(self, *error):
        if signal.getsignal(signal.SIGINT) is self:
            signal.signal(signal.SIGINT, signal.default_int_handler)


def _in_main_thread():
    return threading.current_thread() is threading.main_thread()
