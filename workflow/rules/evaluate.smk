# From a checkpoint to one cell of a table.


# A model as it comes, in the form of a run that ended before its first update.
rule baseline:
    input:
        f"{INITIAL}/initial.json",
    output:
        f"{STUDY}/{{model}}/{BASELINE}/N0/seed0/train.json",
    log:
        f"{LOGS}/train/{{model}}/{BASELINE}/N0/seed0.log",
    benchmark:
        f"{TIMES}/train/{{model}}/{BASELINE}/N0/seed0.tsv"
    conda:
        "../../envs/local.yaml"
    threads: 1
    resources:
        mem_mb=500,
        runtime=5,
    message:
        "Take {wildcards.model} as it comes"
    shell:
        "python -m respo.evaluation.baseline --initial {input:q} --out {output:q} 2>&1"
        " | tee -i {log:q}"


rule generate_local:
    input:
        train=f"{RUN}/train.json",
        data=f"{STUDY}/data/held_out/{{benchmark}}.parquet",
    output:
        f"{EVAL}/generations.parquet",
    log:
        f"{LOGS}/eval/{EVAL_NAME}.generate.log",
    benchmark:
        f"{TIMES}/eval/{EVAL_NAME}.generate.tsv"
    wildcard_constraints:
        model=LOCAL_MODELS,
    conda:
        "../../envs/local.yaml"
    threads: 1
    resources:
        **small_job,
        mem_mb=model_memory,
        runtime=model_minutes,
    params:
        checkpoint=checkpoint_of,
        descendants=lambda wildcards, output: [
            Path(output[0]).with_name(name) for name in ("scores.parquet", "cell.json")
        ],
        samples=lambda wildcards: resolved.samples(wildcards.benchmark),
        temperature=sampling("temperature"),
        top_p=sampling("top_p"),
        seed=study.evaluation.seed,
        limit=sampling("max_response_tokens"),
        device=settings.device,
    message:
        "Generate {wildcards.model}/{wildcards.method}/N{wildcards.staleness}/seed{wildcards.seed} at {wildcards.checkpoint}: {wildcards.benchmark}"
    shell:
        # What was made from the responses before is no longer true, also if this job fails.
        "rm -f {params.descendants:q};"
        " python -m respo.evaluation.generate --checkpoint {params.checkpoint:q}"
        " --train {input.train:q} --update {wildcards.checkpoint} --benchmark {input.data:q}"
        " --samples {params.samples} --temperature {params.temperature} --top-p {params.top_p}"
        " --max-response-tokens {params.limit} --seed {params.seed} --device {params.device:q}"
        " --out {output:q} 2>&1 | tee -i {log:q}"


rule generate_vllm:
    input:
        train=f"{RUN}/train.json",
        data=f"{STUDY}/data/held_out/{{benchmark}}.parquet",
    output:
        f"{EVAL}/generations.parquet",
    log:
        f"{LOGS}/eval/{EVAL_NAME}.generate.log",
    benchmark:
        f"{TIMES}/eval/{EVAL_NAME}.generate.tsv"
    wildcard_constraints:
        model=PUBLISHED_MODELS,
    conda:
        "../../envs/vllm.yaml"
    threads: 1
    resources:
        **evaluation_job,
        mem_mb=evaluation_memory,
        runtime=model_minutes,
    params:
        in_env=IN_ENV,
        checkpoint=checkpoint_of,
        descendants=lambda wildcards, output: [
            Path(output[0]).with_name(name) for name in ("scores.parquet", "cell.json")
        ],
        samples=lambda wildcards: resolved.samples(wildcards.benchmark),
        temperature=sampling("temperature"),
        top_p=sampling("top_p"),
        seed=study.evaluation.seed,
        limit=sampling("max_response_tokens"),
        prompt_limit=prompt_limit,
        thinking=lambda wildcards: str(
            resolved.models[wildcards.model].thinking
        ).lower(),
    message:
        "Generate {wildcards.model}/{wildcards.method}/N{wildcards.staleness}/seed{wildcards.seed} at {wildcards.checkpoint}: {wildcards.benchmark}"
    shell:
        "rm -f {params.descendants:q};"
        " {params.in_env:q} vllm python -m respo.gpus {resources.cards} --"
        " python -m respo.evaluation.generate --engine vllm"
        " --checkpoint {params.checkpoint:q} --train {input.train:q}"
        " --update {wildcards.checkpoint} --benchmark {input.data:q}"
        " --samples {params.samples} --temperature {params.temperature} --top-p {params.top_p}"
        " {params.prompt_limit} --max-response-tokens {params.limit}"
        " --thinking {params.thinking} --seed {params.seed}"
        " --tensor-parallel {resources.cards} --out {output:q} 2>&1"
        " | (trap '' TERM; exec tee -ai {log:q})"


rule score:
    input:
        generations=f"{EVAL}/generations.parquet",
        tests=tests_of,
    output:
        f"{EVAL}/scores.parquet",
    log:
        f"{LOGS}/eval/{EVAL_NAME}.score.log",
    benchmark:
        f"{TIMES}/eval/{EVAL_NAME}.score.tsv"
    group:
        "cells"
    conda:
        "../../envs/local.yaml"
    # Programs run for seconds each, answers are compared in a millisecond.
    threads: lambda wildcards: 4 if runs_programs(wildcards) else 1
    resources:
        **small_job,
        mem_mb=lambda wildcards: 10000 if runs_programs(wildcards) else 1000,
        runtime=lambda wildcards: 600 if runs_programs(wildcards) else 60,
    params:
        tests=lambda wildcards, input: ["--tests", *input.tests] if input.tests else [],
        verifier=lambda wildcards: resolved.benchmarks[wildcards.benchmark].verifier,
        descendants=lambda wildcards, output: Path(output[0]).with_name("cell.json"),
    message:
        "Score {wildcards.model}/{wildcards.method}/N{wildcards.staleness}/seed{wildcards.seed} at {wildcards.checkpoint}: {wildcards.benchmark}"
    shell:
        "rm -f {params.descendants:q};"
        " python -m respo.evaluation.score --generations {input.generations:q}"
        " --verifier {params.verifier:q} {params.tests:q} --workers {threads} --out {output:q} 2>&1"
        " | tee -i {log:q}"


rule cell:
    input:
        scores=f"{EVAL}/scores.parquet",
        train=f"{RUN}/train.json",
        config=config_of,
    output:
        f"{EVAL}/cell.json",
    log:
        f"{LOGS}/eval/{EVAL_NAME}.cell.log",
    benchmark:
        f"{TIMES}/eval/{EVAL_NAME}.cell.tsv"
    group:
        "cells"
    conda:
        "../../envs/local.yaml"
    threads: 1
    resources:
        **small_job,
        mem_mb=500,
        runtime=10,
    params:
        study=settings.study,
    message:
        "Cell {wildcards.model}/{wildcards.method}/N{wildcards.staleness}/seed{wildcards.seed} at {wildcards.checkpoint}: {wildcards.benchmark}"
    shell:
        "python -m respo.evaluation.cell --scores {input.scores:q} --train {input.train:q}"
        " --run-config {input.config:q} --study {params.study:q} --model {wildcards.model:q}"
        " --method {wildcards.method:q} --staleness {wildcards.staleness} --seed {wildcards.seed}"
        " --update {wildcards.checkpoint} --benchmark {wildcards.benchmark:q} --out {output:q}"
        " 2>&1 | tee -i {log:q}"
