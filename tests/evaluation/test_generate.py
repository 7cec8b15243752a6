import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch

import respo.evaluation.generate
from respo.cli import UserError
from respo.evaluation import shards
from respo.evaluation.engines import Sampling, local, vllm
from respo.evaluation.generate import SCHEMA, generate, main
from respo.files import sha256_of
from respo.parquet import made_from, write_parquet
from respo.policy import Policy, character_tokenizer, load_policy, policy_hash, save_policy
from respo.policy.weights import expected_shapes

ROWS = {"id": ["c", "a", "b"], "prompt": ["1+2*3-4=", "7=", "5-6="], "answer": ["5", "7", "9"]}
SETTINGS = {"temperature": 1.0, "top_p": 0.9, "max_response_tokens": 12, "seed": 7}


# What the file of a benchmark says of itself.
BENCHMARK = {"version": 1, "files": {"commit": "8d88b28"}}


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory) -> Path:
    config = {
        "model_type": "qwen3",
        "vocab_size": 20,
        "hidden_size": 16,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "num_key_value_heads": 1,
        "head_dim": 8,
        "intermediate_size": 16,
        "max_position_embeddings": 32,
        "rms_norm_eps": 1e-6,
        "rope_theta": 10000.0,
        "tie_word_embeddings": True,
    }
    generator = torch.Generator().manual_seed(0)
    shapes = expected_shapes(config).items()
    weights = {name: torch.randn(shape, generator=generator) * 0.4 for name, shape in shapes}
    folder = tmp_path_factory.mktemp("run") / "checkpoint"
    save_policy(Policy(config, weights, character_tokenizer()), folder)
    return folder


@pytest.fixture
def benchmark_file(tmp_path) -> Path:
    path = tmp_path / "benchmark.parquet"
    write_parquet(path, pa.table(ROWS), BENCHMARK)
    return path


def arguments(checkpoint: Path, benchmark: Path, out: Path, **changes: object) -> list[str]:
    options = {"checkpoint": checkpoint, "benchmark": benchmark, "samples": 4, **SETTINGS}
    options |= {"out": out, **changes}
    return [
        text
        for name, value in options.items()
        for text in (f"--{name.replace('_', '-')}", str(value))
    ]


def run(monkeypatch, *args: object, **changes: object) -> None:
    monkeypatch.setattr(sys, "argv", ["generate", *arguments(*args, **changes)])
    main()


def draw(
    policy: Policy, names: list[str], samples: int, folder: Path, seed: int = 7
) -> dict[tuple[str, int], str]:
    rows = {row["id"]: row for row in pa.table(ROWS).to_pylist()}
    problems = [rows[name] for name in names]
    engine = local.LocalEngine(policy)
    prompts = [engine.encode(problem["prompt"]) for problem in problems]
    sampling = Sampling(**SETTINGS | {"seed": seed})
    texts = {problem["id"]: problem["prompt"] for problem in problems}
    kept = shards.Shards(folder / ".shards", {"seed": seed}, texts)
    responses = generate(engine, names, prompts, samples, sampling, kept)
    return {key: response.response for key, response in responses.items()}


def test_the_file_holds_what_the_contract_says(checkpoint, benchmark_file, tmp_path, monkeypatch):
    out = tmp_path / "new" / "generations.parquet"
    run(monkeypatch, checkpoint, benchmark_file, out)
    table = pq.read_table(out)
    assert table.schema.remove_metadata() == SCHEMA
    assert table["problem_id"].to_pylist() == ["c"] * 4 + ["a"] * 4 + ["b"] * 4
    assert table["sample"].to_pylist() == [0, 1, 2, 3] * 3
    assert table["prompt"].to_pylist()[4:8] == ["7="] * 4
    assert table["answer"].to_pylist()[8:] == ["9"] * 4
    for row in table.to_pylist():
        assert 1 <= row["response_tokens"] <= 12
        assert not row["truncated"] or row["response_tokens"] == 12
        assert "<" not in row["response"]
    assert len(set(table["response"].to_pylist())) > 3
    assert set(table["truncated"].to_pylist()) == {False, True}

    provenance = made_from(table)
    assert provenance["checkpoint_sha256"] == policy_hash(checkpoint)
    assert provenance["benchmark_sha256"] == sha256_of(benchmark_file)
    assert provenance["benchmark"] == BENCHMARK
    assert provenance["sampling"] == {"samples": 4, **SETTINGS}
    assert provenance["engine"] == "local"
    assert provenance["device"] == "cpu"
    assert provenance["environment"]["torch"] == torch.__version__
    assert torch.get_num_threads() == 1


