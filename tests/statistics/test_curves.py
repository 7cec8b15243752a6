import numpy as np
import pytest

from respo.statistics import accuracy_of_score, across_seeds, early_peak, late_score


def test_accuracy_of_score() -> None:
    assert accuracy_of_score([-1.0, 0.0, 0.5, 1.0]).tolist() == [0.0, 0.5, 0.75, 1.0]


def test_early_peak() -> None:
    update = [1, 128, 256, 257]
    assert early_peak(update, [0.1, 0.3, 0.2, 0.9]) == 0.3
    assert early_peak(update, [0.1, 0.3, 0.4, 0.9]) == 0.4  # update 256 belongs to it
    assert early_peak(update, [0.1, 0.3, 0.2, 0.9], until=1) == 0.1


def test_late_score_of_a_line() -> None:
    """The mean of a line is its middle: 960 / 1000; the points 896 ... 1024 have that mean too."""
    update = np.arange(1, 1025)
    late = late_score(update, update / 1000)
    assert late.mean == pytest.approx(0.960)
    # 129 consecutive integers: variance (129^2 - 1) / 12.
    assert late.temporal_sd == pytest.approx(np.sqrt((129**2 - 1) / 12) / 1000)


def test_late_score_weights_by_updates() -> None:
    # Segments: 0 to 1 over 8 updates (mean 0.5), then constant 1 over 120: (4 + 120) / 128.
    late = late_score([888, 896, 904, 1024], [9.0, 0.0, 1.0, 1.0])
    assert late.mean == pytest.approx(124 / 128)
    assert late.temporal_sd == pytest.approx(np.sqrt(2) / 3)  # of 0, 1, 1


def test_other_window() -> None:
    assert late_score([1, 2, 3], [5.0, 0.0, 1.0], start=2, end=3).mean == 0.5


def test_points_missing() -> None:
    with pytest.raises(ValueError, match="1 points between 896 and 1024, but 2 are needed"):
        late_score([1, 900], [0.0, 1.0])
    with pytest.raises(ValueError, match="0 points between -inf and 256"):
        early_peak([300], [0.0])


@pytest.mark.parametrize(("update", "value"), [([1, 1], [0, 0]), ([2, 1], [0, 0]), ([1], [0, 0])])
def test_no_curve(update: list, value: list) -> None:
    with pytest.raises(ValueError, match="increasing"):
        early_peak(update, value)


def test_across_seeds() -> None:
    # Population standard deviation: 1, 2, 3 deviate by 1, 0, 1, so sqrt(2/3).
    assert across_seeds([1.0, 2.0, 3.0]) == pytest.approx((2.0, np.sqrt(2 / 3)))
    assert across_seeds([0.5]) == (0.5, 0.0)
    with pytest.raises(ValueError, match="no seed"):
        across_seeds([])
