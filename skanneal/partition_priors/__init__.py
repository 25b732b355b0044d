"""Priors over partitions."""

from ._pitman_yor import PitmanYor

__all__ = ["PitmanYor"]
