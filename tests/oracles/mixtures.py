"""The oracles' columns as tables and mixtures, and independent chains of them.

A column is ``(family, values, hyper)`` as in enumeration.py: None and NaN are missing. The values
of a row family are rows of several numbers, one column of the Table for each.
"""

import math
from collections import Counter

import numpy as np

from oracles.enumeration import canonical, clusters
from oracles.reference import AMOUNT_ATOMS, ATOMS, is_missing, log_marginal
from skanneal.encoding._codecs import CODECS
from skanneal.families import FAMILIES, MISSING_COUNT, Table
from skanneal.families._forms import flatten, starts, unflatten
from skanneal.moves import churn
from skanneal.partition_priors import PitmanYor
from skanneal.schedules import Segment
from skanneal.states import Mixture, Subsample

# Rows of counts are in test_multinomial.py, rows with weights in test_multivariate_t.py.
ROW_FAMILIES = [
    name
    for name, family in FAMILIES.items()
    if family.joint and family.cells in ("number", "logarithm") and not family.weighted
]
NUMBER_ROWS = [name for name in ROW_FAMILIES if FAMILIES[name].cells == "number"]
COLUMN_FAMILIES = [name for name, family in FAMILIES.items() if not family.joint]
PER_LEVEL = ("per_level",)  # forms of a family with one coordinate per level


def hyper_vector(family, hyper):
    """The package's vector of coordinates of the oracles' mapping."""
    names = FAMILIES[family].coordinate_names
    if FAMILIES[family].forms == PER_LEVEL:
        return np.array(hyper[names[0]], dtype=float)
    if FAMILIES[family].joint:
        forms = FAMILIES[family].forms
        values = [hyper[name] for name in FAMILIES[family].coordinate_names]
        return flatten(forms, values, max(map(len, map(np.atleast_1d, values))))
    return np.array([hyper[name] for name in names], dtype=float)


def hyper_mapping(family, vector):
    """The inverse of hyper_vector."""
    names = FAMILIES[family].coordinate_names
    if FAMILIES[family].forms == PER_LEVEL:
        return {names[0]: list(vector)}
    if family in ROW_FAMILIES:
        forms = FAMILIES[family].forms
        d = next(d for d in range(1, 1000) if starts(forms, d)[-1] == len(vector))
        return dict(
            zip(FAMILIES[family].coordinate_names, unflatten(forms, vector, d), strict=True)
        )
    return dict(zip(names, map(float, vector), strict=True))


def column_type(column):
    """(dtype, n_levels) in a Table, of each of its columns."""
    family, _, hyper = column
    dtype = getattr(CODECS[FAMILIES[family].cells], "dtype", None)
    if dtype is not None:
        return dtype, CODECS[FAMILIES[family].cells].n_levels
    n_levels = len(hyper_vector(family, hyper))
    return ("u1" if n_levels < 255 else "u2" if n_levels < 65535 else "u4"), n_levels


def encode(column, values=None):
    """The cells of a column (or of other values of it) as a Table stores them."""
    family, own, _ = column
    dtype, n_levels = column_type(column)
    missing = {"f4": np.nan, "u4": MISSING_COUNT}[dtype] if n_levels == 0 else n_levels
    ((_, own, _),) = in_cells([(family, own if values is None else values, None)])
    cells = [missing if is_missing(v) else v for v in own]
    return np.array(cells, dtype=float).astype(dtype)


def in_cells(columns):
    """The columns in cell units: of a column of logarithms the logarithms, which are normal, and
    for each atom of an amount one of ATOMS."""
    out = []
    for family, values, hyper in columns:
        if FAMILIES[family].joint and FAMILIES[family].cells == "logarithm" and _are_rows(values):
            family, values = "multivariate_normal", list(map(_logs_of_row, values))
        elif FAMILIES[family].cells == "logarithm":
            family, values = "normal", [None if is_missing(v) else math.log(v) for v in values]
        elif FAMILIES[family].cells == "logarithm_or_atom":
            family, values = "semi_continuous", list(map(_amount_cell, values))
        out.append((family, values, hyper))
    return out