def test_the_same_again_gives_the_same_bytes(checkpoint, benchmark_file, tmp_path, monkeypatch):
    for name in ("first.parquet", "second.parquet"):
        run(monkeypatch, checkpoint, benchmark_file, tmp_path / name)
    assert (tmp_path / "first.parquet").read_bytes() == (tmp_path / "second.parquet").read_bytes()


def train_json(tmp_path: Path, content: object) -> Path:
    path = tmp_path / "train.json"
    path.write_text(json.dumps(content))
    return path


def test_the_weights_that_were_trained_are_sampled(
    checkpoint, benchmark_file, tmp_path, monkeypatch
):
    train = train_json(tmp_path, {"checkpoints": {"checkpoint": policy_hash(checkpoint)}})
    run(monkeypatch, checkpoint, benchmark_file, tmp_path / "out.parquet", train=train)
    assert (tmp_path / "out.parquet").exists()
    # The folder's name counts, however it is written.
    monkeypatch.chdir(checkpoint)
    run(monkeypatch, Path(), benchmark_file, tmp_path / "again.parquet", train=train)
    assert (tmp_path / "again.parquet").read_bytes() == (tmp_path / "out.parquet").read_bytes()
    # A baseline's folder has no number.
    train = train_json(tmp_path, {"checkpoints": {"0": policy_hash(checkpoint)}})
    run(monkeypatch, Path(), benchmark_file, tmp_path / "baseline.parquet", train=train, update=0)
    assert (tmp_path / "baseline.parquet").read_bytes() == (tmp_path / "out.parquet").read_bytes()


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        ("flip", "it was changed or damaged after training; "),
        ("delete the weights", "the checkpoint is missing; "),
        ("delete the folder", "the checkpoint is missing; "),
    ],
)
def test_a_checkpoint_that_was_touched_is_refused(
    checkpoint, benchmark_file, tmp_path, monkeypatch, damage, message
):
    train = train_json(tmp_path, {"checkpoints": {"96": policy_hash(checkpoint)}})
    copy = tmp_path / "96"
    shutil.copytree(checkpoint, copy)
    weights = copy / "model.safetensors"
    if damage == "flip":
        content = bytearray(weights.read_bytes())
        content[-1] ^= 1
        weights.write_bytes(content)
    elif damage == "delete the weights":
        weights.unlink()
    else:
        shutil.rmtree(copy)
    with pytest.raises(SystemExit) as stopped:
        run(monkeypatch, copy, benchmark_file, tmp_path / "out.parquet", train=train)
    assert str(stopped.value).startswith(f"error: {copy}: the checkpoint is ")
    assert message in str(stopped.value)
    assert f"train the run anew: snakemake --forcerun {train}" in str(stopped.value)
    assert not (tmp_path / "out.parquet").exists()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ([], "checkpoints: is missing or not a map"),
        ({}, "checkpoints: is missing or not a map"),
        ({"checkpoints": ["96"]}, "checkpoints: is missing or not a map"),
        ({"checkpoints": {}}, "no hash for update checkpoint; there are none"),
        ({"checkpoints": {"checkpoint": 1}}, "no hash for update checkpoint; there are checkpoint"),
    ],
)
def test_a_train_json_of_another_shape(
    checkpoint, benchmark_file, tmp_path, monkeypatch, content, message
):
    train = train_json(tmp_path, content)
    with pytest.raises(SystemExit) as stopped:
        run(monkeypatch, checkpoint, benchmark_file, tmp_path / "out.parquet", train=train)
    assert str(stopped.value).startswith(f"error: {train}: checkpoints: ")
    assert message in str(stopped.value)
    assert f"snakemake --forcerun {train}" in str(stopped.value)


