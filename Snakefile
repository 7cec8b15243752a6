# The grid methods x models x staleness x seeds as dependency-tracked jobs.
#
#   snakemake                                   the study of config/config.yaml
#   snakemake --config study=NAME               another one
#   snakemake results/tiny/.../cell.json        one cell of a table, and only what it needs
#
# Each rule calls `python -m respo.<stage>`; rules/common.smk reads the study.


include: "workflow/rules/common.smk"


report: "workflow/report/workflow.rst"


rule all:
    default_target: True
    input:
        REPORT,
        TABLES,
        FIGURES,


include: "workflow/rules/data.smk"
include: "workflow/rules/train.smk"
include: "workflow/rules/evaluate.smk"
include: "workflow/rules/aggregate.smk"


onstart:
    print(announcement(), flush=True)


onsuccess:
    print(farewell(), flush=True)