def _are_rows(values):
    return any(np.ndim(value) for value in values)


def _logs_of_row(row):
    return [None if is_missing(x) else math.log(x) for x in row]


def _amount_cell(value):
    if is_missing(value) or value not in AMOUNT_ATOMS:
        return None if is_missing(value) else math.log(value)
    return ATOMS[AMOUNT_ATOMS.index(value)]


def split_rows(columns):
    """Columns as those of a Table: one for each cell of a row family's rows."""
    out = []
    for family, values, hyper in columns:
        of = zip(*values, strict=True) if FAMILIES[family].joint else [values]
        out += [(family, list(cells), hyper) for cells in of]
    return out


def make_table(columns, **options):
    """A Table with the columns' values as rows."""
    columns = split_rows(columns)
    dtypes, n_levels = zip(*(column_type(column) for column in columns), strict=True)
    atoms = [
        np.array(ATOMS if FAMILIES[column[0]].cells.endswith("_or_atom") else [], np.float32)
        for column in columns
    ]
    logarithms = [FAMILIES[column[0]].cells.startswith("logarithm") for column in columns]
    table = Table(dtypes, n_levels, atoms=atoms, logarithms=logarithms, **options)
    table.append([encode(column) for column in columns])
    return table


def make_blocks(table, columns, n_slots=16):
    """One block per family, in the order of first appearance."""
    columns = split_rows(columns)
    families = dict.fromkeys(column[0] for column in columns)
    blocks = []
    for family in families:
        at = [j for j, column in enumerate(columns) if column[0] == family]
        keys = FAMILIES[family].key_columns(at)
        hypers = [hyper_vector(family, columns[j][2]) for j in keys]
        blocks.append(FAMILIES[family](table, at, hypers, n_slots))
    return blocks


def make_mixture(
    columns, concentration=1.0, discount=0.0, *, selection="random", seed=0, strata=None
):
    """(mixture, bit generator), no row in S yet."""
    bit_generator = np.random.PCG64(seed)
    table = make_table(columns)
    subsample = Subsample(table.n_rows, selection, bit_generator, strata)
    prior = PitmanYor(concentration, discount)
    return Mixture(table, make_blocks(table, columns), prior, subsample), bit_generator


def restart(mixture, bit_generator):
    """Take every row out of S, for the next chain; a window gets a new shuffle."""
    subsample = mixture.subsample
    while subsample.size:
        mixture.remove_row(subsample.leave_row(bit_generator))
    if subsample.selection == "window":
        mixture.bind_subsample(Subsample(subsample.n_rows, "window", bit_generator))


def set_partition(mixture, labels):
    """Every row in S, with these slots."""
    mixture.subsample.fill()
    mixture.replace(np.arange(len(labels)), np.asarray(labels))


def run_segments(mixture, bit_generator, segments, moves=()):
    """Churn segment by segment, each move once after each."""
    for segment in segments:
        churn(
            [mixture],
            mixture.subsample,
            bit_generator,
            segment.knots,
            segment.start,
            segment.stop,
            segment.beta,
        )
        for move in moves:
            move.sweep(mixture, bit_generator, beta=segment.beta)


def segments_of(schedule, n_rows):
    """All segments of a schedule."""
    pacer = schedule.pacer(n_rows)
    return list(iter(pacer.next, None))


def joined(path):
    """A path of exponent 1 as one segment."""
    knots = np.column_stack([path.assignments, path.sizes]).astype(np.int64)
    return [Segment(0, int(path.assignments[-1]), knots, 1.0)]


def end_labels(mixture, bit_generator, segments, n_chains, moves=()):
    """Counts of the canonical final labels of independent chains from the empty subsample."""
    counts = Counter()
    for _ in range(n_chains):
        restart(mixture, bit_generator)
        run_segments(mixture, bit_generator, segments, moves)
        counts[mixture.get_labels().tobytes()] += 1
    return canonical_counts(counts)


def canonical_counts(raw):
    """Counts of raw int32 label arrays (as bytes) as counts of canonical partitions."""
    counts = Counter()
    for key, count in raw.items():
        counts[canonical(np.frombuffer(key, dtype=np.int32).tolist())] += count
    return counts


