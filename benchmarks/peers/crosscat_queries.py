"""Questions to a fitted CrossCatPY: how fast, and how well missing cells are filled.

    python benchmarks/peers/crosscat_queries.py                    # timings only
    python benchmarks/peers/crosscat_queries.py DATA_FOLDER        # imputation too, some 10 minutes
    python benchmarks/peers/crosscat_queries.py DATA_FOLDER --parts imputation --seeds 1

*Timings*: 40 simulated columns (4 views of 8 clusters) of 10,000 rows, all categorical, and half of
them numbers; default fit, 4 chains; seconds of each query, the median of 3, beside the limit where
one is asked. One core.

*Imputation*: 10 % of the cells of Dartmouth (307 x 63 numbers) and of 10,000 rows of ACS (35
categorical columns) are blanked at random; each method is fitted to what is left and fills it.
Numbers: root mean squared error over the blanked cells, in standard deviations of their columns.
Categories: share of wrong levels. Beside CrossCatPY, scikit-learn's SimpleImputer (mean, most
frequent) and IterativeImputer (Bayesian ridge regression, its default): on standardised numbers; on
codes of the levels, rounded to the nearest level; and on one-hot columns of levels, the largest
taken, each regressed on the 20 most correlated, 3 rounds. Means and standard deviations over random
blanks; the lead over the best other method with its standard error.
"""

import argparse
import os
import statistics
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.exceptions import ConvergenceWarning
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer, SimpleImputer
from threadpoolctl import threadpool_limits

sys.path.insert(0, str(Path(__file__).parents[1]))  # where the rooms are
from harness import crosscat_data
from harness.crosscat_runs import estimator, fitted, schedule_of, show, spread, verdict

SHARE_BLANK = 0.1
OURS = "CrossCatPY"


def blank(table, seed):
    """The table with random cells missing, and the mask of those cells."""
    mask = np.random.default_rng([seed, 3]).random(table.shape) < SHARE_BLANK
    return table.mask(pd.DataFrame(mask, index=table.index, columns=table.columns)), mask


# -- timings ---------------------------------------------------------------------------------------


def queries(model, table):
    """(name, asked seconds or None, call) of each query that every mixture answers."""
    gappy, _ = blank(table, 0)
    n = len(table)
    return [
        (f"score_samples, {n} rows", 1.0, lambda: model.score_samples(table)),
        (f"impute, 10 % of {n} rows", 2.0, lambda: model.impute(gappy)),
        (f"score_samples, {n} rows with gaps", None, lambda: model.score_samples(gappy)),
        (f"surprisal, {n} rows", None, lambda: model.surprisal(table)),
        (f"predict, {n} rows", None, lambda: model.predict(table)),
        (f"sample {n} rows", None, lambda: model.sample(n)),
    ]


def crosscat_queries(model, table):
    """As `queries`, of those that only CrossCatPY answers."""
    n = len(table)
    given = table.iloc[0, :5].to_dict()
    some = np.arange(min(n, 1000))
    return [
        ("dependence_probability", 0.05, lambda: model.dependence_probability()),
        ("mutual_information, all pairs", 5.0, lambda: model.mutual_information()),
        (
            f"score_samples given 5 cells, {n} rows",
            None,
            lambda: model.score_samples(table, given=list(given)),
        ),
        (f"sample {n} rows given 5 cells", None, lambda: model.sample(n, given=given)),
        (f"transform, {n} rows", None, lambda: model.transform(table)),
        (f"row_similarity, {len(some)} x {n} rows", None, lambda: model.row_similarity(some)),
        (f"most_similar_rows, {len(some)} rows", None, lambda: model.most_similar_rows(some)),
    ]


def run_timings(options):
    """Time every query on two fitted models."""
    rows = []
    for what, n_numbers in (("categorical", 0), ("half numbers", 20)):
        table, _ = crosscat_data.forty_columns(options.rows, n_numbers)
        schedule = schedule_of("anneal", max_time=options.max_time)
        model = estimator(options.estimator, schedule=schedule, random_state=0)
        record = fitted(model, table)
        print(f"{what}: fitted in {record['seconds']:.1f} s, {record['views']:g} views", flush=True)
        asked_of = queries(model, table)
        if hasattr(model, "dependence_probability"):
            asked_of = crosscat_queries(model, table) + asked_of
        for name, asked, call in asked_of:
            seconds = []
            for _ in range(3):
                start = time.perf_counter()
                call()
                seconds.append(time.perf_counter() - start)
            median = statistics.median(seconds)
            rows.append(
                {
                    "columns": what,
                    "query": name,
                    "seconds": f"{median:.4f}",
                    "asked": np.nan if asked is None else asked,
                    "verdict": "" if asked is None else verdict(median <= asked),
                }
            )
    print("\nSeconds of a query, median of 3, one core")
    show(rows)


# -- imputation ------------------------------------------------------------------------------------


def codes_of(table):
    """Numbers as they are, levels as codes; missing cells nan."""
    out = np.empty(table.shape)
    for j, column in enumerate(table):
        values = table[column]
        if values.dtype == "category":
            codes = values.cat.codes.to_numpy()
            out[:, j] = np.where(codes < 0, np.nan, codes)
        else:
            out[:, j] = values
    return out


