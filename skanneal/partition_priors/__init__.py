"""Priors over partitions."""

from ._grid import concentrations, first_prior, within
from ._pitman_yor import PitmanYor

__all__ = ["PitmanYor", "concentrations", "first_prior", "within"]
