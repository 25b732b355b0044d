"""What the annealed estimators share: a table in memory, and chains that grow to all its rows."""

# SPDX-License-Identifier: BSD-3-Clause

import itertools
from collections.abc import Mapping
from inspect import signature
from numbers import Integral

import numpy as np
from sklearn.utils._missing import is_scalar_nan
from sklearn.utils._param_validation import Interval, StrOptions

from ..chains import STARTS, ChainPlan, run_chain
from ..encoding import (
    Encoder,
    atoms_or_auto,
    auto_family,
    by_column,
    prepare,
    spread_centres,
    with_bounds,
)
from ..families import FAMILIES, candidates, reads_sparse
from ..moves import MOVES
from ..parallel import InterruptNote, TimeLimit, say
from ..partition_priors import PARTITION_PRIORS
from ..predictive._loo import chain_weights
from ..predictive._margins import Margins
from ..predictive._tail import training_scores
from ..schedules import (
    SCHEDULES,
    BaseSchedule,
    CustomAnneal,
    SequentialGibbs,
    resolve_schedule,
)
from ..schedules._path import begun_in_turn
from ..states import Mixture
from ._answers import answers_of, of_separation
from ._base_chains import INTERRUPTED, BaseChains, check_states
from ._base_table import BaseTable
from ._evidence import check_gaps, check_schedule, evidence_of
from ._rounds import SweepCost, run_rounds
from ._verdict import failed, opinion, settled
from ._weighted_draws import weighted_draws

SKETCH_ROWS = 2000
BLOCK_ROWS = 8192  # rows that are scored at a time
DRAWS, FEW_DRAWS = 25, 4  # per chain by default, and if labels would take much memory
# Of chains that begin in the other way: sweeps before rounds follow. In tables of more than
# MANY_ROWS rows only OTHER_ROWS enter one after another, and the schedule's path follows.
OTHER_SWEEPS, MANY_ROWS, OTHER_ROWS = 10.0, 10_000, 1_000
DRAWS_BYTES = 2**28  # by default the labels of all draws take no more


