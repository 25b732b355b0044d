"""The figures of README's first lines: the cultivars of 178 wines, found without labels.

    python benchmarks/fits/first_screen.py                       # half a minute

Prints the number of clusters and the adjusted Rand index with the cultivars, for five seeds of ours
and for scikit-learn's clusterers, on the table as it is and with standardised columns.
"""

import warnings

from sklearn.cluster import HDBSCAN, KMeans
from sklearn.datasets import load_wine
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score
from sklearn.mixture import GaussianMixture
from sklearn.preprocessing import scale

from skanneal import AnnealedDPMixture


def by_bic(X):
    fits = [GaussianMixture(k, random_state=0).fit(X) for k in range(1, 11)]
    return min(fits, key=lambda fit: fit.bic(X)).predict(X)


def main():
    X, cultivar = load_wine(return_X_y=True)

    def show(name, labels):
        score = adjusted_rand_score(cultivar, labels)
        print(f"{name:36} {labels.max() + 1:2} clusters  {score:.2f}", flush=True)

    for seed in range(5):
        model = AnnealedDPMixture(random_state=seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            show(f"AnnealedDPMixture, seed {seed}", model.fit_predict(X))
    for form, table in (("as it is", X), ("standardised", scale(X))):
        show(f"KMeans, told three, {form}", KMeans(3, random_state=0, n_init=10).fit_predict(table))
        show(f"GaussianMixture by BIC, {form}", by_bic(table))
        show(f"HDBSCAN, {form}", HDBSCAN(copy=True).fit_predict(table))


if __name__ == "__main__":
    main()
