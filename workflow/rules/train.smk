# The common initial weights of a model, and one run of the grid.


rule initial_config:
    output:
        f"{STUDY}/initial/{{model}}/config.yaml",
    log:
        f"{LOGS}/initial/{{model}}.config.log",
    benchmark:
        f"{TIMES}/initial/{{model}}.config.tsv"
    conda:
        "../../envs/local.yaml"
    threads: 1
    resources:
        mem_mb=100,
        runtime=5,
    params:
        text=config_text(f"{STUDY}/initial/{{model}}/config.yaml"),
    message:
        "Write the configuration of the initial weights of {wildcards.model}"
    shell:
        "printf '%s' {params.text:q} > {output:q} 2> {log:q}"


rule warm_start:
    input:
        config=f"{STUDY}/initial/{{model}}/config.yaml",
        data=lambda wildcards: dataset_file(
            local_model(wildcards.model).warm_start.data
        ),
    output:
        f"{STUDY}/initial/{{model}}/initial.json",
    log:
        f"{LOGS}/initial/{{model}}.log",
    benchmark:
        f"{TIMES}/initial/{{model}}.tsv"
    conda:
        "../../envs/local.yaml"
    # All runs wait for this one job, so it may use two cores.
    threads: 2
    resources:
        mem_mb=model_memory,
        runtime=model_minutes,
    params:
        folder=lambda wildcards, output: Path(output[0]).parent,
        device=settings.device,
    message:
        "Warm start: supervised training of {wildcards.model}"
    shell:
        "python -m respo.training.local.warm_start --config {input.config:q} --data {input.data:q}"
        " --out {params.folder:q} --device {params.device:q} 2>&1 | tee -i {log:q}"


rule run_config:
    output:
        f"{RUN}/config.yaml",
    log:
        f"{LOGS}/train/{RUN_NAME}.config.log",
    benchmark:
        f"{TIMES}/train/{RUN_NAME}.config.tsv"
    conda:
        "../../envs/local.yaml"
    threads: 1
    resources:
        mem_mb=100,
        runtime=5,
    params:
        text=config_text(f"{RUN}/config.yaml"),
    message:
        "Write the configuration of {wildcards.model}/{wildcards.method}/N{wildcards.staleness}/seed{wildcards.seed}"
    shell:
        "printf '%s' {params.text:q} > {output:q} 2> {log:q}"


rule train:
    input:
        config=f"{RUN}/config.yaml",
        initial=initial_of,
        data=dataset_file(study.train_data),
    output:
        f"{RUN}/train.json",
        f"{RUN}/metrics.parquet",
        f"{RUN}/branches.parquet",
    log:
        f"{LOGS}/train/{RUN_NAME}.log",
    benchmark:
        f"{TIMES}/train/{RUN_NAME}.tsv"
    conda:
        "../../envs/local.yaml"
    threads: 1
    resources:
        mem_mb=model_memory,
        runtime=model_minutes,
    params:
        initial=lambda wildcards, input: Path(input.initial).parent / "weights",
        evaluations=lambda wildcards, output: Path(output[0]).parent / "eval",
        device=settings.device,
    message:
        "Train {wildcards.model}/{wildcards.method}/N{wildcards.staleness}/seed{wildcards.seed}"
    shell:
        # Evaluations of the weights before are no longer true, also if this job fails.
        "rm -rf {params.evaluations:q};"
        " python -m respo.training.local --config {input.config:q} --initial {params.initial:q}"
        " --data {input.data:q} --device {params.device:q} 2>&1 | tee -i {log:q}"
