"""Clusters on this machine for tests of joblib's backends, and ways to harm their workers."""

import contextlib
import os
import signal
import sys
import threading
import time
import warnings

import pytest

PATIENCE = 60.0  # seconds after which what should have happened counts as not happened


@contextlib.contextmanager
def dask_cluster(n_workers=2):
    """Worker processes of one thread each that speak TCP; for `joblib.parallel_config("dask")`.

    Yields the client.
    """
    distributed = pytest.importorskip("distributed", reason="needs dask[distributed]")
    with (
        distributed.LocalCluster(
            n_workers=n_workers,
            threads_per_worker=1,
            processes=True,
            protocol="tcp",
            dashboard_address=None,
            silence_logs=50,
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


@contextlib.contextmanager
def ray_cluster(num_cpus=2):
    """Ray, for `joblib.parallel_config("ray")`; its start takes several seconds."""
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        patch.setenv("RAY_AUTH_MODE", "disabled")
        ray = pytest.importorskip("ray", reason="needs ray")
        from ray.util.joblib import register_ray

        register_ray()
        # the workers import the tests' own modules
        environment = {"env_vars": {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}}
        ray.init(
            num_cpus=num_cpus,
            include_dashboard=False,
            log_to_driver=False,
            runtime_env=environment,
        )
        try:
            yield ray
        finally:
            ray.shutdown()


def kill_dask_worker(client):
    """End one of the cluster's processes, as if its machine were switched off."""
    os.kill(min(client.run(os.getpid).values()), signal.SIGKILL)


def die():
    """End this process in the same way."""
    os.kill(os.getpid(), signal.SIGKILL)


def divide():
    """An ordinary error."""
    return 1 // 0


def sleep():
    """Longer than anybody will wait."""
    time.sleep(PATIENCE)


class Mishap:
    """A segment's function that lets something happen to its process: always, or the first time.

    Otherwise it returns the sum of the rows. `once` is a path where the first time is noted.
    """

    def __init__(self, what, once=None):
        self.what, self.once = what, once

    def __call__(self, rows, stop):
        if self.once is None or self._is_first():
            self.what()
        return rows.sum()

    def _is_first(self):
        try:
            self.once.touch(exist_ok=False)
        except FileExistsError:
            return False
        return True


@contextlib.contextmanager
def interrupt_when(ready):
    """Send this process SIGINT, as Ctrl-C does, once `ready()` is true."""

    def interrupt():
        deadline = time.monotonic() + PATIENCE
        while not ready() and time.monotonic() < deadline:
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGINT)

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    thread = threading.Thread(target=interrupt)
    thread.start()
    try:
        yield
        thread.join()
    finally:
        signal.signal(signal.SIGINT, before)
