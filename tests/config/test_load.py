"""Every kind of bad input is refused in one message that names file, key, value and remedy."""

import os
import re
import shutil
import time
from pathlib import Path
from typing import Annotated, Literal

import pytest
import yaml
from pydantic import Field

from respo.cli import UserError
from respo.config import Run, load_data_config, load_settings, load_study
from respo.config.checks import check_runs
from respo.config.schema import Strict
from respo.config.validate import validate

CONFIG = Path(__file__).parents[2] / "config"


def edit(path, **changes):
    values = yaml.safe_load(path.read_text())
    values.update(changes)
    path.write_text(yaml.safe_dump(values))


def replace(path, old, new):
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def message(config, study="tiny"):
    with pytest.raises(UserError) as error:
        load_study(config, study)
    return str(error.value)


@pytest.mark.parametrize("path", sorted(CONFIG.glob("studies/*.yaml")), ids=lambda path: path.stem)
def test_every_study_of_the_project_loads(path):
    assert load_study(CONFIG, path.stem).runs()


def test_the_default_study_is_the_papers_grid_and_an_on_policy_reference():
    resolved = load_study(CONFIG, "tiny")
    grid = {(run.method, run.staleness) for run in resolved.runs()}
    assert grid == {
        (method, n) for method in ("grpo", "gspo", "vespo", "respo") for n in (8, 16, 32)
    } | {("grpo", 1)}
    assert len(resolved.runs()) == len(grid) * len(resolved.study.seeds)


def test_a_run_knows_its_paths():
    run = Run("qwen3-1.7b", "respo", 32, 1)
    assert run.folder(Path("results/respo")) == Path("results/respo/qwen3-1.7b/respo/N32/seed1")
    assert str(run.cell(Path("results/respo"), 1024, "aime25")) == (
        "results/respo/qwen3-1.7b/respo/N32/seed1/eval/1024/aime25/cell.json"
    )


@pytest.mark.parametrize(
    ("key", "value", "expected"),
    [
        ("staleness", [8, 7], "staleness: 7 does not divide updates 128"),
        ("extra_runs", [{"methods": ["grpo"], "staleness": [5]}], "staleness: 5 does not divide"),
        (
            "extra_runs",
            [{"methods": ["grop"], "staleness": [1]}],
            "extra_runs.0.methods: 'grop' is not a file of",
        ),
        ("methods", ["x" * 300], "is not allowed: string should have at most 100 characters"),
        ("rollouts_per_prompt", 1, "rollouts_per_prompt: 1 is not allowed"),
        ("methods", ["grpo", "grpo"], "methods: 'grpo' stands twice"),
        ("seeds", [1, 1], "seeds: 1 stands twice"),
        ("seeds", [-1], "seeds.0: -1 is not allowed"),
        ("methods", [], "belongs to training, and there are no methods: "),
        ("methods", ["grop"], "methods: 'grop' is not a file of"),
        ("models", ["gpt"], "models: 'gpt' is not a file of"),
        ("benchmarks", ["aime99"], "benchmarks: 'aime99' is not a file of"),
        ("train_data", "nothing", "train_data: 'nothing' is not a file of"),
        ("updates", "128", "updates: '128' is text to YAML, not a number"),
        ("updates", 128.0, "updates: 128.0 is not allowed"),
        ("updates", True, "updates: True is not allowed"),
        ("mini_batch", 0, "mini_batch: 0 is not allowed"),
        ("loss_aggregation", "mean", "loss_aggregation: 'mean' is not allowed: input should be"),
        ("checkpoints", [128, 200], "checkpoints: 200 comes after the last update 128"),
        (
            "evaluation",
            {"updates": [100], "temperature": 1.0, "top_p": 0.7, "seed": 0},
            "evaluation.updates: 100 is not in checkpoints [64, 128]",
        ),
        ("tables", ["respo/table99"], "tables.0: 'respo/table99' is not allowed"),
        ("title", "a\x1b[2J", "title: holds the control character U+001B; remove it"),
        ("title", "a\x85b", "title: holds the control character U+0085; remove it"),
        ("title", "a\u202eb", "title: holds the control character U+202E; remove it"),
        ("title", "a\ufeffb", "title: holds the control character U+FEFF; remove it"),
        ("title", "a\u2028b", "title: holds the control character U+2028; remove it"),
        ("title", "a\u2029b", "title: holds the control character U+2029; remove it"),
        ("title", "x" * 201, "is not allowed: string should have at most 200 characters"),
        ("seedz", [1], "seedz: unknown key (did you mean 'seeds'?); allowed: updates,"),
        (
            "extra_runs",
            [{"methods": ["grpo"], "staleness": [8], "seeds": [1]}],
            "extra_runs: qwen3-tiny/grpo/N8/seed1 stands twice or is in the grid",
        ),
    ],
)
def test_a_bad_study(config, key, value, expected):
    path = config / "studies" / "tiny.yaml"
    edit(path, **{key: value})
    text = message(config)
    assert str(path) in text
    assert expected in text


