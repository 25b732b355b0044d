"""The families of figures and tables, one a paper."""

from papers import permutation_figures, tempering_figures, two_urns_figures

FAMILIES = {
    family.NAME: family for family in (two_urns_figures, tempering_figures, permutation_figures)
}
