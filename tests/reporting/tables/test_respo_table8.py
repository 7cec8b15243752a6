import csv
import io

import pytest

from respo.config.schema import Method
from respo.config.yaml import canonical
from respo.files import write_text
from respo.reporting import table

ID = "respo/table8"


@pytest.fixture
def replay(folder):
    """GRPO with and without the routing of the sampler; one seed of ReSPO beside them."""
    made = folder(methods=["grpo", "gspo", "respo"], seeds=[1, 2])
    grpo = made.study.methods["grpo"].model_dump()
    replayed = Method(**{**grpo, "label": "GRPO + R3", "routing_replay": "R3"})
    methods = {**made.study.methods, "gspo": replayed}
    made.study = made.study.model_copy(update={"methods": methods})
    write_text(made.path / "study.yaml", canonical(made.study.model_dump(mode="json")))
    return made


def metrics(made, method, seed, early, late, length):
    """32 updates: the first 8 are early, those from 28 on are late."""
    score = [early] * 4 + [-1.0] * 23 + late
    more = {"response_length": [length] * 32, "capped_share": [0.5] * 32, "approx_kl": [0.001] * 32}
    made.metrics(score, [0.0] * 32, method, seed=seed, **more)


def rows(made):
    return list(csv.DictReader(io.StringIO(table.make(ID, made.results)["csv"])))


def test_summaries(replay):
    metrics(replay, "grpo", 1, 0.0, [-1.0, 0.0, 1.0, 0.0, 1.0], 10.0)
    metrics(replay, "grpo", 2, 1.0, [1.0] * 5, 20.0)
    grpo, replayed = rows(replay)
    assert (grpo["method"], replayed["method"]) == ("grpo", "gspo")
    # Scores (s + 1) / 2. Early peaks 1/2 and 1; late means by trapezoids of 0, 1/2, 1, 1/2, 1:
    # (0/2 + 1/2 + 1 + 1/2 + 1/2) / 4 = 5/8, and 1; last values 1 and 1.
    assert float(grpo["early_peak"]) == 0.75
    assert float(grpo["late_score"]) == pytest.approx((5 / 8 + 1) / 2)
    assert float(grpo["final_score"]) == 1.0
    # Population standard deviation of 5/8 and 1.
    assert float(grpo["late_score_seed_sd"]) == pytest.approx((1 - 5 / 8) / 2)
    # The deviation in time of the five values is sqrt(0.14), that of the other seed 0.
    assert float(grpo["late_score_sd"]) == pytest.approx(0.14**0.5 / 2)
    assert (float(grpo["response_length"]), float(grpo["capped_share"])) == (15.0, 0.5)
    # What is not there is missing.
    assert (replayed["early_peak"], replayed["approx_kl"]) == ("", "")


def test_one_of_two_seeds(replay):
    metrics(replay, "gspo", 2, 0.0, [1.0] * 5, 10.0)
    text = table.make(ID, replay.results)["md"]
    lines = [line for line in text.splitlines() if line.startswith("| Small")]
    shown = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    assert shown == [
        ["Small & dense", "8", "GRPO", *["--"] * 6, "", "0 of 2"],
        ["Small & dense", "8", "GRPO + R3", "50.00†", "100.00† ± 0.00", "100.00†", "10.0† ± 0.0",
         "50.00† ± 0.00", "1.00† ± 0.00", "", "1 of 2"],
    ]  # fmt: skip
    assert "maximum of the updates 1 to 8" in text
    assert "mean over the updates 28 to 32" in text
    # Metrics and configuration of three runs are missing.
    assert "Incomplete: 6 of 8 files of runs are missing" in text
    assert "ReSPO" not in text