HUGE = 10**9


@pytest.mark.parametrize(
    ("file", "key", "value", "limit"),
    [
        ("studies/tiny", "updates", 10**30, "less than or equal to 100000000"),
        ("studies/tiny", "mini_batch", HUGE, "less than or equal to 100000000"),
        ("studies/tiny", "rollouts_per_prompt", HUGE, "less than or equal to 100000000"),
        ("studies/tiny", "staleness.0", HUGE, "less than or equal to 100000000"),
        ("studies/tiny", "overlong_buffer", HUGE, "less than or equal to 100000000"),
        ("studies/tiny", "temperature", 1e308, "less than or equal to 100"),
        ("studies/tiny", "temperature", 1e-320, "greater than or equal to 0.001"),
        ("studies/tiny", "temperature", float("inf"), "less than or equal to 100"),
        ("studies/tiny", "temperature", 10**400, "a valid number"),
        ("studies/tiny", "optimizer.learning_rate", 1e300, "less than or equal to 1"),
        (
            "studies/tiny",
            "optimizer.learning_rate",
            1e-320,
            "greater than or equal to 0.000000000001",
        ),
        ("studies/tiny", "optimizer.warmup_updates", HUGE, "less than or equal to 100000000"),
        ("studies/tiny", "optimizer.weight_decay", 1e300, "less than or equal to 1000000"),
        ("studies/tiny", "optimizer.gradient_clip", 1e300, "less than or equal to 1000000000"),
        ("studies/tiny", "evaluation.temperature", 1e308, "less than or equal to 100"),
        ("studies/tiny", "evaluation.top_p", 1e-300, "greater than or equal to 0.000001"),
        ("studies/tiny", "evaluation.samples.chain-easy", HUGE, "less than or equal to 100000000"),
        ("models/qwen3-tiny", "max_response_tokens", HUGE, "less than or equal to 100000000"),
        ("models/qwen3-tiny", "warm_start.steps", HUGE, "less than or equal to 100000000"),
        ("models/qwen3-tiny", "warm_start.learning_rate", 1e300, "less than or equal to 1"),
        ("models/qwen3-tiny", "architecture.hidden_size", HUGE, "less than or equal to 1000000"),
        (
            "models/qwen3-tiny",
            "architecture.num_hidden_layers",
            HUGE,
            "less than or equal to 1000000",
        ),
        ("models/qwen3-tiny", "resources.memory_mb", HUGE, "less than or equal to 100000000"),
        ("datasets/chain", "rows", HUGE, "less than or equal to 100000000"),
        ("benchmarks/chain-easy", "rows", HUGE, "less than or equal to 100000000"),
        ("benchmarks/chain-easy", "samples", HUGE, "less than or equal to 100000000"),
        ("benchmarks/chain-easy", "temperature", 1e-320, "greater than or equal to 0.001"),
    ],
)
def test_a_number_that_no_machine_could_do_or_that_has_no_meaning(config, file, key, value, limit):
    path = config / f"{file}.yaml"
    values = place = yaml.safe_load(path.read_text())
    *way, last = (int(part) if part.isdigit() else part for part in key.split("."))
    for part in way:
        place = place.setdefault(part, {}) if isinstance(place, dict) else place[part]
    place[last] = value
    path.write_text(yaml.safe_dump(values))
    text = message(config)
    assert text.startswith(f"{path}: {key}: {value!r} is not allowed: input should be {limit}")
    assert "\n" not in text


