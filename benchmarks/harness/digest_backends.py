"""joblib's backends on this machine, for `digest_cases.py`."""

import contextlib
import importlib.util
import os

import joblib


@contextlib.contextmanager
def on_dask():
    import distributed

    quiet = {"dashboard_address": None, "silence_logs": 50, "protocol": "tcp"}
    with (
        distributed.LocalCluster(n_workers=1, threads_per_worker=1, **quiet) as cluster,
        distributed.Client(cluster),
        joblib.parallel_config("dask"),
    ):
        yield


@contextlib.contextmanager
def on_ray():
    import ray
    from ray.util.joblib import register_ray

    register_ray()
    path = {"env_vars": {"PYTHONPATH": os.environ["PYTHONPATH"]}}
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, runtime_env=path)
    try:
        with joblib.parallel_config("ray"):
            yield
    finally:
        ray.shutdown()


BACKENDS = {
    "threads": lambda: joblib.parallel_config("threading", n_jobs=2),
    "processes": lambda: joblib.parallel_config("loky", n_jobs=2),
    "dask": on_dask,
    "ray": on_ray,
}
PACKAGES = {"dask": "distributed", "ray": "ray"}  # without which a backend has no case


def absent_backends():
    packages = PACKAGES.items()
    return [name for name, package in packages if importlib.util.find_spec(package) is None]
