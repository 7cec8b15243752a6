# The study as one file, training sets and benchmarks.


rule study:
    output:
        f"{STUDY}/study.yaml",
    log:
        f"{LOGS}/study.log",
    benchmark:
        f"{TIMES}/study.tsv"
    conda:
        "../../envs/local.yaml"
    threads: 1
    resources:
        mem_mb=100,
        runtime=5,
    params:
        text=config_text(f"{STUDY}/study.yaml"),
    message:
        "Write the resolved study"
    shell:
        "printf '%s' {params.text:q} > {output:q} 2> {log:q}"


rule data_config:
    output:
        f"{STUDY}/data/{{side}}/{{dataset}}.yaml",
    log:
        f"{LOGS}/data/{{side}}/{{dataset}}.config.log",
    benchmark:
        f"{TIMES}/data/{{side}}/{{dataset}}.config.tsv"
    conda:
        "../../envs/local.yaml"
    threads: 1
    resources:
        mem_mb=100,
        runtime=5,
    params:
        text=config_text(f"{STUDY}/data/{{side}}/{{dataset}}.yaml"),
    message:
        "Write the configuration of {wildcards.dataset}"
    shell:
        "printf '%s' {params.text:q} > {output:q} 2> {log:q}"


rule data:
    input:
        config=f"{STUDY}/data/{{side}}/{{dataset}}.yaml",
        files=local_files,
    output:
        f"{STUDY}/data/{{side}}/{{dataset}}.parquet",
    log:
        f"{LOGS}/data/{{side}}/{{dataset}}.log",
    benchmark:
        f"{TIMES}/data/{{side}}/{{dataset}}.tsv"
    conda:
        "../../envs/local.yaml"
    threads: 1
    resources:
        mem_mb=data_memory,
        runtime=data_minutes,
    message:
        "Make the prompts of {wildcards.dataset}"
    shell:
        "python -m respo.data --config {input.config:q} --side {wildcards.side:q}"
        " --out {output:q} 2>&1 | tee -i {log:q}"
