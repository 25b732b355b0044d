"""Questions to a fitted CrossCatPY: how fast they are answered.

    python benchmarks/peers/crosscat_queries.py

40 simulated columns (4 views of 8 clusters) of 10,000 rows, all categorical, and half of them
numbers; default fit, 4 chains; seconds of each query, the median of 3, beside the limit where one
is asked. One core.
"""

import argparse
import os
import statistics
import sys
import time
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

sys.path.insert(0, str(Path(__file__).parents[1]))  # where the rooms are
from harness import crosscat_data
from harness.crosscat_runs import estimator, fitted, schedule_of, show, verdict
from peers.crosscat_imputation import blank


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


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--max-time", type=float, help="seconds per chain of every fit")
    parser.add_argument("--estimator", default="CrossCatPY", help="or AnnealedDPMixture")
    options = parser.parse_args()
    with threadpool_limits(1):
        run_timings(options)


if __name__ == "__main__":
    os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    main()
