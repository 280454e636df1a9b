"""Fits one quantity's constants to its measured runs: to all of them, or with a family of sources held out.

The residuals are computed by the same macros that answer users: a set of trial constants is a group of rows
of main.model_constants, and one query evaluates every run under every set, so a Jacobian takes one query. The
constants stay close to a physical expectation unless the runs say otherwise: each has a prior and a relative
width in catalog/model_parameters.csv (a Gaussian in its logarithm). No constant belongs to a single run; if
only one source measured a stack, that stack's constants stay at their priors when the source is held out.

Sources that belong to one lab, or share figures, form a family (catalog/measured_sources.csv): a stranger's
runs belong to no family that the model has seen, so whole families are held out.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import duckdb
import numpy as np
import numpy.typing as npt
from pydantic import BaseModel, ConfigDict
from scipy.optimize import minimize

from pipeline.catalog.tables import catalog_table

Array = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]

PARAMETERS_FILE = "model_parameters.csv"

RESIDUAL_SCALE = 0.1
"""Residuals of the logarithm up to this size count quadratically; larger residuals count linearly."""

RUN_WEIGHT = 0.1
"""The weight of all runs together, relative to the priors."""

HALF_LIFE_YEARS = 1.5
"""The age of its software at which a run counts half as much as a run of the newest software. Held-out errors
are smaller than with twice this age, or without weights for age, in memory and in speed."""

DIFFERENCE = 0.02
"""Half the step of the central differences, in multiples of a parameter's relative width."""

BOUND = 4.0
"""The number of relative widths by which the runs may move a constant away from its prior."""

MAX_STEPS = 40
"""The largest number of steps before the slopes are computed anew."""

LEAST_GAIN = 0.001
"""A descent ends when its slopes promise to lower the cost by less than this within the radius."""

MAX_LINEARIZATIONS = 6
"""The largest number of times that the slopes are computed anew while a fit starts from the priors."""

TRUST_RADIUS = 2.0
"""The largest number of relative widths by which a step may move a constant."""


class Parameter(BaseModel):
    """A constant of the model: its expected value, and how far the runs may move it (0 if it is fixed)."""

    model_config = ConfigDict(frozen=True)

    name: str
    quantity: str
    prior: float
    relative_width: float


@dataclass(frozen=True, slots=True)
class Quantity:
    """A fitted quantity: a predicted column of a macro, and the measured column that it is fitted to."""

    name: str
    macro: str
    predicted: str
    measured: str


QUANTITIES = (
    Quantity("memory", "memory_terms_of", "memory_gib", "measured_memory_gib"),
    Quantity("speed", "speed_terms_of", "tokens_per_second_per_gpu", "measured_tokens_per_second_per_gpu"),
)


def read_parameters() -> list[Parameter]:
    """Return the reviewed expectations for all constants. Raises CatalogError."""
    return catalog_table(PARAMETERS_FILE, Parameter)


ConstantSets = dict[str, dict[str, float]]
"""The constants of each calibration, keyed by the names of the calibration and the constant."""


def insert_constants(connection: duckdb.DuckDBPyConnection, sets: ConstantSets) -> None:
    """Replace the constants that the macros use."""
    connection.execute("DELETE FROM main.model_constants")
    rows = [
        (calibration, name, value)
        for calibration, constants in sets.items()
        for name, value in constants.items()
    ]
    calibrations, names, values = (list(column) for column in zip(*rows, strict=True))
    connection.execute(
        "INSERT INTO main.model_constants "
        "SELECT unnest($1::varchar[]), unnest($2::varchar[]), unnest($3::double[])",
        [calibrations, names, values],
    )


def group_weights(groups: npt.NDArray[np.str_], exponent: float) -> Array:
    """Return one weight per run: n ** -exponent for a run in a group of n."""
    _, index, counts = np.unique(groups, return_inverse=True, return_counts=True)
    return np.asarray(counts[index].astype(np.float64) ** -exponent)


