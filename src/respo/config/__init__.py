"""The study as data: schema, loading, the grid of runs and their paths."""

from respo.config.checks import check_weights
from respo.config.load import (
    load_cluster,
    load_data_config,
    load_initial_config,
    load_methods,
    load_model,
    load_published_config,
    load_resolved_study,
    load_run_config,
    load_settings,
    load_study,
    method_files,
)
from respo.config.outdated import renew_outdated
from respo.config.study import ResolvedStudy, Run

__all__ = [
    "ResolvedStudy",
    "Run",
    "check_weights",
    "load_cluster",
    "load_data_config",
    "load_initial_config",
    "load_methods",
    "load_model",
    "load_published_config",
    "load_resolved_study",
    "load_run_config",
    "load_settings",
    "load_study",
    "method_files",
    "renew_outdated",
]
