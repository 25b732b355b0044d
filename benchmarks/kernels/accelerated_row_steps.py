"""A row's step in each algorithm of AcceleratedDPMixture beside the bare sparse product.

    python benchmarks/kernels/accelerated_row_steps.py                 # simulated images, a minute
    python benchmarks/kernels/accelerated_row_steps.py --data FOLDER   # MNIST from FOLDER/mnist.npz

One sub-iteration from the same state, on two shards, one after the other in one thread (one shard
where the algorithm has but one): every row of counts // 32 gets one turn, and chooses among the
features there are and new ones. Whatever the algorithm, that contains the product of the row with
the logarithms of all features, so the fastest bare product for as many features
(``bare_product.c``, as in assignment_pass.py) is the measure: nanoseconds per row and feature, and
how many times the product a step is. Statistics and the report to the other shards are included;
segments of ten sub-iterations between two synchronisations share one scoring pass where the
algorithm allows it.

The state is what a short fit of the default has found, so that moves are those of a chain under
way, and not of one that still opens clusters at every other row.
"""

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from scipy.sparse import csr_array
from threadpoolctl import threadpool_limits

sys.path.insert(0, str(Path(__file__).parents[1]))  # where the rooms are
from kernels.assignment_pass import fastest, read_images, simulate_images, timed

STEPS = (1, 10)  # sub-iterations of a segment


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--data", help="folder with mnist.npz")
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--repetitions", type=int, default=5)
    options = parser.parse_args()
    images = read_images(options.data) if options.data else simulate_images()
    with threadpool_limits(1), tempfile.TemporaryDirectory() as folder:
        compare(images[: options.rows], Path(folder), options.repetitions)


def compare(images, folder, repetitions):
    """Print what `steps_of` finds."""
    found = steps_of(images, folder, repetitions)
    print(f"{len(images)} rows, {found['features']} features; ns per row and feature: bare product"
          f" {found['product']:.3f}\n")  # fmt: skip
    print(f"{'':12}" + "".join(f"{f'{n} sub-iteration(s)':>28}" for n in STEPS))
    print(f"{'':12}" + f"{'ns':>16}{'x product':>12}" * len(STEPS))
    for name, times in found["times"].items():
        line = f"{name:12}"
        for n_steps in STEPS:
            of = times.get(str(n_steps))
            line += f"{of:16.3f}{of / found['product']:12.2f}" if of else f"{'-':>28}"
        print(line)


def steps_of(images, folder, repetitions, seed=0):
    """Nanoseconds per row and feature of the bare product and of each algorithm's steps.

    Returns
    -------
    found : dict
        "features": their number; "product": the bare product's time; "times": algorithm to
        sub-iterations of a segment, as text, to the time of one.
    """
    from skanneal import AcceleratedDPMixture
    from skanneal.likelihoods import LIKELIHOODS
    from skanneal.parallel import StopFlag
    from skanneal.partition_priors import PitmanYor
    from skanneal.schedules import AcceleratedSchedule
    from skanneal.sharded import (
        AcceleratedStage,
        Auxiliary,
        ExactStage,
        Importance,
        SliceSampler,
        Uncollapsed,
    )

    schedule = AcceleratedSchedule(n_accelerated=5, n_exact=40)
    model = AcceleratedDPMixture(
        likelihood="multinomial",
        hyperparameters={"multinomial": {"pseudo_counts": 0.1}},
        concentration=1.0,
        schedule=schedule,
        init=100,
        n_shards=1,
        point_estimate="vi",  # of one draw that draw
        random_state=seed,
    ).fit(images)
    _, labels = np.unique(model.labels_, return_inverse=True)
    labels, n_features = labels.astype(np.int32), int(labels.max()) + 1
    likelihood = LIKELIHOODS["multinomial"].of(images, [[0.1]])
    rows, middle = likelihood.encode(images), len(images) // 2
    halves = [likelihood.encode(part) for part in (images[:middle], images[middle:])]
    weights = np.log(likelihood_means(likelihood, rows, labels, n_features)).T
    bare, *_ = fastest(folder, csr_array(images.astype(np.float32)), weights.astype(np.float32))
    product = min(timed(bare) for _ in range(repetitions))
    each = 1e9 / (len(images) * n_features)
    times = {}
    for make in (AcceleratedStage, ExactStage, Auxiliary, Importance, SliceSampler):
        stage = make(3)
        of_stage = times[stage.name] = {}
        for n_steps in STEPS:
            if n_steps > stage.steps:
                continue
            best = np.inf
            for repetition in range(repetitions):
                rng = np.random.default_rng(repetition)
                shards = [rows]
                if not isinstance(stage, Auxiliary):
                    shards = halves
                dealt = np.split(labels, [middle]) if len(shards) == 2 else [labels]
                state = Uncollapsed(likelihood, PitmanYor(1.0), dealt)
                state.gather(
                    [
                        (of_shard, likelihood.statistics(part, of_shard, n_features), None)
                        for part, of_shard in zip(shards, dealt)
                    ]
                )
                segment, arguments = stage.plan(state, n_steps, rng)
                began = time.thread_time()
                for part, sent in zip(shards, arguments):
                    segment(part, *sent, stop=StopFlag())
                best = min(best, time.thread_time() - began)
            of_stage[str(n_steps)] = best / n_steps * each
    return {"features": n_features, "product": product * each, "times": times}


def likelihood_means(likelihood, rows, labels, n_features):
    """Posterior mean probabilities: (n_features, n_columns)."""
    return np.exp(likelihood.mean(likelihood.statistics(rows, labels, n_features)))


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    main()
