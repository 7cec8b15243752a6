from respo.config import load_study
from respo.reporting.methods import CONFIG
from respo.reporting.sweep import sweep_note


def test_labels_that_end_in_the_values_are_explained_once():
    study = load_study(CONFIG, "maspo")
    assert sweep_note(study, ["maspo", "maspo-a0.8-b0.03", "maspo-a0.3-b0", "grpo"]) == (
        "; labels such as MASPO 0.3/0 give alpha/beta; MASPO: alpha 0.3, beta 0.03"
    )


def test_other_labels_are_explained_each():
    study = load_study(CONFIG, "maspo")
    assert sweep_note(study, ["maspo", "maspo-no-positive-risk"]) == (
        "; MASPO: alpha 0.3, beta_high 0.03; MASPO w/o pos. risk: alpha 0.5, beta_high 0"
    )


def test_nothing_to_explain():
    study = load_study(CONFIG, "maspo")
    assert sweep_note(study, ["maspo", "grpo"]) == ""
    assert sweep_note(load_study(CONFIG, "respo"), ["grpo", "respo"]) == ""
