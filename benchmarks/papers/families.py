"""The families of figures and tables, one a paper."""

from papers import two_urns_figures

FAMILIES = {family.NAME: family for family in (two_urns_figures,)}
