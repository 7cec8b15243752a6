"""Estimates and their errors: arrays in, arrays out. Imports nothing else of the project.

Array names carry their axes: P problems, J benchmarks, R bootstrap replicates.
"""

from respo.statistics.bootstrap import (
    Bootstrap,
    Contrast,
    cluster_bootstrap,
    cluster_bootstraps,
    paired_contrast,
)
from respo.statistics.branches import Branch, branch_shares, mean_by_batch, sum_by_batch
from respo.statistics.curves import Late, accuracy_of_score, early_peak, late_score
from respo.statistics.length_bins import (
    BinAccuracy,
    accuracy_by_bin,
    error_by_bin,
    length_bin,
    length_bounds,
)
from respo.statistics.majority import majority_vote
from respo.statistics.pass_at_k import pass_at_1, pass_at_k
from respo.statistics.resolution import (
    Needed,
    Variance,
    difference_variance,
    needed,
    smallest_number,
)
from respo.statistics.seeds import across_seeds

__all__ = [
    "BinAccuracy",
    "Bootstrap",
    "Branch",
    "Contrast",
    "Late",
    "Needed",
    "Variance",
    "accuracy_by_bin",
    "accuracy_of_score",
    "across_seeds",
    "branch_shares",
    "cluster_bootstrap",
    "cluster_bootstraps",
    "difference_variance",
    "early_peak",
    "error_by_bin",
    "late_score",
    "length_bin",
    "length_bounds",
    "majority_vote",
    "mean_by_batch",
    "needed",
    "paired_contrast",
    "pass_at_1",
    "pass_at_k",
    "smallest_number",
    "sum_by_batch",
]
