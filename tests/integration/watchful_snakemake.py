"""Snakemake that asks Slurm for the states of its jobs every second: for tests only.

By itself it waits ten seconds longer each time that it has found none ended.
"""

import asyncio

from snakemake.cli import main
from snakemake_executor_plugin_slurm import Executor


async def sleep(executor):
    await asyncio.sleep(1)


Executor.sleep = sleep
main()
