"""Estimates and their errors: arrays in, arrays out. Imports nothing else of the project.

Array names carry their axes: P problems, J benchmarks, R bootstrap replicates.
"""

from respo.statistics.bootstrap import Bootstrap, Contrast, cluster_bootstrap, paired_contrast
from respo.statistics.curves import Late, accuracy_of_score, early_peak, late_score
from respo.statistics.pass_at_k import pass_at_1, pass_at_k
from respo.statistics.seeds import across_seeds

__all__ = [
    "Bootstrap",
    "Contrast",
    "Late",
    "accuracy_of_score",
    "across_seeds",
    "cluster_bootstrap",
    "early_peak",
    "late_score",
    "paired_contrast",
    "pass_at_1",
    "pass_at_k",
]
