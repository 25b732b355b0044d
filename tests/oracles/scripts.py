"""A script in a process of its own, and interrupts that come where they should, however slow."""

import contextlib
import os
import signal
import subprocess
import sys
import threading
from collections import Counter
from unittest import mock

from skanneal.chains import Chain
from skanneal.estimators import _base_chains
from skanneal.sharded._shards import ShardPool

UNDER_WAY = 3  # segments of a chain


def run_script(text, folder, timeout=120):
    script = folder / "script.py"
    script.write_text(text)
    return subprocess.run(
        [sys.executable, script],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=timeout,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
    )


def interrupt_chains(n_threads):
    """Patch the package: as soon as chains in so many threads are under way, an interrupt comes.

    What runs before a fit's chains, such as the choice of families, does not count.
    """
    make, run = Chain.make_moves, _base_chains.run_chain
    under_way, lock = Counter(), threading.Lock()

    def begun(*arguments, **named):
        under_way[threading.get_ident()] += 0
        return run(*arguments, **named)

    def made(self, *arguments):
        whole = make(self, *arguments)
        with lock:
            if (own := threading.get_ident()) in under_way:
                under_way[own] += 1
            if sum(n >= UNDER_WAY for n in under_way.values()) == n_threads:
                under_way.clear()
                os.kill(os.getpid(), signal.SIGINT)
        return whole

    return _patched((_base_chains, "run_chain", begun), (Chain, "make_moves", made))


def interrupt_shards(after):
    """Patch the package: an interrupt comes within the segment that follows so many."""
    run, n_runs = ShardPool.run, iter(range(after + 1))

    def interrupted(self, function, tasks, seconds=None):
        def told(*arguments, stop):
            os.kill(os.getpid(), signal.SIGINT)
            return function(*arguments, stop=stop)

        return run(self, told if next(n_runs, None) == after else function, tasks, seconds)

    return _patched((ShardPool, "run", interrupted))


def _patched(*patches):
    """The patches as one context."""
    stack = contextlib.ExitStack()
    for where, name, new in patches:
        stack.enter_context(mock.patch.object(where, name, new))
    return stack
