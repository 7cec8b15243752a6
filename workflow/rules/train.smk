# The initial weights of a model, and one run of the grid.


rule initial_config:
    output:
        f"{INITIAL}/config.yaml",
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
        text=config_text(f"{INITIAL}/config.yaml"),
    message:
        "Write the configuration of the initial weights of {wildcards.model}"
    shell:
        "printf '%s' {params.text:q} > {output:q} 2> {log:q}"


rule warm_start:
    input:
        config=f"{INITIAL}/config.yaml",
        data=lambda wildcards: dataset_file(
            resolved.models[wildcards.model].warm_start.data
        ),
    output:
        f"{INITIAL}/initial.json",
    log:
        f"{LOGS}/initial/{{model}}.log",
    benchmark:
        f"{TIMES}/initial/{{model}}.tsv"
    wildcard_constraints:
        model=LOCAL_MODELS,
    conda:
        "../../envs/local.yaml"
    # All runs wait for this one job, so it may use two cores.
    threads: 2
    resources:
        **small_job,
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


rule published:
    input:
        f"{INITIAL}/config.yaml",
    output:
        f"{INITIAL}/initial.json",
    log:
        f"{LOGS}/initial/{{model}}.log",
    benchmark:
        f"{TIMES}/initial/{{model}}.tsv"
    wildcard_constraints:
        model=PUBLISHED_MODELS,
    conda:
        "../../envs/local.yaml"
    threads: 1
    resources:
        mem_mb=1000,
        runtime=240,
    message:
        "Weights of {wildcards.model}"
    shell:
        "python -m respo.data.published --config {input:q} --out {output:q} 2>&1 | tee -i {log:q}"


rule run_config:
    output:
        f"{RUN}/config.yaml",
    log:
        f"{LOGS}/train/{RUN_NAME}.config.log",
    benchmark:
        f"{TIMES}/train/{RUN_NAME}.config.tsv"
    wildcard_constraints:
        method=METHODS,
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


rule train_local:
    input:
        config=f"{RUN}/config.yaml",
        initial=f"{INITIAL}/initial.json",
        data=data_of,
    output:
        f"{RUN}/train.json",
        f"{RUN}/metrics.parquet",
        f"{RUN}/branches.parquet",
    log:
        f"{LOGS}/train/{RUN_NAME}.log",
    benchmark:
        f"{TIMES}/train/{RUN_NAME}.tsv"
    wildcard_constraints:
        model=LOCAL_MODELS,
        method=METHODS,
    conda:
        "../../envs/local.yaml"
    threads: 1
    resources:
        **small_job,
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


rule train_verl:
    input:
        config=f"{RUN}/config.yaml",
        initial=f"{INITIAL}/initial.json",
        data=data_of,
    output:
        f"{RUN}/train.json",
        f"{RUN}/metrics.parquet",
        f"{RUN}/branches.parquet",
    log:
        f"{LOGS}/train/{RUN_NAME}.log",
    benchmark:
        f"{TIMES}/train/{RUN_NAME}.tsv"
    wildcard_constraints:
        model=VERL_MODELS,
        method=METHODS,
    conda:
        lambda wildcards: f"../../envs/verl-{resolved.models[wildcards.model].engine}.yaml"
    threads: 1
    resources:
        **training_job,
        mem_mb=model_memory,
        runtime=model_minutes,
    params:
        in_env=IN_ENV,
        environment=lambda wildcards: f"verl-{resolved.models[wildcards.model].engine}",
        model=lambda wildcards: os.path.relpath(
            CONFIG / "models" / f"{wildcards.model}.yaml"
        ),
        evaluations=lambda wildcards, output: Path(output[0]).parent / "eval",
    message:
        "Train {wildcards.model}/{wildcards.method}/N{wildcards.staleness}/seed{wildcards.seed} with verl"
    shell:
        # tee outlives the signal at the end of a job's time: the last message is what matters.
        "rm -rf {params.evaluations:q};"
        " {params.in_env:q} {params.environment} python -m respo.gpus {resources.cards} --"
        " python -m respo.training.verl --config {input.config:q} --model {params.model:q}"
        " --initial {input.initial:q} --data {input.data:q} $RESPO_LOGGERS"
        " 2>&1 | (trap '' TERM; exec tee -ai {log:q})"
