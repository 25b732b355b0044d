"""Encoding: every container and dtype in, the right family and cells out, and back again."""

import datetime
import decimal
import fractions
import pickle
import tracemalloc

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse
from sklearn.base import BaseEstimator

from skanneal.encoding import Encoder
from skanneal.encoding._codecs import CODECS
from skanneal.families import FAMILIES

NAN = float("nan")
LONG_INTEGER = getattr(pl, "Int128", pl.Int64)  # polars has the longer one since 1.18


def encode(X, families="auto", query=None):
    """The encoder and the encoded cells of X, or of the query if there is one."""
    estimator, encoder = BaseEstimator(), Encoder()
    cells = encoder.fit_encode(estimator, X, families).exact
    return encoder, cells if query is None else encoder.encode(estimator, query)


def families(X, named="auto"):
    """The family of each column."""
    encoder, _ = encode(X, named)
    return [codec.family for codec in encoder.codecs]


def mixed_pandas():
    return pd.DataFrame(
        {
            "length": [1.5, None, 2.5, 3.5],
            "colour": ["red", "blue", None, "red"],
            "size": pd.Categorical([10, 30, None, 10], categories=[30, 20, 10]),
            "wet": pd.array([True, None, False, True], dtype="boolean"),
            "count": pd.array([5, 3, None, 3], dtype="Int64"),
        }
    )


def mixed_polars():
    return pl.DataFrame(
        {
            "length": [1.5, None, 2.5, 3.5],
            "colour": pl.Series(["red", "blue", None, "red"], dtype=pl.Categorical),
            "size": pl.Series(["m", "l", None, "m"], dtype=pl.Enum(["l", "x", "m"])),
            "wet": [True, None, False, True],
            "count": [5, 3, None, 3],
        }
    )


def mixed_rows():
    return [
        [1.5, "red", "m", True, 5],
        [None, "blue", "l", None, 3],
        [2.5, None, None, False, None],
        [3.5, "red", "m", True, 3],
    ]


MIXED = {
    "pandas": mixed_pandas,
    "polars": mixed_polars,
    "rows": mixed_rows,
    "objects": lambda: np.array(mixed_rows(), dtype=object),
}
MIXED_FAMILIES = ["normal", "categorical", "categorical", "bernoulli", "categorical"]


def test_codecs_are_those_of_the_families():
    assert set(CODECS) == {family.cells for family in FAMILIES.values()}