def reference_log_likelihood(columns, labels):
    """Log likelihood of the labelled rows from the formulas."""
    return sum(
        log_marginal(family, [values[row] for row in rows], hyper)
        for family, values, hyper in columns
        for rows in clusters(canonical(labels))
    )


def random_column(family, n_rows, rng, *, missing=0.0, n_levels=3):
    """A random column whose values are exact in the table's types."""
    if family in ("normal", "log_normal", "semi_continuous", "semi_continuous_log_normal"):
        values = np.float32(rng.normal(rng.choice([-2.0, 1.0], n_rows), 0.7)).astype(float)
        values = np.exp(values) if family.endswith("log_normal") else values
        hyper = {
            "mu0": rng.normal(),
            "kappa0": rng.uniform(0.1, 2),
            "nu0": rng.uniform(1, 6),
            "sigma2_0": rng.uniform(0.2, 2),
        }
        if family.startswith("semi_continuous"):
            atoms = AMOUNT_ATOMS if family.endswith("log_normal") else ATOMS
            values = np.where(rng.random(n_rows) < 0.4, rng.choice(atoms, n_rows), values)
            hyper |= {"a": rng.uniform(0.3, 2), "b": rng.uniform(0.3, 2)}
    elif family == "categorical":
        values = rng.integers(n_levels, size=n_rows)
        hyper = {"pseudo_counts": rng.uniform(0.2, 2.0, n_levels).tolist()}
    elif family == "bernoulli":
        values = rng.random(n_rows) < 0.4
        hyper = {"a": rng.uniform(0.3, 2), "b": rng.uniform(0.3, 2)}
    elif family == "negative_binomial":
        values = rng.poisson(rng.choice([0.5, 6.0, 40.0], n_rows) * rng.gamma(2.0, 0.5, n_rows))
        hyper = {"r": rng.uniform(0.5, 5), "a": rng.uniform(0.5, 3), "b": rng.uniform(0.2, 2)}
    elif family == "gamma_exponential":
        values = np.float32(rng.exponential(rng.choice([0.1, 1.0, 20.0], n_rows))).astype(float)
        values[rng.random(n_rows) < 0.05] = 0.0
        hyper = {"a": rng.uniform(0.3, 3), "b": rng.uniform(0.2, 2)}
    else:
        values = rng.poisson(rng.choice([0.5, 6.0, 40.0], n_rows))
        hyper = {"shape": rng.uniform(0.5, 3), "rate": rng.uniform(0.2, 2)}
    values = [None if rng.random() < missing else value for value in values.tolist()]
    return family, values, hyper


def random_covariance(d, rng):
    """A covariance whose correlations are neither small nor near 1."""
    root = rng.normal(size=(d, 2 * d + 2))
    return root @ root.T / (2 * d + 2)


def random_rows(family, n_rows, rng, d=3):
    """Random rows of a row family whose cells are exact in the table's types."""
    values = rng.multivariate_normal(np.zeros(d), 0.5 * random_covariance(d, rng), n_rows)
    values += rng.normal(size=(4, d))[rng.integers(4, size=n_rows)]
    if family.startswith("multivariate"):
        hyper = {
            "mu0": rng.normal(size=d),
            "kappa0": rng.uniform(0.1, 2),
            "nu0": d - 1 + rng.uniform(0.5, 5),
            "scale0": random_covariance(d, rng),
        }
    else:
        hyper = {
            "covariance": random_covariance(d, rng),
            "prior_mean": rng.normal(size=d),
            "prior_covariance": 4 * random_covariance(d, rng),
        }
    values = np.float32(values).astype(float)
    values = np.exp(values) if family == "multivariate_log_normal" else values
    return family, values.tolist(), hyper


def random_columns(families, n_rows, seed, missing=0.25):
    """For each family one dense and one gappy column."""
    rng = np.random.default_rng(seed)
    return [
        random_column(family, n_rows, rng, missing=rate)
        for family in families
        for rate in (0.0, missing)
    ]
