"""Value and gradient of a Gaussian process' log likelihood beside the machine's flop limit.

    python benchmarks/kernels/gp_gradient.py           # N = 64 to 1024, D = 18, about two minutes
    python benchmarks/kernels/gp_gradient.py --quick   # N = 512 alone, half a minute

The kernel is the squared exponential with one length scale per column: D + 2 parameters. The limit
counts N^3 floating-point operations (a third for the factor, two thirds for the inverse) and
4 N^2 D (distances, and the contraction of the gradient), at the rate that dgemm reaches on N x N
matrices in this very run; value alone: N^3 / 3 + 2 N^2 D.

Beside skanneal stand a careful version in NumPy and SciPy (LAPACK's factor and inverse, matrix
products for distances and for all length scales at once) and scikit-learn's
GaussianProcessRegressor. All on one thread; sides take turns and a figure is the best of the
repetitions. That all compute the same is checked.

"levels" is the log likelihood of all rows and of six prefixes of 2^(-m/2) of them, in one call.
"""

import argparse
import time

import numpy as np
from scipy.linalg import blas, lapack
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
from threadpoolctl import threadpool_limits

from skanneal.schedules import GeometricLadder
from skanneal.tempering import GaussianProcessTarget

D = 18
SIZES = (64, 128, 256, 512, 1024)


def with_numpy(X, y, theta):
    """Value and gradient, cubic work in LAPACK, no array beyond N x N."""
    n, d = X.shape
    lengths, (signal, noise) = np.exp(theta[:-2]), np.exp(2 * theta[-2:])
    Z = np.ones((n, d + 1), order="F")  # a column of ones: row sums come with the product
    np.divide(X, lengths, out=Z[:, :d])
    squares = (Z * Z).sum(axis=1)
    K = blas.dsyrk(1.0, Z, lower=1)
    K -= 0.5 * squares
    K -= 0.5 * squares[:, None]
    np.exp(K, out=K)
    K *= signal
    L = K.copy(order="F")
    L[np.diag_indices(n)] += noise
    L, info = lapack.dpotrf(L, lower=1, clean=0, overwrite_a=1)
    assert info == 0
    log_det = np.log(np.diagonal(L)).sum()
    a = lapack.dpotrs(L, y, lower=1)[0]
    value = -0.5 * (y @ a + n * np.log(2 * np.pi)) - log_det
    inverse, _ = lapack.dpotri(L, lower=1, overwrite_c=1)
    trace = np.diagonal(inverse).sum()
    K *= blas.dger(-1.0, a, a, a=inverse, overwrite_a=1)  # lower triangle of -(a a' - K^-1) o K_f
    product = blas.dsymm(-1.0, K, Z, lower=1)
    slope = (Z * Z).T @ product[:, -1] - (Z * product).sum(axis=0)
    fit = a @ a - trace
    return value, np.r_[slope[:d], y @ a - n - noise * fit, noise * fit]


def sides(n):
    """The functions to be timed, by name, after a check that they agree."""
    rng = np.random.default_rng(n)
    X, y = rng.normal(size=(n, D)), rng.normal(size=n)
    theta = np.r_[rng.normal(1.0, 0.3, D), 0.2, -0.7]
    order, sizes = np.arange(n), GeometricLadder().levels(n)[1]
    bound = GaussianProcessTarget(X, y).bind(order, [n])
    levels = GaussianProcessTarget(X, y).bind(order, sizes)
    kernel = ConstantKernel(np.exp(2 * theta[-2])) * RBF(np.exp(theta[:-2]))
    kernel += WhiteKernel(np.exp(2 * theta[-1]))
    model = GaussianProcessRegressor(kernel, alpha=0.0, optimizer=None).fit(X, y)
    log_theta = model.kernel_.theta

    values, gradient = bound.evaluate(theta, 0, True)
    expected, slope = model.log_marginal_likelihood(log_theta, eval_gradient=True)
    slope = np.r_[slope[1:-1], 2 * slope[0], 2 * slope[-1]]
    for value, other in ((values[0], gradient), with_numpy(X, y, theta)):
        np.testing.assert_allclose(value, expected, rtol=1e-9)
        np.testing.assert_allclose(other, slope, atol=1e-9 * np.abs(slope).max())

    A = np.asfortranarray(rng.normal(size=(n, n)))
    C = np.zeros((n, n), order="F")
    return {
        "dgemm": lambda: blas.dgemm(1.0, A, A, 0.0, C, overwrite_c=1),
        "value": lambda: bound.evaluate(theta),
        "levels": lambda: levels.evaluate(theta),
        "gradient": lambda: bound.evaluate(theta, 0, True),
        "numpy": lambda: with_numpy(X, y, theta),
        "sklearn": lambda: model.log_marginal_likelihood(
            log_theta, eval_gradient=True, clone_kernel=False
        ),
    }


def best_times(functions, seconds):
    """Best milliseconds of each, in turns, for about so many seconds in all."""
    best = dict.fromkeys(functions, np.inf)
    end = time.perf_counter() + seconds
    for turn in range(1000):
        for name, function in functions.items():
            if name == "sklearn" and turn % 10:  # slow, and not what is to be told apart
                continue
            for _ in range(3):
                began = time.perf_counter()
                function()
                best[name] = min(best[name], 1e3 * (time.perf_counter() - began))
        if time.perf_counter() > end:
            break
    return best


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="N = 512 alone")
    quick = parser.parse_args().quick
    sizes = (512,) if quick else SIZES
    if quick:
        print(f"cut: N = {', '.join(str(n) for n in SIZES if n not in sizes)}\n")
    print("milliseconds, one thread; ratios to the flop limit of value and gradient")
    names = ("limit", "value", "levels", "gradient", "numpy", "sklearn")
    print(f"{'N':>5} {'GFLOP/s':>8}" + "".join(f"{name:>10}" for name in names), end="")
    print(f"{'gradient':>10}{'numpy':>8}{'sklearn':>9}{'value*':>8}")
    with threadpool_limits(1, user_api="blas"):
        for n in sizes:
            best = best_times(sides(n), 20 if quick else 15)
            rate = 2 * n**3 / best["dgemm"]
            limit = (n**3 + 4 * n * n * D) / rate
            best["limit"] = limit
            value_limit = (n**3 / 3 + 2 * n * n * D) / rate
            print(f"{n:5d} {rate / 1e6:8.1f}", end="")
            print("".join(f"{best[name]:10.3f}" for name in names), end="")
            print(f"{best['gradient'] / limit:10.2f}{best['numpy'] / limit:8.2f}", end="")
            print(f"{best['sklearn'] / limit:9.1f}{best['value'] / value_limit:8.2f}", flush=True)
    print("* to the limit of the value alone")


if __name__ == "__main__":
    main()
