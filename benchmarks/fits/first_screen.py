"""What a newcomer sees of tables that come with Python packages: clusters, draws, warnings.

    pip install statsmodels palmerpenguins vega_datasets plotly
    python benchmarks/fits/first_screen.py --seeds 1             # a quarter of an hour

Sixteen tables as their packages give them, not a column chosen or changed, are fitted by default. A
line of `benchmarks/results/first_screen.jsonl` has the number of clusters, how sure the least sure
valley is that was cut and the surest one that was not, the most probable number of components, the
family of each column, the names of the columns without a negative number of which `sample` draws
negative ones, with their share, and the first words of each warning.
"""

import sys
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.datasets import load_diabetes

from skanneal import AnnealedDPMixture

sys.path.insert(0, str(Path(__file__).parents[1]))  # where the rooms are
from harness.suite import Suite

N_DRAWN = 2000


def of_statsmodels(name):
    def load():
        import statsmodels.api

        return getattr(statsmodels.api.datasets, name).load_pandas().data

    return load


def of_vega(name):
    def load():
        from vega_datasets import local_data

        return local_data(name)

    return load


def of_plotly(name):
    def load():
        import plotly.data

        return getattr(plotly.data, name)()

    return load


def of_palmerpenguins(name):
    def load():
        import palmerpenguins

        return getattr(palmerpenguins, name)()

    return load


TABLES = {
    "penguins": of_palmerpenguins("load_penguins"),
    "penguins raw": of_palmerpenguins("load_penguins_raw"),
    "anes96": of_statsmodels("anes96"),
    "engel": of_statsmodels("engel"),
    "fair": of_statsmodels("fair"),
    "heart": of_statsmodels("heart"),
    "macrodata": of_statsmodels("macrodata"),
    "modechoice": of_statsmodels("modechoice"),
    "star98": of_statsmodels("star98"),
    "cars": of_vega("cars"),
    "barley": of_vega("barley"),
    "seattle weather": of_vega("seattle-weather"),
    "carshare": of_plotly("carshare"),
    "gapminder": of_plotly("gapminder"),
    "tips": of_plotly("tips"),
    "diabetes": lambda: load_diabetes(as_frame=True, scaled=False).frame,
}


def default(seed):
    return AnnealedDPMixture(n_jobs=1, random_state=seed)


def measure(load, method, seed):
    """What a fit says of a table."""
    X = load()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = method(seed).fit(X)
    sureness, cut = model.valley_sureness_, model.n_clusters_ - 1
    drawn = model.sample(N_DRAWN)
    numbers = [name for name in X if pd.api.types.is_numeric_dtype(X[name]) and X[name].min() >= 0]
    negative = {name: float((drawn[name] < 0).mean()) for name in numbers}
    return {
        "shape": list(X.shape),
        "n_clusters": int(model.n_clusters_),
        "sizes": np.bincount(model.labels_).tolist(),
        "least_sure_cut": round(float(sureness[cut - 1]), 3) if cut else None,
        "surest_not_cut": round(float(sureness[cut]), 3) if cut < len(sureness) else None,
        "n_components_mode": int(np.argmax(model.n_components_proba_)),
        "families": {name: X.columns[of].tolist() for name, of in model.families_.items()},
        "negative": {name: round(share, 4) for name, share in negative.items() if share},
        "converged": bool(model.converged_),
        "warnings": [str(warning.message)[:160] for warning in caught],
    }


SUITE = Suite("first_screen", lambda folder: TABLES, {"skanneal": {"default": default}}, measure)

if __name__ == "__main__":
    SUITE.run(__doc__.splitlines()[0])