def test_any_part_can_be_sampled_again(checkpoint, monkeypatch, tmp_path):
    policy = load_policy(checkpoint)
    whole = draw(policy, ["c", "a", "b"], 5, tmp_path)
    part = draw(policy, ["b", "c"], 3, tmp_path)
    assert part == {key: whole[key] for key in part}
    # Batches of two responses: the samples of one problem are split.
    monkeypatch.setattr(local, "BATCH_ROWS", 2)
    split = draw(policy, ["c", "a", "b"], 5, tmp_path)
    assert split == whole


def test_long_work_says_how_far_it_is(checkpoint, monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(respo.evaluation.generate, "PROGRESS_SECONDS", 0.0)
    monkeypatch.setattr(local, "BATCH_ROWS", 2)
    draw(load_policy(checkpoint), ["c", "a", "b"], 2, tmp_path)
    lines = capsys.readouterr().err.splitlines()
    assert [line.split()[0] for line in lines] == ["2/6", "4/6", "6/6"]
    assert all(" tokens/s  " in line for line in lines)
    assert lines[-1].endswith("  0 s left")


class Killed(BaseException):
    pass


def test_a_killed_job_continues_to_the_same_result(checkpoint, monkeypatch, capsys, tmp_path):
    policy = load_policy(checkpoint)
    whole = draw(policy, ["c", "a", "b"], 2, tmp_path)
    monkeypatch.setattr(shards, "SECONDS", 0.0)
    monkeypatch.setattr(local, "BATCH_ROWS", 2)
    sample, calls = local.sample, []

    def dies_at_the_third_batch(*args, **options):
        calls.append(len(args[1]))
        if len(calls) == 3:
            raise Killed
        return sample(*args, **options)

    monkeypatch.setattr(local, "sample", dies_at_the_third_batch)
    with pytest.raises(Killed):
        draw(policy, ["c", "a", "b"], 2, tmp_path)
    capsys.readouterr()
    assert draw(policy, ["c", "a", "b"], 2, tmp_path) == whole
    assert calls == [1, 1, 1, 1]
    assert capsys.readouterr().err == "4/6 responses are there already\n"
    # Nothing is left to sample, but for other work.
    assert draw(policy, ["c", "a", "b"], 2, tmp_path) == whole
    assert len(calls) == 4
    assert draw(policy, ["c", "a", "b"], 2, tmp_path, seed=8) != whole
    assert len(calls) == 7


def sampled(capsys) -> str:
    return capsys.readouterr().err.strip()


def test_shards_become_a_second_name_of_the_output(
    checkpoint, benchmark_file, tmp_path, monkeypatch
):
    monkeypatch.setattr(shards, "SECONDS", 0.0)
    out = tmp_path / "out.parquet"
    run(monkeypatch, checkpoint, benchmark_file, out)
    assert pq.read_table(out).num_rows == 12
    (kept,) = (tmp_path / ".shards").glob("*/*")
    assert kept.samefile(out)


@pytest.mark.parametrize("by", ["snakemake, which deletes the output", "hand"])
@pytest.mark.parametrize(("first", "then", "there"), [(2, 4, "6/12"), (4, 2, "6/6")])
def test_more_samples_cost_the_new_ones_and_fewer_none(
    checkpoint, benchmark_file, tmp_path, monkeypatch, capsys, by, first, then, there
):
    run(monkeypatch, checkpoint, benchmark_file, tmp_path / "at once" / "out.parquet", samples=then)
    out = tmp_path / "out.parquet"
    run(monkeypatch, checkpoint, benchmark_file, out, samples=first)
    for name in ("then", "first again"):
        if by != "hand":
            out.unlink()
        run(monkeypatch, checkpoint, benchmark_file, out, samples=then)
        assert out.read_bytes() == (tmp_path / "at once" / "out.parquet").read_bytes(), name
        assert sampled(capsys) == f"{there} responses are there already"
        if by != "hand":
            out.unlink()
        # What fewer samples leave out is there when they are wanted again.
        run(monkeypatch, checkpoint, benchmark_file, out, samples=first)
        assert sampled(capsys) == f"{3 * first}/{3 * first} responses are there already"
        there = f"{3 * then}/{3 * then}"


def test_other_problems_cost_the_new_ones(
    checkpoint, benchmark_file, tmp_path, monkeypatch, capsys
):
    out = tmp_path / "out.parquet"
    run(monkeypatch, checkpoint, benchmark_file, out)
    rows = {
        "id": ["new", "c", "a", "b"],
        "prompt": ["9-9=", "1+2*3-4=", "7=", "6-6="],  # b asks another thing
        "answer": ["0", "5", "8", "0"],  # of a only the answer is another
    }
    pq.write_table(pa.table(rows), benchmark_file)
    run(monkeypatch, checkpoint, benchmark_file, tmp_path / "at once" / "out.parquet")
    out.unlink()
    run(monkeypatch, checkpoint, benchmark_file, out)
    assert sampled(capsys) == "8/16 responses are there already"
    assert out.read_bytes() == (tmp_path / "at once" / "out.parquet").read_bytes()
    assert pq.read_table(out)["answer"].to_pylist() == ["0"] * 4 + ["5"] * 4 + ["8"] * 4 + ["0"] * 4


def test_deleted_rows_are_sampled_again(checkpoint, benchmark_file, tmp_path, monkeypatch, capsys):
    out = tmp_path / "out.parquet"
    run(monkeypatch, checkpoint, benchmark_file, out)
    whole = out.read_bytes()
    table = pq.read_table(out)
    out.unlink()
    pq.write_table(pa.concat_tables([table.slice(0, 5), table.slice(7)]), out)
    run(monkeypatch, checkpoint, benchmark_file, out)
    assert sampled(capsys) == "10/12 responses are there already"
    assert out.read_bytes() == whole


# What of an environment the test changes.
NOTED = ("torch", "code", "processor")


@pytest.mark.parametrize(
    ("change", "taken"),
    [
        ({"seed": 8}, False),
        ({"temperature": 0.5}, False),
        ({"max_response_tokens": 13}, False),
        ({"checkpoint": "another"}, False),
        ({"torch": "another"}, False),
        ({"sampler": "another"}, False),
        ({"code": "another"}, True),
        ({"processor": "another"}, True),
    ],
    ids=str,
)
def test_what_is_taken_over(
    checkpoint, benchmark_file, tmp_path, monkeypatch, capsys, change, taken
):
    def made(**noted: str) -> dict[str, str]:
        names = {"respo": "1", "code": "abc", "python": "3", "machine": "m", "torch": "2"}
        return names | {"processor": "p"} | noted

    monkeypatch.setattr(respo.evaluation.generate, "environment", lambda *_: made())
    out = tmp_path / "out.parquet"
    run(monkeypatch, checkpoint, benchmark_file, out, samples=2)
    environment = {name: change.pop(name) for name in NOTED if name in change}
    monkeypatch.setattr(respo.evaluation.generate, "environment", lambda *_: made(**environment))
    if change.pop("sampler", None):
        monkeypatch.setattr(local, "sampler_code", lambda *_: "another")
    if change.pop("checkpoint", None):
        policy = load_policy(checkpoint)
        policy.weights["model.norm.weight"] *= 1.5
        checkpoint = tmp_path / "another"
        save_policy(policy, checkpoint)
    out.unlink()
    run(monkeypatch, checkpoint, benchmark_file, out, **{"samples": 3, **change})
    aside = f"; those of other settings (1) stay in {tmp_path / '.shards'}"
    found = (
        "6/9 responses are there already" if taken else f"0/9 responses are there already{aside}"
    )
    assert sampled(capsys) == found
    provenance = made_from(pq.read_table(out))
    assert provenance["environment"] == made(**environment)
    assert provenance.get("earlier") == ([made()] if taken else None)
    # The next time it is still told who made the first two samples.
    out.unlink()
    run(monkeypatch, checkpoint, benchmark_file, out, **{"samples": 4, **change})
    assert made_from(pq.read_table(out)).get("earlier") == ([made()] if taken else None)


@pytest.mark.parametrize("by", ["snakemake, which deletes the output", "hand"])
def test_settings_that_come_back_cost_nothing(
    checkpoint, benchmark_file, tmp_path, monkeypatch, capsys, by
):
    out = tmp_path / "out.parquet"
    for temperature in (1.0, 0.5):
        run(monkeypatch, checkpoint, benchmark_file, out, temperature=temperature)
        if by != "hand":
            out.unlink()
    capsys.readouterr()
    run(monkeypatch, checkpoint, benchmark_file, out)
    aside = f"; those of other settings (1) stay in {tmp_path / '.shards'}"
    assert sampled(capsys) == f"12/12 responses are there already{aside}"


def test_other_outputs_of_a_folder_lose_nothing(
    checkpoint, benchmark_file, tmp_path, monkeypatch, capsys
):
    monkeypatch.setattr(shards, "SECONDS", 0.0)
    monkeypatch.setattr(local, "BATCH_ROWS", 4)
    sample = local.LocalEngine.sample

    def dies(*arguments):
        yield next(sample(*arguments))
        raise Killed

    with monkeypatch.context() as dying:
        dying.setattr(local.LocalEngine, "sample", dies)
        with pytest.raises(Killed):
            run(monkeypatch, checkpoint, benchmark_file, tmp_path / "a.parquet")
    run(monkeypatch, checkpoint, benchmark_file, tmp_path / "b.parquet", seed=1)
    capsys.readouterr()
    run(monkeypatch, checkpoint, benchmark_file, tmp_path / "a.parquet")
    assert sampled(capsys).startswith(
        "4/12 responses are there already; those of other settings (1)"
    )


def test_a_job_that_fails_loses_nothing(checkpoint, benchmark_file, tmp_path, monkeypatch, capsys):
    out = tmp_path / "out.parquet"
    run(monkeypatch, checkpoint, benchmark_file, out, samples=2)
    out.unlink()
    sample = local.LocalEngine.sample

    def dies(*arguments):
        yield next(sample(*arguments))
        raise UserError("vLLM has died")

    monkeypatch.setattr(local, "BATCH_ROWS", 4)
    with monkeypatch.context() as dying:
        dying.setattr(local.LocalEngine, "sample", dies)
        with pytest.raises(SystemExit, match="vLLM has died"):
            run(monkeypatch, checkpoint, benchmark_file, out, samples=4)
    assert not out.exists()
    capsys.readouterr()
    run(monkeypatch, checkpoint, benchmark_file, out, samples=4)
    assert sampled(capsys) == "10/12 responses are there already"
    assert [path.name for path in (tmp_path / ".shards").glob("*/*")] == ["finished.parquet"]


HANGS = """
import time
from respo.evaluation import generate, shards, watchdog
from respo.evaluation.engines import local

shards.SECONDS, local.BATCH_ROWS, watchdog.START_SECONDS = 0.0, 4, {start}
sample, calls = local.sample, []

def hanging(*arguments, **options):
    calls.append(arguments)
    if len(calls) == {batch}:
        time.sleep(60)
    return sample(*arguments, **options)

local.sample = hanging
generate.main()
"""


@pytest.mark.parametrize(
    ("batch", "start", "silent_minutes", "there"),
    [(3, 7200.0, 0.02, 8), (1, 1.0, 0.001, 0)],
    ids=["on the way", "at the start"],
)
def test_a_job_that_hangs_ends_and_the_next_start_continues(
    checkpoint, benchmark_file, tmp_path, monkeypatch, capsys, batch, start, silent_minutes, there
):
    out = tmp_path / "out.parquet"
    code = HANGS.format(batch=batch, start=start)
    options = arguments(checkpoint, benchmark_file, out, silent_minutes=silent_minutes)
    done = subprocess.run(
        [sys.executable, "-c", code, *options],
        capture_output=True,
        text=True,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        timeout=50,
    )
    assert done.returncode == 1
    # The stacks, with where it hangs.
    assert done.stderr.startswith("Timeout (0:00:01")
    assert " in hanging\n" in done.stderr
    assert not out.exists()
    run(monkeypatch, checkpoint, benchmark_file, out)
    assert sampled(capsys) == (f"{there}/12 responses are there already" if there else "")
    run(monkeypatch, checkpoint, benchmark_file, tmp_path / "at once" / "out.parquet")
    assert out.read_bytes() == (tmp_path / "at once" / "out.parquet").read_bytes()


def test_work_of_many_signs_of_life_goes_on_as_long_as_it_likes():
    """Each of the pauses is shorter than the patience; signs come more often than they count."""
    code = """
import time
from respo.evaluation import watchdog

watchdog.REARM_SECONDS = 0.2
with watchdog.end_if_silent(1.0) as alive:
    until = time.monotonic() + 2.0
    while time.monotonic() < until:
        alive()
        time.sleep(0.01)
time.sleep(1.5)  # nothing is watched any more
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_file_system_without_links(checkpoint, benchmark_file, tmp_path, monkeypatch, capsys):
    def no_links(*_):
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(shards.os, "link", no_links)
    out = tmp_path / "out.parquet"
    run(monkeypatch, checkpoint, benchmark_file, out, samples=2)
    out.unlink()
    run(monkeypatch, checkpoint, benchmark_file, out, samples=3)
    assert sampled(capsys) == "6/9 responses are there already"


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ({"id": ["a"], "prompt": ["1="]}, "column 'answer' is missing"),
        ({"id": ["a", "a"], "prompt": ["1=", "2="], "answer": ["1", "2"]}, "'a' stands twice"),
        ({"id": ["a"], "prompt": [None], "answer": ["1"]}, "row 0: prompt is None"),
        ({"id": ["a"], "prompt": ["1+x="], "answer": ["1"]}, "problem 'a': '1+x=': 'x' is not in"),
        ({"id": ["a"], "prompt": [""], "answer": ["1"]}, "problem 'a': the prompt is empty"),
        (
            {"id": ["a"], "prompt": ["1" * 21], "answer": ["1"]},
            "problem 'a': 21 tokens of prompt and 12 of response are more than the 32 positions "
            "of the checkpoint; lower max_response_tokens",
        ),
        ({"id": [], "prompt": [], "answer": []}, "no problems"),
    ],
)
def test_bad_rows_are_one_message(checkpoint, tmp_path, monkeypatch, rows, message):
    path = tmp_path / "benchmark.parquet"
    pq.write_table(pa.table(rows), path)
    with pytest.raises(SystemExit) as stopped:
        run(monkeypatch, checkpoint, path, tmp_path / "out.parquet")
    assert str(path) in str(stopped.value)
    assert message in str(stopped.value)
    assert not (tmp_path / "out.parquet").exists()


def test_a_prompt_limit(checkpoint, benchmark_file, tmp_path, monkeypatch):
    run(monkeypatch, checkpoint, benchmark_file, tmp_path / "out.parquet", max_prompt_tokens=8)
    with pytest.raises(SystemExit) as stopped:
        run(monkeypatch, checkpoint, benchmark_file, tmp_path / "not.parquet", max_prompt_tokens=7)
    assert str(stopped.value) == (
        f"error: {benchmark_file}: problem 'c': 8 tokens of prompt are more than "
        "max_prompt_tokens 7; raise it or leave the problem out"
    )


@pytest.mark.parametrize(
    ("engine", "option", "value"),
    [
        ("local", "thinking", "true"),
        ("local", "tensor_parallel", 2),
        ("local", "dtype", "float32"),
        ("vllm", "device", "cpu"),
    ],
)
def test_options_of_the_other_engine(
    checkpoint, benchmark_file, tmp_path, monkeypatch, capsys, engine, option, value
):
    changes = {"engine": engine, option: value}
    with pytest.raises(SystemExit):
        run(monkeypatch, checkpoint, benchmark_file, tmp_path / "out.parquet", **changes)
    other = {"local": "vllm", "vllm": "local"}[engine]
    name = option.replace("_", "-")
    assert f"error: --{name}: only with --engine {other}" in capsys.readouterr().err


def test_an_output_of_another_format(
    checkpoint, benchmark_file, tmp_path, monkeypatch, capsys
) -> None:
    with pytest.raises(SystemExit) as caught:
        run(monkeypatch, checkpoint, benchmark_file, tmp_path / "new" / "x.jsonl")
    assert caught.value.code == 2
    assert "x.jsonl: the name must end in .parquet\n" in capsys.readouterr().err
    assert not (tmp_path / "new").exists()


def test_a_benchmark_that_is_no_parquet(checkpoint, tmp_path, monkeypatch) -> None:
    """Nobody is told to delete a file of his own."""
    path = tmp_path / "mine.jsonl"
    path.write_text('{"id": "a"}\n')
    with pytest.raises(SystemExit) as caught:
        run(monkeypatch, checkpoint, path, tmp_path / "g.parquet")
    assert str(caught.value.code).startswith(f"error: {path}: not a readable Parquet file (")
    assert "Give the Parquet file results/STUDY/data/held_out/NAME.parquet" in caught.value.code


def test_vllm_is_not_there(checkpoint, benchmark_file, tmp_path, monkeypatch):
    monkeypatch.setattr(vllm, "ENVIRONMENT", {})
    monkeypatch.setitem(sys.modules, "vllm", None)
    with pytest.raises(SystemExit) as stopped:
        run(monkeypatch, checkpoint, benchmark_file, tmp_path / "out.parquet", engine="vllm")
    assert str(stopped.value).startswith("error: vLLM cannot be imported (")
    assert "\n" not in str(stopped.value)


@pytest.mark.parametrize("device", ["gpu", "cuda:99", "tpu"])
def test_a_device_that_is_not_there(checkpoint, benchmark_file, tmp_path, monkeypatch, device):
    with pytest.raises(SystemExit, match=f"error: device '{device}'"):
        run(monkeypatch, checkpoint, benchmark_file, tmp_path / "out.parquet", device=device)


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("samples", 0),
        ("max_response_tokens", 0),
        ("temperature", 0),
        ("temperature", "nan"),
        ("top_p", 0),
        ("top_p", 1.5),
        ("silent_minutes", 0),
        ("silent_minutes", "inf"),
    ],
)
def test_settings_without_meaning(
    checkpoint, benchmark_file, tmp_path, monkeypatch, capsys, option, value
):
    with pytest.raises(SystemExit) as stopped:
        run(monkeypatch, checkpoint, benchmark_file, tmp_path / "out.parquet", **{option: value})
    assert stopped.value.code == 2
    assert f"--{option.replace('_', '-')}: {value}: must be" in capsys.readouterr().err


def test_as_a_command_without_importing_transformers(checkpoint, benchmark_file, tmp_path):
    code = (
        "import json, sys; from respo.evaluation.generate import main; main(); "
        "print(json.dumps('transformers' in sys.modules))"
    )
    result = subprocess.run(
        [
            sys.executable,
            "-c",
            code,
            *arguments(checkpoint, benchmark_file, tmp_path / "out.parquet"),
        ],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
    )
    assert json.loads(result.stdout) is False
    assert result.stderr == ""