def source_weights(sources: npt.NDArray[np.str_]) -> Array:
    """Return one weight per run: a source (or family) with n runs has a total weight of sqrt(n)."""
    return group_weights(sources, 0.5)


@dataclass(frozen=True, slots=True)
class Linearization:
    """The predictions for all runs at a point, as logarithms, and their slopes (runs x constants)."""

    point: Array
    predicted: Array
    slopes: Array


@dataclass
class Fitter:
    """Fits one quantity's constants to its measured runs."""

    connection: duckdb.DuckDBPyConnection
    quantity: Quantity
    parameters: Sequence[Parameter]
    fixed: dict[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.free = [p for p in self.parameters if p.quantity == self.quantity.name and p.relative_width > 0]
        names = {p.name for p in self.free}
        self.constants = {p.name: p.prior for p in self.parameters if p.name not in names} | self.fixed
        self.connection.execute(
            f"CREATE OR REPLACE TEMP TABLE runs_{self.quantity.name} AS "  # noqa: S608 (names from this module)
            f"SELECT * FROM main.measured_runs WHERE {self.quantity.measured} IS NOT NULL ORDER BY run_id"
        )
        rows = self.connection.execute(
            f"SELECT run_id, source, family, {self.quantity.measured}, software_age_years(software_date) "  # noqa: S608
            f"FROM runs_{self.quantity.name} JOIN main.measured_sources USING (source) ORDER BY run_id"
        ).fetchall()
        self.run_ids = [row[0] for row in rows]
        self.sources = np.array([row[1] for row in rows])
        self.families = np.array([row[2] for row in rows])
        self.measured = np.log(np.array([row[3] for row in rows], dtype=np.float64))
        self.age_weights = 0.5 ** (np.array([row[4] for row in rows], dtype=np.float64) / HALF_LIFE_YEARS)

    def constants_at(self, point: Array) -> dict[str, float]:
        """Return all constants at a point of the search space, fixed ones included."""
        free = {
            p.name: float(p.prior * np.exp(z * p.relative_width))
            for p, z in zip(self.free, point, strict=True)
        }
        return self.constants | free

    def own_constants_at(self, point: Array) -> dict[str, float]:
        """Return the constants of the fitted quantity at a point, without those of the other quantity."""
        at = self.constants_at(point)
        return {p.name: at[p.name] for p in self.parameters if p.quantity == self.quantity.name}

    def predict(self, points: Array) -> Array:
        """Return the logarithm of each run's prediction at each point (points x runs), in one query."""
        # The names are zero-padded, so that they sort in the order of the points.
        sets = {f"{index:04d}": self.constants_at(point) for index, point in enumerate(points)}
        insert_constants(self.connection, sets)
        answer = self.connection.execute(
            f"WITH _trials AS (SELECT r.*, t.calibration FROM runs_{self.quantity.name} r, "  # noqa: S608
            "(SELECT DISTINCT calibration FROM main.model_constants) t) "
            f"SELECT {self.quantity.predicted} AS predicted FROM {self.quantity.macro}('_trials') "
            "ORDER BY calibration, run_id"
        ).fetchnumpy()["predicted"]
        return np.log(np.asarray(answer, dtype=np.float64).reshape(len(points), -1))

    def linearize(self, point: Array) -> Linearization:
        """Return the predictions at a point, and their slopes by central differences, in one query."""
        steps = DIFFERENCE * np.eye(len(point))
        predicted = self.predict(np.vstack([point[None, :], point + steps, point - steps]))
        above, below = np.vsplit(predicted[1:], 2)
        return Linearization(point, predicted[0], (above - below).T / (2 * DIFFERENCE))

    def fit(self, mask: Mask, start: Linearization | None = None) -> Linearization:
        """Return the point that best explains the runs in the mask, deterministically to the last digit.

        From a start, the fit descends once, with the slopes of the start: to leave out a family moves the
        constants little, and to predict once takes a tenth of the time of predicting the slopes.
        """
        if start:
            return self._descend(start, mask)
        at = self.linearize(np.zeros(len(self.free)))
        for _ in range(MAX_LINEARIZATIONS):
            found = self._descend(at, mask)
            moved = float(np.abs(found.point - at.point).max())
            at = self.linearize(found.point)
            if moved < DIFFERENCE:
                break
        return at

    def _descend(self, start: Linearization, mask: Mask) -> Linearization:
        """Return the best point that is found without computing the slopes anew.

        Each trial corrects the slopes along its step (Broyden 1965, Mathematics of Computation 19:577): the
        macros have kinks, past which the slopes of the start do not lower the cost. Corrected slopes are good
        for these steps only, so those of the start are returned.
        """
        weights = self._weights(mask)
        at, cost, radius = start, self._cost(start.predicted[mask], start.point, mask, weights), TRUST_RADIUS
        for _ in range(MAX_STEPS):
            point, promised = self._minimum(at, radius, mask, weights)
            if cost - promised < LEAST_GAIN:
                break
            step = point - at.point
            moved = float(np.abs(step).max())
            predicted = self.predict(point[None, :])[0]
            if not np.isfinite(predicted).all():
                radius = moved / 3
                continue
            missed = predicted - at.predicted - at.slopes @ step
            slopes = at.slopes + np.outer(missed, step) / (step @ step)
            gain = cost - self._cost(predicted[mask], point, mask, weights)
            if gain > 0:
                at, cost = Linearization(point, predicted, slopes), cost - gain
                radius = min(2 * radius, TRUST_RADIUS)
            else:
                at, radius = Linearization(at.point, at.predicted, slopes), moved / 3
        return Linearization(at.point, at.predicted, start.slopes)

    def nested(self, at: Linearization, seen: Mask) -> Array:
        """Return the residuals of the seen runs, each as if the fit had not seen the run's family, either.

        One Gauss-Newton step from the fit leaves a family out: the infinitesimal jackknife of Giordano et al.
        2019, arXiv 1806.00550, with the Hessian of the runs that remain. Other runs' residuals are nan.
        """
        weights = np.where(seen, source_weights(self.sources) * self.age_weights, 0.0)
        scaled = (at.predicted - self.measured) / RESIDUAL_SCALE
        slopes = (_soft_slope(scaled) * np.sqrt(weights) / RESIDUAL_SCALE)[:, None] * at.slopes
        residuals = _soft(scaled) * np.sqrt(weights)
        hessian, gradient = slopes.T @ slopes, slopes.T @ residuals
        nested = np.full(len(scaled), np.nan)
        for family in sorted(set(self.families[seen])):
            group = self.families == family
            rest = seen & ~group
            share = RUN_WEIGHT * rest.sum() / weights[rest].sum()
            step = np.linalg.solve(
                share * (hessian - slopes[group].T @ slopes[group]) + np.eye(len(at.point)),
                share * (gradient - slopes[group].T @ residuals[group]) + at.point,
            )
            nested[group] = self.measured[group] - (at.predicted[group] - at.slopes[group] @ step)
        return nested

    def posterior_widths(self, at: Linearization) -> dict[str, float]:
        """Return each free constant's posterior width as a share of its prior width; 1 if unconstrained."""
        weights = self._weights(np.ones(len(self.run_ids), dtype=bool))
        scaled = (at.predicted - self.measured) / RESIDUAL_SCALE
        slopes = (_soft_slope(scaled) * weights / RESIDUAL_SCALE)[:, None] * at.slopes
        covariance = np.linalg.inv(slopes.T @ slopes + np.eye(len(at.point)))
        return dict(zip((p.name for p in self.free), np.sqrt(np.diag(covariance)).tolist(), strict=True))

    def _weights(self, mask: Mask) -> Array:
        weights = source_weights(self.sources[mask]) * self.age_weights[mask]
        return np.asarray(np.sqrt(RUN_WEIGHT * len(weights) * weights / weights.sum()))

    def _cost(self, predicted: Array, point: Array, mask: Mask, weights: Array) -> float:
        residuals = _soft((predicted - self.measured[mask]) / RESIDUAL_SCALE) * weights
        return float(residuals @ residuals + point @ point)

    def _minimum(self, at: Linearization, radius: float, mask: Mask, weights: Array) -> tuple[Array, float]:
        """Return the best point within the radius and its cost, treating the macros as linear."""
        predicted, slopes, measured = at.predicted[mask], at.slopes[mask], self.measured[mask]

        def cost(point: Array) -> tuple[float, Array]:
            scaled = (predicted + slopes @ (point - at.point) - measured) / RESIDUAL_SCALE
            residuals = _soft(scaled) * weights
            gradient = slopes.T @ (residuals * _soft_slope(scaled) * weights) / RESIDUAL_SCALE
            return float(residuals @ residuals + point @ point), 2 * (gradient + point)

        low, high = np.maximum(at.point - radius, -BOUND), np.minimum(at.point + radius, BOUND)
        found = minimize(
            cost, at.point, jac=True, method="L-BFGS-B", bounds=np.column_stack([low, high]),
            options={"ftol": 1e-12, "gtol": 1e-7, "maxiter": 1000},
        )  # fmt: skip
        return np.asarray(found.x), float(found.fun)


def _soft(scaled: Array) -> Array:
    """Return residuals whose squares are the soft L1 loss: quadratic below 1, linear above 1."""
    return np.asarray(np.sign(scaled) * np.sqrt(2 * (np.sqrt(1 + scaled**2) - 1)))


def _soft_slope(scaled: Array) -> Array:
    root = np.sqrt(1 + scaled**2)
    # Near 0, the quotient is 0 / 0, but its limit is 1.
    slope = np.abs(scaled) / (root * np.maximum(np.abs(_soft(scaled)), 1e-9))
    return np.asarray(np.where(np.abs(scaled) < 1e-6, 1.0, slope))


def gemm_ratio(connection: duckdb.DuckDBPyConnection) -> dict[str, float]:
    """Fit the share of dense 16-bit peak that measured GEMMs reach, as a function of watts per peak TFLOP."""
    rows = connection.execute(
        "SELECT ln(gemm_bf16_measured_tflops / bf16_dense_tflops), ln(tdp_w / bf16_dense_tflops) "
        "FROM main.gpus WHERE gemm_bf16_measured_tflops IS NOT NULL AND bf16_dense_tflops IS NOT NULL "
        "AND tdp_w IS NOT NULL "
        "AND derived_from IS NULL AND has_full_specs ORDER BY gpu_id"
    ).fetchall()
    ratio, watts = np.array(rows).T
    exponent, intercept = np.polyfit(watts, ratio, 1)
    return {"gemm_ratio_at_one_watt": float(np.exp(intercept)), "gemm_ratio_watt_exponent": float(exponent)}


@dataclass(frozen=True, slots=True)
class Fit:
    """A quantity's constants, fitted to all runs, and again without each family of sources in turn."""

    constants: ConstantSets
    """The constants of "all" and of each "without FAMILY"."""
    nested: dict[str, Array]
    """For each family, the other runs' residuals without this family and without the run's own family, in the
    order of the run_ids; nan for the family's runs. Bands made of these have not seen the family."""
    posterior_widths: dict[str, float]
    """Posterior widths of the free constants, as shares of their priors' widths."""


def fit_quantity(fitter: Fitter) -> Fit:
    """Fit the constants to all runs, and again without each family of sources in turn."""
    everything = fitter.fit(np.ones(len(fitter.run_ids), dtype=bool))
    constants = {"all": fitter.own_constants_at(everything.point)}
    nested: dict[str, Array] = {}
    for family in sorted(set(fitter.families)):
        mask = fitter.families != family
        fitted = fitter.fit(mask, everything)
        constants[f"without {family}"] = fitter.own_constants_at(fitted.point)
        nested[family] = fitter.nested(fitted, mask)
    return Fit(constants, nested, fitter.posterior_widths(everything))
