# Tables, figures and the report of a study.

from respo.reporting import choices, registry, tables
from respo.reporting.table import suffixes

REFERENCE = Path(os.path.relpath(CONFIG / "reference"))
TABLE_MODULES = {table: registry.module(tables, table) for table in study.tables}

for table, module in TABLE_MODULES.items():
    if reason := module.applies(resolved):
        fail(
            f"config/studies/{settings.study}.yaml: tables: {table} {reason}; take the table out"
        )
    try:
        TABLE_SUFFIXES = suffixes(table, resolved, REFERENCE)
    except UserError as error:
        fail(error)

    rule:
        name:
            rule_name("table", table)
        input:
            study=f"{STUDY}/study.yaml",
            results=[f"{STUDY}/{path}" for path in module.inputs(resolved)],
            # The papers' numbers, where the table has any.
            reference=(
                [str(REFERENCE / f"{Path(table).parent}.csv")]
                if module.PRINTED
                else []
            ),
        output:
            html=report(
                f"{STUDY}/tables/{table}.html",
                caption=f"../report/{table}.rst",
                category="Tables",
                labels={"table": table},
            ),
            others=[
                f"{STUDY}/tables/{table}.{suffix}"
                for suffix in TABLE_SUFFIXES
                if suffix != "html"
            ],
            sources=f"{STUDY}/tables/{table}.sources.json",
        log:
            f"{LOGS}/tables/{table}.log",
        benchmark:
            f"{TIMES}/tables/{table}.tsv"
        conda:
            "../../envs/local.yaml"
        threads: 1
        resources:
            **small_job,
            mem_mb=1000,
            runtime=10,
        params:
            table=table,
            reference=lambda wildcards, input: [
                argument
                for path in input.reference
                for argument in ("--reference", str(Path(path).parent))
            ],
            study=lambda wildcards, input: Path(input.study).parent,
        message:
            "Table {params.table}"
        shell:
            "python -m respo.reporting.table {params.table:q} --study {params.study:q}"
            " {params.reference:q} 2>&1 | tee -i {log:q}"


for figure in study.figures:
    if reason := choices.refusal(figure, resolved):
        fail(
            f"config/studies/{settings.study}.yaml: figures: {figure} {reason}; take the figure out"
        )

    rule:
        name:
            rule_name("figure", figure)
        input:
            study=f"{STUDY}/study.yaml",
            results=[
                str(path) for path in choices.inputs(figure, resolved, Path(STUDY))
            ],
        output:
            png=report(
                f"{STUDY}/figures/{figure}.png",
                caption=f"../report/{figure}.rst",
                category="Figures",
                labels={"figure": figure},
            ),
            pdf=f"{STUDY}/figures/{figure}.pdf",
            sources=f"{STUDY}/figures/{figure}.sources.json",
        log:
            f"{LOGS}/figures/{figure}.log",
        benchmark:
            f"{TIMES}/figures/{figure}.tsv"
        conda:
            "../../envs/local.yaml"
        threads: 1
        resources:
            **small_job,
            mem_mb=1000,
            runtime=10,
        params:
            figure=figure,
            # Some are drawn from the code of the objectives, not from results.
            code=[code_hash(name) for name in choices.objectives(figure, resolved)],
            study=lambda wildcards, input: Path(input.study).parent,
        message:
            "Figure {params.figure}"
        shell:
            "python -m respo.reporting.figure {params.figure:q} --study {params.study:q}"
            " 2>&1 | tee -i {log:q}"


rule explore:
    input:
        study=f"{STUDY}/study.yaml",
        # The responses that it shows lie beside the cells.
        cells=cells(lambda run: resolved.checkpoints(run)[-1:]),
        metrics=of_runs("metrics.parquet"),
    output:
        report(
            EXPLORE,
            caption="../report/explore.rst",
            category="Explore",
            labels={"page": "grid, curves, responses"},
        ),
        f"{STUDY}/explore.sources.json",
    log:
        f"{LOGS}/explore.log",
    benchmark:
        f"{TIMES}/explore.tsv"
    conda:
        "../../envs/local.yaml"
    threads: 1
    resources:
        **small_job,
        mem_mb=1000,
        runtime=10,
    params:
        study=lambda wildcards, input: Path(input.study).parent,
    message:
        "Page to explore"
    shell:
        "python -m respo.reporting.page --study {params.study:q} 2>&1 | tee -i {log:q}"


rule report:
    input:
        TABLES,
        FIGURES,
        EXPLORE,
    output:
        report=REPORT,
        sources=f"{STUDY}/report.sources.json",
    log:
        f"{LOGS}/report.log",
    benchmark:
        f"{TIMES}/report.tsv"
    conda:
        "../../envs/local.yaml"
    threads: 1
    resources:
        **small_job,
        mem_mb=1000,
        runtime=10,
    params:
        # Relative: a copied project needs no new report.
        snakefile=os.path.relpath(workflow.main_snakefile),
        study=lambda wildcards, output: Path(output.report).parent,
        config=[
            f"{key}={value}"
            for key, value in settings.model_dump(exclude_none=True).items()
        ],
    message:
        "HTML report"
    shell:
        # The outer snakemake holds the lock and waits for this one, which only reads.
        "snakemake --snakefile {params.snakefile:q} --nolock --report {output.report:q}"
        " --config {params.config:q} --cores 1 -- {input:q} > {log:q} 2>&1 &&"
        " python -m respo.reporting.report --study {params.study:q} >> {log:q} 2>&1"
