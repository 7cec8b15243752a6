# The grid methods x models x staleness x seeds as dependency-tracked jobs.
#
#   snakemake                                   the study of config/config.yaml
#   snakemake --config study=NAME               another one
#   snakemake results/tiny/.../cell.json        one cell of a table, and only what it needs
#
# Each rule calls `python -m respo.<stage>`; rules/study.smk reads the study.

import gc

# Planning makes objects by the million and next to no garbage, yet a quarter of its time would go
# into looking for some.
gc.disable()


include: "workflow/rules/study.smk"
include: "workflow/rules/start.smk"
include: "workflow/rules/wildcards.smk"
include: "workflow/rules/cluster.smk"


report: "workflow/report/workflow.rst"


rule all:
    default_target: True
    input:
        REPORT,
        EXPLORE,
        TABLES,
        FIGURES,
        cells(resolved.checkpoints),
        # Named too, so that a start that was interrupted while remaking them goes on.
        of_runs("train.json"),
        of_runs("metrics.parquet"),
        expand(f"{INITIAL}/initial.json", model=resolved.models),


include: "workflow/rules/data.smk"
include: "workflow/rules/train.smk"
include: "workflow/rules/evaluate.smk"
include: "workflow/rules/aggregate.smk"


# Where a cluster is used, these run on the login node: they write configurations or ask the hub.
localrules:
    study,
    data_config,
    data,
    initial_config,
    published,
    run_config,
    baseline,


onstart:
    gc.enable()
    handle_in_thread(signal.SIGTERM)
    before_start()
    print(announcement(), flush=True)


onsuccess:
    print(farewell(), flush=True)