def test_many_runs_are_compared_in_no_time(config):
    """Each with each would take half a minute; 13 runs for each seed."""
    path = config / "studies" / "tiny.yaml"
    edit(path, seeds=list(range(1000)))
    resolved = load_study(config, "tiny")
    assert len(resolved.runs()) == 13000
    begin = time.process_time()
    check_runs(resolved, path)
    assert time.process_time() - begin < 5


def test_a_number_that_yaml_reads_as_text_comes_with_its_remedy(config):
    path = config / "studies" / "tiny.yaml"
    replace(path, "learning_rate: 2.0e-4", "learning_rate: 2e-4")
    assert "optimizer.learning_rate: '2e-4' is text to YAML" in message(config)
    assert message(config).endswith("2.0e-4")


def test_all_problems_of_a_file_are_told_at_once(config):
    edit(config / "studies" / "tiny.yaml", updates="many", mini_batch=-1)
    assert len(message(config).splitlines()) == 2


def test_a_missing_key(config):
    replace(config / "studies" / "tiny.yaml", "mini_batch: 8\n", "")
    assert "mini_batch: is missing" in message(config)


def test_an_unknown_study_lists_those_there_are(config):
    assert "study: 'tinny' is not a file of" in message(config, "tinny")
    assert "(did you mean 'tiny'?)" in message(config, "tinny")


@pytest.mark.parametrize("betas", ["[1.0, 0.999]", "[0.9, 1.0]", "[-0.1, 0.9]", "[0.9]"])
def test_moments_that_never_decay_are_refused(config, betas):
    replace(config / "studies" / "tiny.yaml", "betas: [0.9, 0.999]", f"betas: {betas}")
    assert "optimizer.betas" in message(config)


@pytest.mark.parametrize("results", ["a{b}c", "", "a\x00b"])
def test_results_is_a_path_that_snakemake_takes(results):
    with pytest.raises(UserError, match="--config: results: "):
        load_settings(CONFIG / "config.yaml", {"results": results})


def test_parameters_are_complete_in_canonical_order(config):
    path = config / "methods" / "respo.yaml"
    before = load_study(config, "tiny").methods["respo"].parameters
    # Another order, a default left out: the same method.
    edit(path, parameters={"lambda_neg": 2, "alpha_pos": 2.0})
    after = load_study(config, "tiny").methods["respo"].parameters
    assert list(after.items()) == list(before.items())
    assert len(after) == 6


def test_every_configuration_file_has_its_text():
    resolved = load_study(CONFIG, "tiny")
    texts = resolved.config_texts(Path("results/tiny"), lambda name: f"code of {name}")
    assert len(texts) == 1 + 1 + 3 + 1 + len(resolved.runs())
    run = texts["results/tiny/qwen3-tiny/gspo/N16/seed2/config.yaml"]()
    assert {"seed: 2", "staleness: 16", "objective_code: code of gspo"} <= set(run.splitlines())
    # Of what a benchmark has beside its rows, they depend on the version alone.
    rows = texts["results/tiny/data/held_out/chain-hard.yaml"]()
    assert rows == "source: chain\noperators:\n- 7\n- 8\nrows: 256\nseed: 103\nversion: 1\n"


@pytest.mark.parametrize("name", ["../tiny", "a/b", "", "-x"])
def test_a_study_name_is_a_file_name(name):
    with pytest.raises(UserError, match="study: "):
        load_settings(CONFIG / "config.yaml", {"study": name})