class BaseAnnealed(BaseTable, BaseChains):
    """Base of the annealed estimators; see a subclass for parameters and attributes."""

    _parameter_constraints: dict = {
        **BaseTable._parameter_constraints,
        **BaseChains._parameter_constraints,
        "n_draws": [Interval(Integral, 1, None, closed="left"), StrOptions({"auto"})],
        "families": [str, Mapping],
        "rounding": [StrOptions({"auto"}), Mapping, None],
        "dates": [StrOptions({"elapsed", "periodic"})],
        "margins": [StrOptions({"model", "data"})],
        "partition_prior": [StrOptions(set(PARTITION_PRIORS))],
        "schedule": [StrOptions(SCHEDULES.keys()), BaseSchedule],
        "moves": [StrOptions({"auto"}), tuple, list],
    }
    _move_registries = (MOVES,)  # of what `moves` may name
    _auto_moves = ("gibbs", "split_merge")
    _has_views, _sweep_cost = False, SweepCost()
    _begins_in_pieces = False  # see chains/_pieces.py

    def _fit(self, X, strata):
        """Make the whole fit; return what `_keep` takes."""
        schedule = resolve_schedule(self.schedule)
        limit = TimeLimit(schedule.max_time if self.max_time is None else self.max_time)
        schedule.set_params(max_time=None)
        auto = schedule.is_auto
        moves = self._resolve_moves()
        self._check_partition_prior(moves)
        self._prior_grids()  # whose errors come before any work
        check_schedule(schedule, limit, moves)
        with self._all_or_nothing(None if auto and not limit else 1):
            seeds, of_start = self._seeds()
            encoder, cells = self._read(X)
            table = encoder.table(cells.noisy)
            check_gaps(schedule, encoder, table)
            schedule = self._started(schedule, table.n_rows)
            priors = self._prior_grids(table.n_rows, table.n_columns)

            def plan_of(encoder, table, in_views=False):
                hyper, grids, shared_grids = self._prepared(encoder, table, in_views)
                return ChainPlan(
                    table,
                    encoder.table_families,
                    hyper,
                    grids,
                    priors["concentration"],
                    moves,
                    view_grid=priors.get("view_concentration"),
                    partition_prior=self.partition_prior,
                    shared_grids=shared_grids,
                    **self._running(priors, table.n_rows),
                )

            encoder, decided, evidence = self._decided(
                encoder, X, cells, plan_of, self.hyperparameters, limit
            )
            n_kept = table.n_columns - encoder.apart.n_indicators
            if decided is not cells or len(encoder.apart.kept) < n_kept:
                table = encoder.table(decided.noisy)
            plan = plan_of(encoder, table, self._has_views)
            law = self._law_of({"X": encoder.fingerprint(table), "families": encoder.families_})
            states = self._first_states(law)
            check_states(states, plan)
            if None in states:
                plan = plan._replace(strata=self._strata(strata, schedule, plan, of_start))
            with InterruptNote() as note:
                results, interrupted, verdict, block = self._run(
                    limit, plan, schedule, seeds, states, auto, note
                )
                results = [result for result in results if result["trace"]["n_components"][-1] > 0]
                if not results:
                    raise KeyboardInterrupt
                if not interrupted:
                    results, interrupted = self._finished(results, plan, of_start, limit)
                rounded = bool(encoder.jitter.lattices)
                asked = encoder.table(decided.exact) if rounded else None
                fitted = self._results(encoder, plan, results, verdict, limit, asked)
                fitted["_margins"] = self._margins_of(encoder, table, X, fitted, limit)
                answers = self._answers(fitted, plan, encoder, limit)
                fitted["outlier_scores_"] = training_scores(
                    *weighted_draws(fitted), table, encoder.table_schema, limit, asked
                )
            interrupted |= note.noted
            fitted["converged_"] &= not interrupted
            agreed = not interrupted and settled(fitted["converged_"], answers)
            fitted["convergence_"] |= {"answers": answers, "settled": agreed}
            complaints = self._complaints(fitted, table.n_rows, **priors)
            complaints += self._complaints_of_weights(fitted["chain_weights_"])
            if interrupted:
                complaints.append(INTERRUPTED)
            elif len(results) < self.n_chains or not all(result["in_time"] for result in results):
                complaints.append(
                    f"max_time={limit.seconds:g} was over before each chain had given every row a "
                    f"cluster: of {self.n_chains} chains {len(results)} were run, and the fit took "
                    f"{limit.taken:.3g} seconds. Give more time, or fewer rows, columns or chains."
                )
        fitted["family_evidence_"] = evidence
        fitted["date_parts_"] = encoder.parts.names
        fitted |= evidence_of([result["log_evidence"] for result in results])
        fitted |= {"rounding_": encoder.jitter.steps, "_law": law, "_block": block}
        logarithms = [getattr(codec, "of_logarithms", False) for codec in encoder.codecs]
        fitted["logarithms_"] = np.flatnonzero(logarithms)
        fitted["_interrupted"] = interrupted
        return fitted, complaints

    def _prepared(self, encoder, table, in_views):
        """Hyperparameters to begin with, their grids, and those of what columns share, where views
        divide the columns or in one view of all, as families compete."""
        prepared = prepare(self.hyperparameters, encoder, table)
        if in_views:
            return by_column(*prepared, encoder.table_families, table)
        if PARTITION_PRIORS[self.partition_prior].bounded:
            prepared = spread_centres(*prepared, encoder.table_families)
        return *prepared, {}

    def _read(self, X):
        """The encoder fitted to a table, and its TrainingCells."""
        encoder = Encoder()
        cells = encoder.fit_encode(
            self,
            X,
            self.families,
            indicators=self._indicators(),
            proper=with_bounds(self.hyperparameters),
            rounding=self.rounding,
            dates=self.dates,
            decide=atoms_or_auto if self.margins == "data" else auto_family,
        )
        self._check_families(encoder)
        return encoder, cells

    def _margins_of(self, encoder, table, X, fitted, limit):
        """The Margins of the training rows, or of no column."""
        if self.margins == "model":
            return Margins()
        return Margins.of(encoder, table, X, *weighted_draws(fitted), limit)

    def _weigh(self, fitted, table):
        weights, densities = chain_weights(fitted["draws_"], table, fitted["converged_"])
        return {"chain_weights_": weights, "_log_densities": densities}

    def _answers(self, fitted, plan, encoder, limit):
        """`convergence_["answers"]`: only that about the cut where no figure says that chains
        disagree, and under a time limit."""
        of_cut, log_densities = of_separation(self, fitted), fitted.pop("_log_densities")
        if log_densities is None or limit or not failed(fitted["convergence_"]):
            return of_cut
        return answers_of(self, fitted, plan, encoder, log_densities) | of_cut

    def _complaints_of_weights(self, weights):
        """What to say if chains do not count alike; without figures, as in `disagreement`."""
        if np.all(weights == weights.max()):
            return []
        return [
            f"The rows are less probable under some chains, which count less in queries, or not at "
            f"all; `chain_weights_` has the weights. {self._advice}"
        ]

    def _resolve_moves(self):
        if isinstance(self.moves, str):
            return self._auto_moves
        known = [name for registry in self._move_registries for name in registry]
        unknown = [move for move in self.moves if not (isinstance(move, str) and move in known)]
        if unknown or "gibbs" not in self.moves:
            raise ValueError(
                f"moves must be 'auto' or names among {sorted(known)}, 'gibbs' with them; "
                f"got {self.moves!r}"
            )
        return tuple(self.moves)

    @property
    def _partition_prior(self):
        return self.partition_prior

    def _check_partition_prior(self, moves):
        """Refuse what does not go with a bounded number of clusters."""
        if not PARTITION_PRIORS[self.partition_prior].bounded:
            return
        prior = f"partition_prior={self.partition_prior!r}"
        parameters = signature(type(self)).parameters
        for name in ("discount", "view_discount"):
            if name in parameters and getattr(self, name) != parameters[name].default:
                raise ValueError(
                    f"{name} is a parameter of process priors and must be left out with {prior}, "
                    f"got {getattr(self, name)!r}"
                )
        if "split_merge" not in moves:
            raise ValueError(
                f"moves must have 'split_merge' with {prior}, got {self.moves!r}: row by row, a "
                f"chain opens no cluster where all components have rows, and hardly ever another "
                f"component while there is nothing for it to hold"
            )

    def _strata(self, strata, schedule, plan, seed):
        """Codes of the rows' strata for stratified selection, given or from a sketch."""
        n_rows = plan.table.n_rows
        if strata is not None:
            if np.shape(strata) != (n_rows,):
                raise ValueError(f"strata must have shape ({n_rows},), got {np.shape(strata)}")
            codes = {}  # in order of appearance: labels of any sort, missing ones among them
            labels = (None if is_scalar_nan(label) else label for label in strata)
            return np.array([codes.setdefault(label, len(codes)) for label in labels])
        if schedule.selection != "stratified":
            return None
        return sketch(plan, seed)

    def _run(self, limit, plan, schedule, seeds, states, auto, note):
        """Run the chains, in rounds if the schedule does not number its sweeps and time may pass.

        Returns what `run_rounds` does; without rounds there are no verdict and no block.
        """
        in_rounds = auto and not limit
        races = self._has_views and schedule.races and not limit
        pieces = in_rounds and self._begins_in_pieces and schedule.races
        plan = plan._replace(starts=tuple(STARTS) if races else (), pieces=pieces)
        most_draws, starts = self._n_draws(auto, plan.table), [(plan, schedule)] * self.n_chains
        if in_rounds:
            others = itertools.cycle(self._other_starts(plan, schedule))
            starts[1::2] = itertools.islice(others, len(starts[1::2]))
        plans, schedules = zip(*starts)

        def run(later, n_draws, thin):
            return self._run_chains(limit, plans, schedules, seeds, later or states, n_draws, thin)

        def after(number, block, verdict):
            if self.verbose:
                say(f"round {number}, {block} sweeps: {opinion(verdict)}")
            return note.noted

        if not in_rounds:
            return *run(None, most_draws, self.thin), None, 0

        earlier = self._block if self._goes_on else 0
        cells = sum(FAMILIES[name].cell_cost * len(at) for name, at in plan.families.items())
        cost = self._sweep_cost._replace(cell=cells / plan.table.n_columns)
        fewest = min(FEW_DRAWS, most_draws) if self.n_draws == "auto" else most_draws
        n_draws = fewest, most_draws
        return run_rounds(run, plan.table, n_draws, self.thin, cost, earlier, after)

    def _n_draws(self, auto, table):
        """Return the draws per chain. By default a schedule that numbers its sweeps has one, its
        end, so that no sweeps are added. Others have DRAWS, or fewer if their labels would take
        much memory.
        """
        if self.n_draws != "auto":
            return self.n_draws
        if not auto:
            return 1
        size = 4 * table.n_rows * (table.n_columns if self._has_views else 1)  # bytes, at most
        return max(FEW_DRAWS, min(DRAWS, DRAWS_BYTES // (size * self.n_chains)))

    # ---- what a subclass may say otherwise ------------------------------------------------------

    def _other_starts(self, plan, schedule):
        """The plans and the schedules of every second chain where rounds follow, in turns.

        Chains that agree although they began differently are more likely to have arrived. The other
        way is the sequential pass and a few sweeps, or if that is the schedule's own, annealing.
        Where rows are many, a pass over all of them leaves clusters that no move at full data
        mends. Then so few rows enter one after another that moves still can, and the others as the
        schedule has it.
        """
        n_rows = plan.table.n_rows
        path = schedule.path(n_rows)
        begun = begun_in_turn(path, OTHER_ROWS) if n_rows > MANY_ROWS else None
        if isinstance(schedule, SequentialGibbs):
            other = resolve_schedule("anneal")
        elif begun is not None:
            other = CustomAnneal.from_path(begun)
        else:
            n_sweeps = path.assignments[-1] / n_rows
            other = SequentialGibbs(n_sweeps=float(min(n_sweeps, OTHER_SWEEPS)))
        return [(plan, other.set_params(selection=schedule.selection))]

    def _started(self, schedule, n_rows):
        """The schedule from the start that the estimator asks for."""
        return schedule

    def _finished(self, results, plan, of_start, limit):
        """Chains' results with the draws that are kept, and whether there was an interrupt."""
        return results, False

    def _running(self, priors, n_rows):
        """What else of ChainPlan says how a chain runs."""
        return {}

    def _indicators(self):
        """Columns whose presence is modelled."""
        return ()

    def _rivals(self):
        if not self._has_views:
            return None
        any_family = "view_annealing" not in self._resolve_moves()
        return [
            name
            for name in candidates("float")
            if not FAMILIES[name].joint or (any_family and FAMILIES[name].division is not None)
        ]

    def _check_families(self, encoder):
        """Refuse families of whole rows that views cannot divide where columns are partitioned."""
        for family in encoder.given_families if self._has_views else ():
            member = FAMILIES.get(family)
            if member is not None and member.joint and member.division is None:
                raise ValueError(
                    f"The family {family!r} describes whole rows, but {type(self).__name__}"
                    " partitions the columns: use AnnealedDPMixture, or another family."
                )
            if member is not None and member.joint and "view_annealing" in self.moves:
                raise ValueError(
                    f"moves: 'view_annealing' does not go with the family {family!r}: leave it out."
                )

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        tags.input_tags.sparse = reads_sparse(self.families)
        return tags


def sketch(plan, seed):
    """Strata from a quick look: cluster a few rows, then send every row to its cluster.

    Rows for which a new cluster is more probable than any of those found are a stratum of their
    own: that is where what is rare lies.

    Returns
    -------
    strata : ndarray of shape (n_rows,), int64
    """
    table = plan.table
    generator = np.random.Generator(np.random.PCG64(seed))
    order = np.argsort(generator.random(table.n_rows), kind="stable")
    rows = np.sort(order[:SKETCH_ROWS])
    small = table.take(rows)
    single = {"view_grid": None, "moves": ("gibbs", "split_merge")}
    result = run_chain(plan._replace(table=small, **single), SequentialGibbs(n_sweeps=3), seed)
    mixture = Mixture.from_arrays(result["draws"][0], table.empty_like())
    strata = np.empty(table.n_rows, dtype=np.int64)
    for start in range(0, table.n_rows, BLOCK_ROWS):
        stop = min(start + BLOCK_ROWS, table.n_rows)
        scores, log_weights = mixture.score_rows(table, start, stop)
        strata[start:stop] = (scores + log_weights).argmax(axis=1)
    return np.unique(strata, return_inverse=True)[1]
