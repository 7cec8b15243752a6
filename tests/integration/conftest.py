import gc
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def _no_garbage() -> Iterator[None]:
    """Collect what Snakemake leaves in this process within the test, whose marks ignore it.

    The Snakefile switches the collector off. What were left would fail the run at its end.
    """
    yield
    gc.enable()
    gc.collect()
