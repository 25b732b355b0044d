"""The families of figures and tables: one a paper; Obermeyer's has two, what it leaves open, and
the evidence that one of the schedules estimates."""

from papers import (
    accelerated_table,
    evidence_figures,
    help_figures,
    permutation_figures,
    schedules_figures,
    tempering_figures,
    two_urns_figures,
)

FAMILIES = {
    family.NAME: family
    for family in (
        two_urns_figures,
        schedules_figures,
        help_figures,
        evidence_figures,
        permutation_figures,
        tempering_figures,
        accelerated_table,
    )
}