def test_settings_refuse_unknown_keys_of_the_command_line():
    with pytest.raises(UserError, match=r"seeds: unknown key; allowed: study, results, device"):
        load_settings(CONFIG / "config.yaml", {"seeds": 3})


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"objective": "grop"}, "objective: "),
        ({"parameters": {"epsilon": 0.2}}, "parameters: "),
        ({"parameters": {"epsilon_low": -0.2}}, "parameters: "),
        ({"parameters": {"epsilon_low": "2e-1"}}, "parameters.epsilon_low: '2e-1' is text to YAML"),
        ({"parameters": {"epsilon_low": "low"}}, "parameters: "),
        ({"parameters": {"epsilon_low": [1]}}, "parameters.epsilon_low: [1] is not allowed; write"),
        ({"source": "a\x1b[2Jb"}, "source: holds the control character U+001B; remove it"),
        ({"source": "a\nb"}, "source: holds the control character U+000A; remove it"),
        ({"source": ""}, "source: '' is not allowed"),
        ({"deviations": ["1. a", "2.\u2028b"]}, "deviations.1: holds the control character U+2028"),
        ({"labels": "x"}, "labels: unknown key (did you mean 'label'?)"),
    ],
)
def test_a_bad_method(config, change, expected):
    path = config / "methods" / "grpo.yaml"
    edit(path, **change)
    assert f"{path}: {expected}" in message(config)


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("num_key_value_heads: 2", "num_key_value_heads: 3", "3 does not divide"),
        ("head_dim: 32", "head_dim: 31", "head_dim: 31 is odd"),
        ("model_type: qwen3", "model_type: qwen3_moe", "needs num_experts"),
        ("head_dim: 32", "head_dim: 32\n  num_experts: 4", "only for model_type qwen3_moe"),
        ("backend: local", "backend: remote", "backend: 'remote' is not allowed"),
        ("data: chain", "data: chains", "qwen3-tiny.yaml: warm_start.data: 'chains' is not a file"),
        # 7-8 steps: 9 digits, 8 operators and the equals sign are 18 tokens.
        ("max_prompt_tokens: 24", "max_prompt_tokens: 17", "chain-hard: prompts of 18 tokens are"),
        # The shortest training prompts, 1 step, have 4 tokens.
        ("max_prompt_tokens: 24", "max_prompt_tokens: 3", "longer than max_prompt_tokens 3"),
    ],
)
def test_a_bad_model(config, old, new, expected):
    replace(config / "models" / "qwen3-tiny.yaml", old, new)
    assert expected in message(config)


def test_a_model_cannot_take_the_name_of_a_folder_of_the_study(config):
    shutil.copy(config / "models" / "qwen3-tiny.yaml", config / "models" / "tables.yaml")
    edit(config / "studies" / "tiny.yaml", models=["tables"])
    assert "'tables' is a folder of every study" in message(config)


def test_a_benchmark_cannot_take_the_name_of_the_average(config):
    shutil.copy(config / "benchmarks" / "chain-easy.yaml", config / "benchmarks" / "macro.yaml")
    edit(config / "studies" / "tiny.yaml", benchmarks=["macro"])
    assert "'macro' is the macro average" in message(config)


def test_a_method_may_prescribe_its_aggregation(config):
    edit(config / "methods" / "gspo.yaml", loss_aggregation="seq-mean-token-mean")
    resolved = load_study(config, "tiny")
    used = {
        run.method: resolved.run_config(run, "").training.loss_aggregation
        for run in resolved.runs()
    }
    assert used["gspo"] == "seq-mean-token-mean"
    assert used["grpo"] == "token-mean"


def test_a_label_is_not_part_of_what_a_run_depends_on(config):
    run = load_study(config, "tiny").runs()[0]
    before = load_study(config, "tiny").run_config(run, "")
    edit(config / "methods" / "grpo.yaml", label="other")
    edit(config / "models" / "qwen3-tiny.yaml", label="other")
    edit(config / "studies" / "tiny.yaml", title="other")
    assert load_study(config, "tiny").run_config(run, "") == before


MINE = "label: Mine\nobjective: grpo\nparameters: {}\nsource: mine\ndeviations: []\n"


