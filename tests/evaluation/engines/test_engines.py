from pathlib import Path

from respo.evaluation.engines import sampler_code


def test_code_is_known_by_what_it_does(tmp_path: Path) -> None:
    file = tmp_path / "sampler.py"
    file.write_text("def sample():\n    return 1\n")
    first = sampler_code(file)
    file.write_text('"""It samples."""\n\n\ndef sample():  # quickly\n    return 1\n')
    assert sampler_code(file) == first
    file.write_text("def sample():\n    return 2\n")
    assert sampler_code(file) != first
    assert sampler_code() not in (first, sampler_code(file))
