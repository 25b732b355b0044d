"""A schedule given by name, or left to the default, has no parameters to set."""

# SPDX-License-Identifier: BSD-3-Clause

from sklearn.base import BaseEstimator


class NamedScheduleMixin:
    """Mixin of the estimators with a `schedule`: says what is wrong with setting its parameters."""

    def set_params(self, **params):
        """Set parameters; ``schedule__max_time`` and the like are those of a schedule object.

        Parameters
        ----------
        **params : dict
            By name.

        Returns
        -------
        self : estimator

        Raises
        ------
        ValueError
            If there is no such parameter, or if `schedule` is a name or None, which have none.
        """
        schedule = params.get("schedule", self.schedule)
        nested = [name for name in params if name.startswith("schedule__")]
        if nested and not isinstance(schedule, BaseEstimator):
            raise ValueError(
                f"{nested[0]} is a parameter of a schedule object, but schedule={schedule!r} is "
                f"none: set schedule to an object of skanneal.schedules first."
            )
        return super().set_params(**params)