@pytest.fixture
def own_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("RESPO_METHODS", "")  # loading sets it
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "mine.yaml").write_text(MINE)
    return folder


def test_methods_of_ones_own_join_the_study(config, own_folder):
    ours = load_study(config, "tiny")
    resolved = load_study(config, "tiny", own_folder)
    assert resolved.study.methods == [*ours.study.methods, "mine"]
    assert len(resolved.runs()) - len(ours.runs()) == 6  # at 3 N x 2 seeds
    assert os.environ["RESPO_METHODS"] == str(own_folder)


def test_a_study_may_name_a_method_of_ones_own(config, own_folder):
    edit(config / "studies" / "tiny.yaml", methods=["mine", "grpo"])
    assert load_study(config, "tiny", own_folder).study.methods == ["mine", "grpo"]


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("grpo.yaml", MINE, "mine/grpo.yaml: .*methods/grpo.yaml has this name already"),
        ("a b.yaml", MINE, "mine/a b.yaml: the name of a method is letters"),
        ("mine.yaml", "label: Mine", "mine/mine.yaml: objective: is missing"),
        ("mine.yaml", MINE.replace("grpo", "grop"), "mine.yaml: objective: unknown .*did you mean"),
        ("mine.py", "def (", "mine/mine.py: SyntaxError: invalid syntax"),
        ("a.yaml", MINE, "mine/mine.yaml: label: 'Mine' is that of .*mine/a.yaml; tables"),
        ("mine.yaml", MINE.replace("Mine", "GRPO"), "label: 'GRPO' is that of .*methods/grpo.yaml"),
        ("mine.yaml", MINE.replace("Mine", "$x_{$"), "mine.yaml: label: .* is not allowed"),
    ],
)
def test_bad_files_of_ones_own(config, own_folder, name, text, expected):
    (own_folder / name).write_text(text)
    with pytest.raises(UserError, match=expected):
        load_study(config, "tiny", own_folder)


def test_a_folder_of_ones_own_that_is_none(config, own_folder):
    with pytest.raises(UserError, match=r"own_methods: .*mine\.yaml is not a folder"):
        load_study(config, "tiny", own_folder / "mine.yaml")
    (own_folder / "mine.yaml").unlink()
    with pytest.raises(UserError, match=r"own_methods: .*mine holds no NAME.yaml"):
        load_study(config, "tiny", own_folder)


def test_the_home_folder_of_a_setting(config, monkeypatch):
    monkeypatch.setenv("HOME", "/home/me")
    settings = load_settings(config / "config.yaml", {"own_methods": "~/mine"})
    assert settings.own_methods_folder == Path("/home/me/mine")


class Cat(Strict):
    kind: Literal["cat"]
    lives: int


class Dog(Strict):
    kind: Literal["dog"]
    tricks: list[str] = Field(default=[])


Pet = Annotated[Cat | Dog, Field(discriminator="kind")]


class House(Strict):
    pets: dict[str, Pet]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"kind": "dog", "lives": 9}, "lives: unknown key; allowed: kind, tricks"),
        ({"kind": "cat"}, "lives: is missing; add the key"),
        ({"kind": "dog", "tricks": [1]}, "tricks.0: 1 is not allowed: input should be a valid"),
        ({"kind": "cow"}, "kind: 'cow' is not allowed: input should be 'cat', 'dog'"),
        ({"lives": 9}, "kind: is missing; add the key"),
    ],
)
def test_messages_do_not_tell_the_variants_of_a_union_for_keys(value, expected):
    with pytest.raises(UserError) as error:
        validate(Pet, value, "pet.yaml")
    assert str(error.value).startswith(f"pet.yaml: {expected}")
    for name in ("tom", "cat"):  # a name may be that of a variant
        with pytest.raises(UserError) as error:
            validate(House, {"pets": {name: value}}, "house.yaml")
        assert str(error.value).startswith(f"house.yaml: pets.{name}.{expected}")