def by_crosscat(gappy, seed, options):
    schedule = schedule_of("anneal", max_time=options.max_time)
    model = estimator(options.estimator, schedule=schedule, random_state=seed)
    fitted(model, gappy)
    return codes_of(model.impute(gappy))


def by_simple(gappy, seed, options):
    categorical = (gappy.dtypes == "category").all()
    imputer = SimpleImputer(strategy="most_frequent" if categorical else "mean")
    return imputer.fit_transform(codes_of(gappy))


def iterate(cells, seed, **parameters):
    """IterativeImputer on standardised columns."""
    mean, scale = np.nanmean(cells, axis=0), np.nanstd(cells, axis=0)
    scale[scale == 0] = 1
    imputer = IterativeImputer(random_state=seed, keep_empty_features=True, **parameters)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return imputer.fit_transform((cells - mean) / scale) * scale + mean


def by_iterative(gappy, seed, options):
    """On numbers or codes."""
    filled = iterate(codes_of(gappy), seed)
    for j, column in enumerate(gappy):
        if gappy[column].dtype == "category":
            filled[:, j] = np.clip(np.rint(filled[:, j]), 0, gappy[column].cat.categories.size - 1)
    return filled


def by_one_hot(gappy, seed, options):
    """On one-hot columns of the levels that occur."""
    cells = codes_of(gappy)
    levels = [np.unique(column[~np.isnan(column)]) for column in cells.T]
    parts = []
    for column, present in zip(cells.T, levels):
        part = (column[:, None] == present).astype(float)
        part[np.isnan(column)] = np.nan
        parts.append(part)
    hot = iterate(np.concatenate(parts, axis=1), seed, n_nearest_features=20, max_iter=3)
    stops = np.cumsum([len(present) for present in levels])
    for j, (present, stop) in enumerate(zip(levels, stops)):
        cells[:, j] = present[hot[:, stop - len(present) : stop].argmax(axis=1)]
    return cells


METHODS = {
    "numbers": {OURS: by_crosscat, "mean": by_simple, "IterativeImputer": by_iterative},
    "levels": {
        OURS: by_crosscat,
        "most frequent": by_simple,
        "IterativeImputer, codes": by_iterative,
        "IterativeImputer, one-hot": by_one_hot,
    },
}


def error(table, filled, mask):
    """Root mean squared error in standard deviations, or share of wrong levels."""
    truth = codes_of(table)
    if (table.dtypes == "category").all():
        return float((filled[mask] != truth[mask]).mean())
    scaled = (filled - truth) / truth.std(axis=0)
    return float(np.sqrt((scaled[mask] ** 2).mean()))


def impute_all(table, methods, options):
    """Errors and seconds of each method for each random blank: dict of lists of (error, s)."""
    out = {name: [] for name in methods}
    for seed in range(options.seeds):
        gappy, mask = blank(table, seed)
        for name, method in methods.items():
            start = time.perf_counter()
            filled = method(gappy, seed, options)
            seconds = time.perf_counter() - start
            out[name].append((error(table, filled, mask), seconds))
            print(f"  seed {seed}  {name:26} error {out[name][-1][0]:.4f}  {seconds:6.1f} s")
    return out


def run_imputation(options):
    """Errors of imputation on Dartmouth and ACS."""
    if options.data is None:
        print("\nImputation needs the data folder: not run")
        return
    rows = []
    for data, load, methods in (
        ("dartmouth", crosscat_data.dartmouth, METHODS["numbers"]),
        ("acs", crosscat_data.acs, METHODS["levels"]),
    ):
        table = load(options.data, options.rows)
        print(f"\n{data}, {len(table)} rows, 10 % of the cells blanked", flush=True)
        results = impute_all(table, methods, options)
        errors = {name: np.array([e for e, _ in runs]) for name, runs in results.items()}
        other = min((name for name in methods if name != OURS), key=lambda n: errors[n].mean())
        lead = errors[other] - errors[OURS]
        for name, runs in results.items():
            rows.append(
                {
                    "data": data,
                    "method": name,
                    "error": f"{errors[name].mean():.4f}",
                    "sd": f"{spread(errors[name]):.4f}",
                    "seconds": float(np.mean([seconds for _, seconds in runs])),
                    "lead": f"{lead.mean():.4f}" if name == OURS else "",
                    "(error)": f"{spread(lead) / len(lead) ** 0.5:.4f}" if name == OURS else "",
                    "verdict": verdict(lead.mean() > 0) if name == OURS else "",
                }
            )
    print("\nError of filled cells: standard deviations (dartmouth), share wrong (acs)")
    show(rows, digits=3)


PARTS = {"timings": run_timings, "imputation": run_imputation}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", nargs="?", type=Path, help="folder with the data sets")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--seeds", type=int, default=5, help="random blanks, for the imputation")
    parser.add_argument("--max-time", type=float, help="seconds per chain of every fit")
    parser.add_argument("--estimator", default=OURS, help="or AnnealedDPMixture")
    options = parser.parse_args()
    with threadpool_limits(1):
        for part in options.parts:
            PARTS[part](options)


if __name__ == "__main__":
    os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    main()
