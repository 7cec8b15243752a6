"""Which scores are penalized: ReSPO's paper, Section 4.1, says so of the 30B model alone."""

from respo.reporting import choices, penalties, selection

NAME = "training accuracy"


def test_the_models_of_the_paper(paper):
    study = paper("respo").study
    runs = selection.full_length(study)
    assert penalties.label(study, runs, "qwen3-1.7b-base", NAME) == NAME
    assert penalties.label(study, runs, "qwen3-30b-a3b-base", NAME) == f"penalized\n{NAME}"
    assert penalties.note(study, runs).endswith(
        "penalized: s includes the length penalty, for Qwen3-30B-A3B; no other has one"
    )
    assert penalties.note(study, choices.dense(study)).endswith(", without a length penalty")
    assert penalties.note(study, choices.mixtures(study)).endswith("for Qwen3-30B-A3B")


def test_some_methods_of_a_model(folder):
    study = folder().study
    study.methods["respo"] = study.methods["respo"].model_copy(
        update={"overlong_buffer": 8, "overlong_factor": 1.0}
    )
    assert penalties.label(study, study.runs(), "small", NAME) == f"partly penalized\n{NAME}"
    assert "for Small & dense (ReSPO); no other" in penalties.note(study, study.runs())