class TestFamilies:
    @pytest.mark.parametrize("container", MIXED)
    def test_auto_by_dtype(self, container):
        assert families(MIXED[container]()) == MIXED_FAMILIES

    @pytest.mark.parametrize(
        ("n_distinct", "family"), [(20, "categorical"), (21, "normal"), (200_000, "normal")]
    )
    @pytest.mark.parametrize("dtype", [np.int64, np.uint32])
    def test_auto_integers_by_distinct_values(self, n_distinct, family, dtype):
        values = np.sort(np.resize(np.arange(n_distinct), 200_000)).astype(dtype)
        assert families(values[:, None]) == [family]

    @pytest.mark.parametrize(
        ("n_distinct", "family"),
        [(1, "constant"), (2, "categorical"), (8, "categorical"), (9, "normal")],
    )
    def test_auto_other_numbers_by_distinct_values(self, n_distinct, family):
        """One value stays a number."""
        values = np.resize(np.log(np.arange(n_distinct) + 0.1), 60)
        assert families(values[:, None]) == [family]

    @pytest.mark.parametrize(
        ("cells", "family"),
        [
            ([1, None, 1], "constant"),
            ([1.0, NAN, 1.0], "constant"),
            ([1, None, 2], "normal"),
            ([1.0, NAN, 2.5], "normal"),
            ([1, 2.5, None], "normal"),
            ([True, None, False], "bernoulli"),
            ([True, NAN, np.False_], "bernoulli"),
            ([True, 3, 1], "categorical"),
            ([None, None, None], "categorical"),
            (["a", 1, None], "categorical"),
            ([decimal.Decimal("1.5"), fractions.Fraction(1, 3), 2], "normal"),
            ([np.float32(1.5), pd.NA, 2], "normal"),
            (["1.5", "2", "3"], "categorical"),
        ],
    )
    def test_auto_objects(self, cells, family):
        assert families([[cell] for cell in cells]) == [family]
        array = np.empty((3, 1), dtype=object)
        array[:, 0] = cells
        assert families(array) == [family]
        assert families(pd.DataFrame({"x": pd.Series(cells, dtype=object)})) == [family]

    def test_mapping_by_name_position_mask_and_single_column(self):
        X = pd.DataFrame(np.arange(12).reshape(3, 4) // 4 % 2, columns=list("abcd"))
        expected = ["normal", "poisson", "bernoulli", "categorical"]
        for named in (
            {"normal": ["a"], "poisson": "b", "bernoulli": ["c"]},
            {"normal": [0], "poisson": 1, "bernoulli": np.array([-2])},
            {"normal": [True, False, False, False], "poisson": ["b"], "bernoulli": pd.Index(["c"])},
        ):
            assert families(X, named) == expected
        encoder, _ = encode(X, {"normal": ["d", "a"]})
        assert {name: js.tolist() for name, js in encoder.families_.items()} == {
            "normal": [0, 3],
            "categorical": [1, 2],
        }

    def test_one_name_for_all(self):
        assert families([[1, 0.5], [2, 3.0]], "categorical") == ["categorical"] * 2

    @pytest.mark.parametrize(
        ("named", "message"),
        [
            ("gaussian", "'gaussian' is neither 'auto' nor a family.*'normal'"),
            ({"gaussian": [0]}, "unknown family 'gaussian'"),
            ({"normal": ["a"], "poisson": [0]}, "column 'a' to two families, 'normal' and"),
            ({"normal": ["z"]}, r"families\['normal'\] names the column 'z', which is absent"),
            ({"normal": [2]}, "the column 2, which is absent"),
            ({"normal": [-3]}, "the column -3, which is absent"),
            ({"normal": [0.5]}, "the column 0.5, which is absent"),
            ({"normal": [True]}, "mask of 1 columns, but there are 2"),
        ],
    )
    def test_bad_families(self, named, message):
        with pytest.raises(ValueError, match=message):
            encode(pd.DataFrame({"a": [1, 2], "b": [3, 4]}), named)

    def test_families_of_a_wrong_type(self):
        with pytest.raises(TypeError, match="families must be 'auto'"):
            encode([[1.0]], 3)

    def test_names_need_named_columns(self):
        with pytest.raises(ValueError, match="'a', which is absent"):
            encode(np.ones((2, 2)), {"normal": ["a"]})

    @pytest.mark.parametrize(
        ("cells", "family", "message"),
        [
            ([0.5, 1.0], "poisson", "column 'x' must hold non-negative integers.*0.5"),
            ([-1, 1], "poisson", "column 'x' must hold non-negative integers.*-1"),
            ([2**32 - 1, 1], "poisson", "column 'x' must hold non-negative integers"),
            (["a", "b"], "poisson", "column 'x' holds 'a', but the family 'poisson' needs numbers"),
            ([0, 2], "bernoulli", "column 'x' must hold False, True, 0 or 1, got 2"),
            (["no", "yes"], "bernoulli", "column 'x' holds 'no'"),
            (["a", "b"], "normal", "column 'x' holds 'a'"),
        ],
    )
    def test_cells_that_cannot_be_of_the_family(self, cells, family, message):
        with pytest.raises(ValueError, match=message):
            encode(pd.DataFrame({"x": cells}), family)


class TestCells:
    @pytest.mark.parametrize("container", MIXED)
    def test_mixed_table(self, container):
        _, (length, colour, size, wet, count) = encode(MIXED[container]())
        deviation = np.std([1.5, 2.5, 3.5])
        np.testing.assert_allclose(length, [-1 / deviation, NAN, 0, 1 / deviation], rtol=1e-7)
        assert colour.tolist() == [1, 0, 2, 1]
        declared = container in ("pandas", "polars")
        assert size.tolist() == ([2, 0, 3, 2] if declared else [1, 0, 2, 1])
        assert wet.tolist() == [1, 2, 0, 1]
        assert count.tolist() == [1, 0, 2, 0]
        assert [cells.dtype.str[1:] for cells in (length, colour, wet)] == ["f4", "u1", "u1"]

    @pytest.mark.parametrize("container", MIXED)
    def test_schema_and_missing(self, container):
        encoder, columns = encode(MIXED[container](), {"poisson": [4]})
        dtypes, n_levels, offsets, scales = encoder.table_schema[:4]
        assert dtypes == ["f4", "u1", "u1", "u1", "u4"]
        assert n_levels.tolist() == [0, 2, 3 if container in ("pandas", "polars") else 2, 2, 0]
        np.testing.assert_allclose(offsets, [2.5, 0, 0, 0, 0])
        np.testing.assert_allclose(scales, [np.std([1.5, 2.5, 3.5]), 1, 1, 1, 1])
        assert [np.flatnonzero(mask).tolist() for mask in encoder.missing(columns)] == [
            [1],
            [2],
            [2],
            [1],
            [2],
        ]
        assert columns[4].tolist() == [5, 3, 0xFFFFFFFF, 3]

    @pytest.mark.parametrize(
        ("n_levels", "dtype"), [(254, "u1"), (255, "u2"), (65534, "u2"), (65535, "u4")]
    )
    def test_smallest_code_dtype(self, n_levels, dtype):
        encoder, (codes,) = encode(np.arange(n_levels)[:, None], "categorical")
        assert encoder.table_schema.dtypes == [dtype]
        assert codes.dtype == np.dtype(dtype)
        np.testing.assert_array_equal(codes, np.arange(n_levels))

    @pytest.mark.parametrize(
        "values",
        [
            np.array([-128, 127, 0, 127], dtype=np.int8),
            np.array([255, 0, 7, 255], dtype=np.uint8),
            np.array([2**64 - 1, 2**63, 2**64 - 1], dtype=np.uint64),
            np.array([-(2**63), 2**63 - 1, 0, 0]),
            np.array([0.25, -3.0, 0.25]),
            np.array([1e300, -0.0, 0.0]),
            np.array([True, False, True]),
        ],
    )
    def test_numbers_as_levels(self, values):
        encoder, (codes,) = encode(values[:, None], "categorical")
        levels, expected = np.unique(values, return_inverse=True)
        assert encoder.levels_ == [levels.tolist()]
        np.testing.assert_array_equal(codes, expected)

    def test_mixed_objects_as_levels_in_order_of_appearance(self):
        encoder, (codes,) = encode([["b"], [1], ["a"], [1.0], [None]])
        assert encoder.levels_ == [["b", 1, "a"]]
        assert codes.tolist() == [0, 1, 2, 1, 3]

    @pytest.mark.parametrize("noise", [1e-3, 1.0])
    def test_offset_keeps_small_noise(self, noise):
        draws = np.random.default_rng(0).normal(0, noise, 2000)
        values = 2952788047.4 + draws
        encoder, (cells,) = encode(values[:, None])
        _, _, (offset,), (scale,) = encoder.table_schema[:4]
        assert scale == pytest.approx(np.std(values - 2952788047.4), rel=1e-6)
        restored = cells.astype(np.float64) * scale + offset
        np.testing.assert_allclose(restored - 2952788047.4, draws, atol=1e-6 + 1e-6 * noise)

    @pytest.mark.parametrize("factor", [1e300, 1.7e308, 1e-300, 1e-320, 1.0])
    def test_extreme_scales(self, factor):
        draws = np.random.default_rng(1).uniform(-1, 1, 1000)
        draws[:2] = -1, 1
        encoder, (cells,) = encode((draws * factor)[:, None])
        _, _, (offset,), (scale,) = encoder.table_schema[:4]
        assert np.isfinite([offset, scale]).all() and scale > 0
        if factor > 1e-310:  # below, float64 itself has few digits left
            np.testing.assert_allclose(cells, (draws - draws.mean()) / draws.std(), atol=1e-5)
        assert np.isfinite(cells).all()

    def test_outlying_query_stays_finite(self):
        for training in ([0.0, 1e-300], [0.0, 1.0], [-1.7e308, 1.7e308]):
            query = [[-1.7e308], [1.7e308]]
            _, (cells,) = encode([[value] for value in training], query=query)
            assert np.isfinite(cells).all() and cells[0] < cells[1]

    def test_difference_from_the_offset_does_not_overflow(self):
        _, (cells,) = encode([[1.0e308], [1.6e308]], query=[[-1.7e308]])
        assert cells[0] == pytest.approx(-10)

    @pytest.mark.parametrize("value", [0.1, -3.7e200, 0.0, 2952788047.4])
    def test_constant_column(self, value):
        encoder, (cells,) = encode(np.full((1001, 1), value))
        assert encoder.table_schema.offsets.tolist() == [value]
        assert encoder.table_schema.scales.tolist() == [1.0]
        assert not cells.any()

    def test_one_row(self):
        assert [cells.tolist() for cells in encode([[2.5, "a", True, 4]])[1]] == [
            [0],
            [0],
            [1],
            [0],
        ]

    def test_missing_rows_and_columns(self):
        X = pd.DataFrame(
            {
                "float": [NAN, NAN],
                "text": pd.array([None, None], dtype="string"),
                "declared": pd.Categorical([None, None], categories=["a", "b"]),
                "wet": pd.array([None, None], dtype="boolean"),
                "integer": pd.array([None, None], dtype="Int64"),
            }
        )
        encoder, columns = encode(X)
        assert [codec.family for codec in encoder.codecs] == ["categorical"] * 5
        assert encoder.table_schema.n_levels.tolist() == [1] * 5
        assert encoder.table_schema.scales.tolist() == [1.0] * 5
        assert all(mask.all() for mask in encoder.missing(columns))
        everything = pl.DataFrame({"a": [None, None]})
        assert families(everything) == ["categorical"]
        assert families(everything.cast(pl.String)) == ["categorical"]
        assert families(everything, "poisson") == ["poisson"]

    @pytest.mark.parametrize(
        "dtype",
        ["float16", "float32", "longdouble", "int8", "uint16", "Int32", "Float32", "UInt8", "O"],
    )
    def test_numeric_dtypes_agree(self, dtype):
        X = pd.DataFrame({"x": [1, 4, 2, 7]})
        expected = encode(X, "normal")[1]
        np.testing.assert_array_equal(encode(X.astype(dtype), "normal")[1], expected)
        if dtype.islower():
            np.testing.assert_array_equal(encode(X.to_numpy(dtype), "normal")[1], expected)

    @pytest.mark.filterwarnings("error")
    def test_small_floats_do_not_overflow(self):
        """Whether numbers are whole is asked of numbers that float16 does not hold."""
        X = np.random.default_rng(0).normal(size=(60, 2)).astype(np.float16)
        assert families(X) == ["normal", "normal"]

    @pytest.mark.parametrize("dtype", ["U", "S", "O"])
    def test_text_arrays(self, dtype):
        _, columns = encode(np.array([["b", "x"], ["a", "x"], ["b", "y"]], dtype=dtype))
        assert [cells.tolist() for cells in columns] == [[1, 0, 1], [0, 0, 1]]

    @pytest.mark.parametrize("dtype", ["object", "string", "category", None])
    def test_pandas_text(self, dtype):
        X = pd.DataFrame({"x": pd.Series(["b", "a", None], dtype=dtype)})
        assert encode(X)[1][0].tolist() == [1, 0, 2]

    @pytest.mark.parametrize(
        "dtype", [pl.Int8, pl.UInt64, LONG_INTEGER, pl.Float32, pl.Decimal(5, 1)]
    )
    def test_polars_numbers(self, dtype):
        X = pl.DataFrame({"x": pl.Series([1, None, 3]).cast(dtype)})
        np.testing.assert_allclose(encode(X, "normal")[1][0], [-1, NAN, 1])

    def test_query_values_unseen_and_missing(self):
        X = pd.DataFrame({"x": pd.Categorical(["a", "b"], categories=["b", "a", "z"])})
        for query in (
            pd.DataFrame({"x": ["z", "new", None]}),
            pd.DataFrame({"x": pd.Categorical(["z", "new", None])}),
            pl.DataFrame({"x": ["z", "new", None]}),
            pl.DataFrame({"x": pl.Series(["z", "new", None], dtype=pl.Enum(["new", "q", "z"]))}),
        ):
            assert encode(X, query=query)[1][0].tolist() == [2, 4, 3]
        for nothing in ([[NAN]], [[None]], np.array([[NAN]]), np.array([[pd.NA]])):
            with pytest.warns(UserWarning, match="does not have valid feature names"):
                assert encode(X, query=nothing)[1][0].tolist() == [3]

    @pytest.mark.parametrize("query", [[[2.0], [5], [NAN]], np.array([[2.0], [5.0], [NAN]])])
    def test_query_of_another_numeric_dtype(self, query):
        assert encode([[1], [2], [3]] * 2, query=query)[1][0].tolist() == [1, 4, 3]

    @pytest.mark.parametrize(
        ("cells", "family", "query", "message"),
        [
            ([True, False], "auto", 2, "column 0 must hold False, True, 0 or 1, got 2"),
            ([True, False], "auto", "yes", "column 0 holds 'yes', but the family 'bernoulli'"),
            ([1.5, 2.5], "auto", "a", "column 0 holds 'a', but the family 'normal' needs numbers"),
            ([1, 2], "poisson", -1, "column 0 must hold non-negative integers"),
            ([1.5, 2.5], "auto", np.inf, "infinity.*column 0"),
        ],
    )
    def test_foreign_values_in_queries(self, cells, family, query, message):
        with pytest.raises(ValueError, match=message):
            encode([[cell] for cell in cells], family, query=[[query]])

    @pytest.mark.filterwarnings("ignore:X (has|does not have valid) feature names")
    @pytest.mark.parametrize("fitted", MIXED)
    @pytest.mark.parametrize("asked", MIXED)
    def test_any_container_as_query(self, fitted, asked):
        X, query = MIXED[fitted](), MIXED[asked]()
        _, columns = encode(X)
        _, queried = encode(X, query=query)
        for j in range(5):
            if j != 2 or fitted == asked:  # pandas' sizes are numbers, the others' are text
                np.testing.assert_array_equal(queried[j], columns[j])


class TestInput:
    @pytest.mark.parametrize(
        ("X", "error", "message"),
        [
            (scipy.sparse.csr_array(np.eye(3)), TypeError, "[Ss]parse.*'multinomial'"),
            (
                pd.DataFrame({"x": pd.arrays.SparseArray([0, 1])}),
                TypeError,
                "column 'x' is sparse.*'multinomial'",
            ),
            (np.ma.masked_array([[1.0]], [[True]]), TypeError, r"X.filled\(numpy.nan\)"),
            (np.zeros(3, dtype=[("a", float)]), TypeError, "Structured arrays"),
            (pl.LazyFrame({"a": [1]}), TypeError, r"X.collect\(\)"),
            (np.array([[1 + 1j]]), ValueError, "Complex data not supported"),
            ([[1 + 1j]], ValueError, "Complex data not supported\ncolumn 0"),
            (pd.DataFrame({"x": [1j]}), ValueError, "Complex data not supported\ncolumn 'x'"),
            (np.array([[{}]]), TypeError, "argument must be .* string.* number.*dict.*column 0"),
            ([[[1, 2], 3]], TypeError, "argument must be .* string.* number.*list.*column 0"),
            (np.array([[1.0, np.inf]]), ValueError, "infinity.*column 1"),
            (np.array([[1.0, -np.inf]]), ValueError, "infinity.*column 1"),
            ([["a", 10**400]], ValueError, "infinity.*column 1"),
            ([["a", np.inf], ["b", 1]], ValueError, "infinity.*column 1"),
            (pd.DataFrame({"x": pd.array([np.inf], "Float64")}), ValueError, "infinity.*'x'"),
            (pd.DataFrame({"x": pd.period_range("2020", periods=2)}), TypeError, "'x' holds times"),
            (pl.DataFrame({"x": [datetime.time(1)]}), TypeError, "'x' holds times"),
            ([[datetime.time(1)]], TypeError, "column 0 holds times"),
            ([[datetime.date(2020, 1, 1)], ["a"]], TypeError, "column 0 holds times"),
            ([[datetime.date(2020, 1, 1)], [datetime.timedelta(1)]], TypeError, "holds times"),
            (np.ones(3), ValueError, "Reshape your data"),
            ([1.0, 2.0], ValueError, "Reshape your data"),
            (["ab", "cd"], ValueError, "Reshape your data"),
            ([], ValueError, "Reshape your data"),
            ({"a": [1]}, ValueError, "Reshape your data"),
            (3.0, ValueError, "Reshape your data"),
            (pd.Series([1.0]), ValueError, "Reshape your data"),
            (pl.Series([1.0]), ValueError, "Reshape your data"),
            (np.ones((2, 2, 2)), ValueError, "dim 3, while dim <= 2"),
            ([[1, 2], [3]], ValueError, "differ in length: row 0 has 2 cells, row 1 has 1"),
            ([np.ones(2), np.ones(3)], ValueError, "differ in length"),
            (np.empty((0, 3)), ValueError, r"0 sample\(s\) \(shape=\(0, 3\)\)"),
            (np.empty((12, 0)), ValueError, r"0 feature\(s\) \(shape=\(12, 0\)\) while a minimum"),
            (pd.DataFrame(), ValueError, r"0 sample\(s\)"),
            ([[], []], ValueError, r"0 feature\(s\)"),
            (pd.DataFrame({"a": [1], 2: [3]}), TypeError, "Feature names are only supported"),
        ],
        ids=lambda value: type(value).__name__,
    )
    def test_bad_input_names_the_trouble_and_leaves_no_attribute(self, X, error, message):
        estimator = BaseEstimator()
        with pytest.raises(error, match=message):
            Encoder().fit_encode(estimator, X)
        assert vars(estimator) == {}

    def test_columns_that_differ_from_those_of_the_fit(self):
        X = pd.DataFrame({"a": [1.0, 2.0], "b": ["x", "y"]})
        with pytest.raises(ValueError, match="feature names should match"):
            encode(X, query=X[["b", "a"]])
        with pytest.raises(ValueError, match="feature names should match"):
            encode(X, query=X.rename(columns={"b": "c"}))
        with pytest.raises(ValueError, match="X has 1 features, but .* expecting 2 features"):
            encode(X.to_numpy(), query=X.to_numpy()[:, :1])
        with pytest.raises(ValueError, match="Reshape your data"):
            encode(X.to_numpy(), query=X.to_numpy()[0])

    @pytest.mark.parametrize("library", [pd, pl])
    def test_attributes_of_the_estimator(self, library):
        estimator = BaseEstimator()
        Encoder().fit_encode(estimator, library.DataFrame({"a": [1.0], "b": ["x"]}))
        assert estimator.n_features_in_ == 2
        assert estimator.feature_names_in_.tolist() == ["a", "b"]
        Encoder().fit_encode(estimator, [[1.0, 2.0, 3.0]])
        assert estimator.n_features_in_ == 3
        assert not hasattr(estimator, "feature_names_in_")

    @pytest.mark.parametrize("container", MIXED)
    def test_data_of_the_caller_is_untouched(self, container):
        X, untouched = MIXED[container](), pickle.dumps(MIXED[container]())
        estimator, encoder = BaseEstimator(), Encoder()
        encoder.fit_encode(estimator, X)
        encoder.encode(estimator, X)
        encoder.decode([np.zeros(4), *[np.zeros(4, dtype=int)] * 4], like=X)
        assert pickle.dumps(X) == untouched or container in ("pandas", "polars")
        if container in ("pandas", "polars"):
            assert X.equals(MIXED[container]())

    def test_array_with_magic_method(self):
        class Lazy:
            def __array__(self, dtype=None, copy=None):
                return np.array([[1.0, 2.0], [3.0, 4.0]])

        assert len(encode(Lazy())[1]) == 2

    @pytest.mark.parametrize("order", ["C", "F"])
    def test_read_only_memory_map_is_not_copied(self, tmp_path, order):
        shape = (20_000, 50)
        path = tmp_path / "X.dat"
        X = np.memmap(path, dtype=np.float64, mode="w+", shape=shape, order=order)
        X[:] = np.random.default_rng(0).normal(size=shape)
        X.flush()
        X = np.memmap(path, dtype=np.float64, mode="r", shape=shape, order=order)
        tracemalloc.start()
        _, columns = encode(X)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        encoded = sum(cells.nbytes for cells in columns)
        one_column = X.nbytes / shape[1]
        assert peak < encoded + 8 * one_column

    def test_pickle_holds_no_rows(self):
        X = pd.concat([mixed_pandas()] * 1000)
        estimator, encoder = BaseEstimator(), Encoder()
        columns = encoder.fit_encode(estimator, X).exact
        text = pickle.dumps(encoder)
        assert len(text) < 3000
        restored = pickle.loads(text)
        for ours, theirs in zip(columns, restored.encode(estimator, X)):
            np.testing.assert_array_equal(ours, theirs)
        assert restored.table_schema.dtypes == encoder.table_schema.dtypes


ANSWERS = [
    np.array([9.0, 9.25, 9.0, 9.0]),
    np.array([0, 0, 1, 0]),
    np.array([0, 0, 1, 0]),
    np.array([0, 1, 0, 0]),
    np.array([1, 1, 1, 1]),
]
CODES = [np.array(codes) for codes in ([0, 1], [1, 0], [0, 1])]


class TestDecode:
    def test_fill_pandas(self):
        X = mixed_pandas()
        X.index = list("pqrs")
        encoder, _ = encode(X)
        filled = encoder.decode(ANSWERS, like=X)
        expected = X.copy()
        expected.loc["q", ["length", "wet"]] = [9.25, True]
        expected.loc["r", ["colour", "size", "count"]] = ["red", 20, 5]
        pd.testing.assert_frame_equal(filled, expected)
        assert filled is not X and X.isna().to_numpy().sum() == 5

    def test_fill_polars(self):
        X = mixed_polars()
        encoder, _ = encode(X)
        filled = encoder.decode(ANSWERS, like=X)
        assert filled.schema == X.schema
        assert filled.rows() == [
            (1.5, "red", "m", True, 5),
            (9.25, "blue", "l", True, 3),
            (2.5, "red", "x", False, 5),
            (3.5, "red", "m", True, 3),
        ]

    @pytest.mark.parametrize("container", ["rows", "objects"])
    def test_fill_objects(self, container):
        X = MIXED[container]()
        encoder, _ = encode(X)
        filled = encoder.decode(ANSWERS, like=X)
        assert type(filled) is type(X)
        rows = filled if container == "rows" else filled.tolist()
        assert rows == [
            [1.5, "red", "m", True, 5],
            [9.25, "blue", "l", True, 3],
            [2.5, "red", "m", False, 5],
            [3.5, "red", "m", True, 3],
        ]
        assert [type(cell) for cell in rows[2]] == [float, str, str, bool, int]

    def test_rows_that_are_tuples_stay_tuples(self):
        encoder, _ = encode([(1.0, "a"), (NAN, "b")])
        assert (
            encoder.decode([np.full(2, 5.0), np.zeros(2, int)], like=[(NAN, "b")] * 2)
            == [(5.0, "b")] * 2
        )

    @pytest.mark.parametrize("dtype", [np.float32, np.float64, object])
    def test_fill_array_keeps_dtype(self, dtype):
        X = np.array([[1, NAN], [NAN, 2]], dtype=dtype)
        X.flags.writeable = False
        encoder, _ = encode(X, "normal")
        filled = encoder.decode([np.array([7.0, 8.0]), np.array([0.5, 0.5])], like=X)
        assert filled.dtype == X.dtype
        assert filled.tolist() == [[1, 0.5], [8, 2]]

    def test_fill_with_masks(self):
        X = np.array([[1.0, 2.0], [3.0, 4.0]])
        encoder, _ = encode(X)
        masks = [np.array([True, False]), np.array([False, False])]
        filled = encoder.decode([np.array([-1.0, -2.0]), np.zeros(2)], like=X, masks=masks)
        assert filled.tolist() == [[-1.0, 2.0], [3.0, 4.0]]

    @pytest.mark.filterwarnings("ignore:X does not have valid feature names")
    def test_text_makes_an_array_of_numbers_one_of_objects(self):
        encoder, _ = encode(pd.DataFrame({"a": ["1", "2"], "b": [0.5, 1.5]}))
        filled = encoder.decode([np.array([1]), np.array([0.0])], like=np.array([[NAN, 1.5]]))
        assert filled.dtype == object
        assert filled.tolist() == [["2", 1.5]]

    def test_fractions_make_integers_floats(self):
        wide = list(range(30))
        X = pd.DataFrame({"a": pd.array([*wide, None], "Int64")})
        encoder, _ = encode(X)
        filled = encoder.decode([np.full(31, 14.5)], like=X)
        assert str(filled.dtypes["a"]) == "Float64"
        assert filled["a"].tolist() == [*wide, 14.5]
        assert encoder.decode([np.full(31, 14.0)], like=X).dtypes["a"] == X.dtypes["a"]
        X = pl.DataFrame({"a": [*wide, None]})
        assert encoder.decode([np.full(31, 14.5)], like=X)["a"].to_list() == [*wide, 14.5]
        X = np.arange(30)[:, None]
        encoder, _ = encode(X)
        assert encoder.decode([np.array([1.5, 2.0])]).tolist() == [[1.5], [2.0]]
        assert encoder.decode([np.array([1.0, 2.0])]).dtype == X.dtype

    def test_small_integers_grow_rather_than_wrap(self):
        encoder, _ = encode(np.array([[200], [3]], dtype=np.uint8), "poisson")
        assert encoder.decode([np.array([300.0, 1.0])]).tolist() == [[300.0], [1.0]]
        assert encoder.decode([np.array([30.0, 1.0])]).dtype == np.uint8

    def test_levels_unknown_to_the_query_are_added(self):
        encoder, _ = encode(pd.DataFrame({"x": ["a", "b"]}))
        answers = [np.array([1, 1])]
        X = pd.DataFrame({"x": pd.Categorical(["a", None], ordered=True)})
        filled = encoder.decode(answers, like=X)["x"]
        assert filled.tolist() == ["a", "b"]
        assert filled.dtype == pd.CategoricalDtype(["a", "b"], ordered=True)
        X = pl.DataFrame({"x": pl.Series(["a", None], dtype=pl.Enum(["a"]))})
        assert encoder.decode(answers, like=X)["x"].to_list() == ["a", "b"]

    @pytest.mark.filterwarnings("ignore:No cell was observed")
    def test_column_without_levels_stays_missing(self):
        for X in (
            pd.DataFrame({"x": pd.array([None, None], "string")}),
            pl.DataFrame({"x": [None, None]}, schema={"x": pl.String}),
        ):
            encoder, _ = encode(X)
            for like in (X, None):
                filled = encoder.decode([np.array([0, 0])], like=like)
                assert filled.equals(X)

    @pytest.mark.parametrize("container", ["pandas", "polars"])
    def test_new_frame_has_the_columns_of_the_fit(self, container):
        X = MIXED[container]()
        encoder, _ = encode(X)
        encoder = pickle.loads(pickle.dumps(encoder))
        new = encoder.decode([answer[:3] for answer in ANSWERS])
        assert list(new.columns) == list(X.columns)
        assert [str(dtype) for dtype in new.dtypes] == [str(dtype) for dtype in X.dtypes]
        assert new["size"].to_list() == ([30, 30, 20] if container == "pandas" else ["l", "l", "x"])
        assert new["wet"].to_list() == [False, True, False]
        assert new["count"].to_list() == [5, 5, 5]

    def test_new_frame_of_plain_dtypes(self):
        X = pd.DataFrame({"a": [1.5, 2.5], "b": [3, 4], "c": [True, False], "d": ["x", "y"]})
        X = X.astype({"a": "float32", "b": "int16"})
        encoder, _ = encode(X, {"categorical": "b"})
        new = encoder.decode([np.array([1.5, 2.5]), *CODES])
        pd.testing.assert_frame_equal(new, X)

    def test_new_frame_with_unnamed_columns(self):
        X = pd.DataFrame([[1.5, 2.5], [3.5, 0.5]])
        encoder, _ = encode(X)
        pd.testing.assert_frame_equal(encoder.decode(list(X.to_numpy().T)), X)

    @pytest.mark.parametrize(
        "X",
        [
            [[1.5, "a", True, 2], [0.5, "b", False, 3]],
            np.array([[1.5, "a", True, 2], [0.5, "b", False, 3]], dtype=object),
        ],
        ids=["rows", "objects"],
    )
    def test_new_objects(self, X):
        encoder, _ = encode(X, {"categorical": 3})
        new = encoder.decode([np.array([1.5, 0.5]), *CODES])
        assert type(new) is type(X)
        assert np.array_equal(new, X)
        assert [type(cell) for cell in new[0]] == [float, str, bool, int]

    @pytest.mark.parametrize("dtype", [np.bool_, np.int8, np.float32, "U3"])
    def test_new_array_keeps_dtype(self, dtype):
        X = np.array([[1, 0], [0, 1], [0, 1]]).astype(dtype)
        encoder, columns = encode(X, "normal" if dtype == np.float32 else "auto")
        if dtype == np.float32:
            columns = list(X.T)
        new = encoder.decode(columns)
        assert new.dtype == X.dtype
        np.testing.assert_array_equal(new, X)

    def test_numeric_categories_of_a_continuous_family(self):
        X = pd.DataFrame({"x": pd.Categorical([1, 2, None])})
        encoder, _ = encode(X, "normal")
        assert encoder.decode([np.array([0.5, 1.0])])["x"].tolist() == [0.5, 1.0]
        assert encoder.decode([np.full(3, 1.5)], like=X)["x"].tolist() == [1.0, 2.0, 1.5]


# ------------------------------------------------------------------ whole numbers at the limits
LIMITS = {
    "array": lambda cells: np.array(cells, dtype=np.int64)[:, None],
    "rows": lambda cells: [[cell] for cell in cells],
    "pandas": lambda cells: pd.DataFrame({"a": np.array(cells, dtype=np.int64)}),
    "pandas Int64": lambda cells: pd.DataFrame({"a": pd.array(cells, dtype="Int64")}),
    "polars": lambda cells: pl.DataFrame({"a": pl.Series(cells, dtype=pl.Int64)}),
    "polars Int128": lambda cells: pl.DataFrame({"a": pl.Series(cells, dtype=LONG_INTEGER)}),
}


def cells_of_one_column(table):
    if isinstance(table, pl.DataFrame):
        return table["a"].to_list()
    return table["a"].tolist() if isinstance(table, pd.DataFrame) else [row[0] for row in table]


@pytest.mark.parametrize("container", LIMITS)
@pytest.mark.parametrize("family", ["normal", "categorical"])
@pytest.mark.parametrize("cell", [2**63 - 1, -(2**63)])
def test_whole_numbers_at_the_limit_keep_their_sign(cell, family, container):
    """float64 rounds 2**63 - 1 to a number that no int64 is."""
    X, encoder = LIMITS[container]([cell] * 4), Encoder()
    columns = encoder.fit_encode(BaseEstimator(), X, family).exact
    answer = [np.full(4, float(cell))] if family == "normal" else columns
    shown = cells_of_one_column(encoder.decode(answer))
    assert shown == [float(cell) if family == "normal" else cell] * 4


@pytest.mark.parametrize("cells", [[2**70, -(2**70), 2**69, 0], [3, 1, 4, 1]])
@pytest.mark.parametrize("container", [LIMITS["rows"], LIMITS["polars Int128"]])
def test_integers_of_128_bits(cells, container):
    """Numbers beyond 64 bits come back as floats."""
    X, encoder = container(cells), Encoder()
    encoder.fit_encode(BaseEstimator(), X, "normal")
    shown = cells_of_one_column(encoder.decode([np.array(cells, dtype=float)]))
    assert shown == [float(cell) for cell in cells]


@pytest.mark.parametrize("dtype", [pl.String, pl.Categorical, pl.Null, pl.Int64, pl.Boolean])
def test_numbers_fill_a_polars_column_without_a_cell(dtype):
    """Of a column of nulls its dtype says nothing: families that give numbers may fill it."""
    X = pl.DataFrame({"a": pl.Series([None] * 3, dtype=dtype), "b": [1.0, 2.0, 3.0]})
    for family, fill in (("normal", [0.5, 1.0, 2.5]), ("poisson", [2.0, 0.0, 7.5])):
        encoder, _ = encode(X, {family: ["a"], "normal": ["b"]} if family != "normal" else family)
        filled = encoder.decode(
            [np.array(fill), np.zeros(3)], like=X, masks=[np.ones(3, bool), None]
        )
        assert filled["a"].to_list() == fill and filled["b"].to_list() == [1.0, 2.0, 3.0]
    encoder, _ = encode(X, {"bernoulli": ["a"], "normal": ["b"]})
    filled = encoder.decode(
        [np.array([1, 0, 1]), np.zeros(3)], like=X, masks=[np.ones(3, bool), None]
    )
    assert filled["a"].to_list() == [1, 0, 1]