ROWS = {"source": "rows", "path": "rows.jsonl", "fields": {"prompt": "q", "answer": "a"}}
HUB = {"hub": "me/sums", "revision": "main", "files": ["a.jsonl"], "path": None}


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"path": None}, "hub, path: write one of them"),
        ({**HUB, "path": "x"}, "hub, path: write one of them"),
        ({**HUB, "files": None}, "hub: needs revision and files; add them"),
        ({**HUB, "revision": None}, "hub: needs revision and files; add them"),
        ({"revision": "main"}, "revision: belongs to hub; remove it"),
        ({**HUB, "hub": "sums"}, "hub: 'sums' is not allowed: string should match"),
        ({**HUB, "files": ["../x"]}, "files.0: '../x' leaves the repository"),
        ({**HUB, "files": ["/x"]}, "files.0: '/x' leaves the repository"),
        ({**HUB, "files": ["x", "x"]}, "files: 'x' stands twice"),
        ({"template": "Think."}, "template: write {prompt} once"),
        ({"template": "{prompt} {prompt}"}, "template: write {prompt} once"),
        ({"fields": {"prompt": "q"}}, "fields.answer: is missing; add the key"),
        ({"answer": "number"}, "answer: 'number' is not allowed: input should be 'text'"),
        ({"operators": [1, 2]}, "operators: unknown key; allowed: source, hub, revision, path"),
        ({"source": "row"}, "source: 'row' is not allowed: input should be 'chain', 'rows'"),
    ],
)
def test_bad_rows(config, change, expected):
    path = config / "datasets" / "mine.yaml"
    path.write_text(yaml.safe_dump({**ROWS, **change}))
    edit(config / "studies" / "tiny.yaml", train_data="mine")
    assert f"{path}: {expected}" in message(config)


def test_a_run_depends_on_where_its_rows_are(config):
    (config / "datasets" / "mine.yaml").write_text(yaml.safe_dump({**ROWS, **HUB}))
    edit(config / "studies" / "tiny.yaml", train_data="mine")
    resolved = load_study(config, "tiny")
    data = resolved.run_config(resolved.runs()[0], "").train_data
    assert (data.source, data.hub, data.revision) == ("rows", "me/sums", "main")
    # Its text is read back as it was written.
    texts = resolved.config_texts(config, lambda _: "")
    assert "label" not in yaml.safe_load(texts[str(config / "data/held_out/chain-easy.yaml")]())
    (config / "c.yaml").write_text(texts[str(config / "data/train/mine.yaml")]())
    assert load_data_config(config / "c.yaml") == (data, None)
    (config / "c.yaml").write_text(texts[str(config / "data/held_out/chain-easy.yaml")]())
    assert load_data_config(config / "c.yaml")[1] == 1


def test_demonstrations_need_generated_prompts(config):
    (config / "datasets" / "mine.yaml").write_text(yaml.safe_dump(ROWS))
    replace(config / "models" / "qwen3-tiny.yaml", "data: chain", "data: mine")
    assert (
        "qwen3-tiny.yaml: warm_start.data: 'mine' has source rows; demonstrations can be written "
        "for prompts of source chain only"
    ) in message(config)


@pytest.mark.parametrize(
    ("name", "samples"),
    # ReSPO, Section 5: K of each benchmark; the labels are the columns of Table 1.
    [
        ("aime25", 16),
        ("aime24", 16),
        ("amc23", 16),
        ("olympiadbench", 4),
        ("minerva_math", 4),
        ("math500", 4),
    ],
)
def test_the_benchmarks_of_the_respo_paper(config, name, samples):
    edit(config / "studies" / "tiny.yaml", benchmarks=[name], train_data="dapo-math-17k")
    benchmark = load_study(config, "tiny").benchmarks[name]
    assert benchmark.samples == samples
    assert benchmark.verifier == "math_verify"
    assert re.fullmatch("[0-9a-f]{40}", benchmark.revision)
    assert benchmark.template == (
        "{prompt}\nPlease reason step by step, and put your final answer within \\boxed{}."
    )
