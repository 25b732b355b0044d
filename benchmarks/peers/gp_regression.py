"""A full posterior over hyperparameters beside the likeliest ones, on held-out rows.

    python benchmarks/peers/gp_regression.py           # about ten minutes, one core
    python benchmarks/peers/gp_regression.py --quick   # fewer splits and rows, a minute

TemperedGPRegressor with its defaults beside scikit-learn's GaussianProcessRegressor: the same
kernel (squared exponential, one length scale per column, amplitude, noise), y normalised, columns
standardised, 10 restarts of the optimiser over scikit-learn's default bounds.

Data: diabetes (442 rows, 10 columns) as scikit-learn bundles it; wine (178 rows), alcohol from the
other 12 measurements; iris (150 rows), the petals' width from the other 3; and rows simulated from
the model with hyperparameters drawn from its prior, N = 64, D = 8, each replicate with parameters
of its own and 200 held-out rows. Splits of the bundled sets are random, a quarter held out.

Per split: the mean log predictive density of the held-out rows in units of standardised y, and the
share of them inside the central 90 % interval (mean -+ 1.645 std for both). Tables give means over
the splits; "gain" is the mean difference of the log densities (ours minus scikit-learn's) with its
standard error over splits. Times are of fits, on one core.
"""

import argparse
import time
import warnings

import numpy as np
from scipy import stats
from sklearn.datasets import load_diabetes, load_iris, load_wine
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from skanneal import TemperedGPRegressor

HALF_WIDTH = stats.norm.ppf(0.95)
N_SPLITS = {"diabetes": 4, "wine": 8, "iris": 8, "simulated": 20}
QUICK_SPLITS = {"diabetes": 1, "wine": 2, "iris": 2, "simulated": 4}
QUICK_ROWS = 160  # of a bundled set


def simulated(seed, n_train=64, n_test=200, d=8):
    """Rows of the paper's model, its section 4.2: the coordinates spread like the length scales."""
    rng = np.random.default_rng([8, seed])
    lengths = np.exp(rng.normal(0.5, 1.0, d))
    signal, noise = rng.gamma(4.0, 1.0), rng.gamma(2.0, 0.5)
    X = rng.normal(size=(n_train + n_test, d)) * lengths.mean()
    Z = X / lengths
    squares = ((Z[:, None] - Z[None]) ** 2).sum(axis=2)
    K = signal**2 * np.exp(-0.5 * squares) + noise**2 * np.eye(len(X))
    y = np.linalg.cholesky(K) @ rng.normal(size=len(X))
    return X[:n_train], X[n_train:], y[:n_train], y[n_train:]


def splits(name, quick):
    """Training and held-out rows, one split after another."""
    n_splits = (QUICK_SPLITS if quick else N_SPLITS)[name]
    for seed in range(n_splits):
        if name == "simulated":
            yield simulated(seed)
            continue
        if name == "diabetes":
            X, y = load_diabetes(return_X_y=True)
        else:
            table = {"wine": load_wine, "iris": load_iris}[name]().data
            column = {"wine": 0, "iris": 3}[name]
            X, y = np.delete(table, column, axis=1), table[:, column]
        if quick:
            rows = np.random.default_rng(seed).permutation(len(X))[:QUICK_ROWS]
            X, y = X[rows], y[rows]
        yield train_test_split(X, y, test_size=0.25, random_state=seed)


def by_sklearn(X, y):
    d = X.shape[1]
    kernel = ConstantKernel() * RBF(np.ones(d)) + WhiteKernel()
    return GaussianProcessRegressor(
        kernel, alpha=0.0, n_restarts_optimizer=10, normalize_y=True, random_state=0
    ).fit(X, y)


def compare(split):
    """For scikit-learn and for us: log density, coverage, seconds."""
    X, X_test, y, y_test = split
    scaler = StandardScaler().fit(X)
    X, X_test = scaler.transform(X), scaler.transform(X_test)
    centre, scale = y.mean(), y.std()
    y, y_test = (y - centre) / scale, (y_test - centre) / scale
    out = []
    for fit in (by_sklearn, TemperedGPRegressor(random_state=0).fit):
        began = time.perf_counter()
        model = fit(X, y)
        seconds = time.perf_counter() - began
        mean, std = model.predict(X_test, return_std=True)
        if fit is by_sklearn:
            densities = stats.norm.logpdf(y_test, mean, std)
        else:
            densities = model.log_predictive_density(X_test, y_test)
        inside = np.abs(y_test - mean) < HALF_WIDTH * std
        out.append([densities.mean(), inside.mean(), seconds])
    return out


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer splits, fewer rows")
    quick = parser.parse_args().quick
    warnings.simplefilter("ignore", ConvergenceWarning)
    if quick:
        print(f"cut: splits {QUICK_SPLITS} of {N_SPLITS}; bundled sets to {QUICK_ROWS} rows\n")
    print(f"{'':>10}{'splits':>7} |{'log density':^25} |{'inside 90 %':^17} |{'seconds':^17} |")
    columns = f"{'sklearn':>8}{'ours':>8}"
    print(f"{'':>10}{'':>7} |{columns:>25} |{columns:>17} |{columns:>17} |  gain")
    with threadpool_limits(1):
        for name in N_SPLITS:
            found = np.array([compare(split) for split in splits(name, quick)])
            gain = found[:, 1, 0] - found[:, 0, 0]
            error = gain.std(ddof=1) / np.sqrt(len(gain)) if len(gain) > 1 else np.nan
            mean = found.mean(axis=0)
            print(
                f"{name:>10}{len(found):7d} |{mean[0, 0]:17.3f}{mean[1, 0]:8.3f} |"
                f"{mean[0, 1]:9.3f}{mean[1, 1]:8.3f} |{mean[0, 2]:9.1f}{mean[1, 2]:8.1f} |"
                f"  {gain.mean():+.3f} ({error:.3f})",
                flush=True,
            )


if __name__ == "__main__":
    main()
