import pytest

from respo.rewards import overlong_penalty


@pytest.mark.parametrize(
    ("tokens", "penalty"),
    # ReSPO, App. D.1: limit 8,192, buffer 4,096, factor 1: -max(0, (L - 4096) / 4096)
    [(0, 0.0), (4096, 0.0), (4097, -1 / 4096), (5120, -0.25), (6144, -0.5), (8192, -1.0)],
)
def test_published_setting(tokens: int, penalty: float) -> None:
    assert overlong_penalty(tokens, max_tokens=8192, buffer=4096, factor=1.0) == penalty


def test_buffer_and_factor_count() -> None:
    # 90 of 100 tokens with the last 20 penalised: halfway, so half of the factor.
    assert overlong_penalty(90, max_tokens=100, buffer=20, factor=3.0) == -1.5


@pytest.mark.parametrize("buffer", [0, -1, 101])
def test_impossible_buffer(buffer: int) -> None:
    with pytest.raises(ValueError, match="between 1 and 100"):
        overlong_penalty(1, max_tokens=100, buffer=buffer, factor=1.0)
