import os
import subprocess
import sys

import pytest

from respo.reporting import figure


def draw(monkeypatch, id_, path):
    monkeypatch.setattr(sys, "argv", ["figure", id_, "--study", str(path)])
    figure.main()
    return [(path / f"figures/{id_}.{suffix}").read_bytes() for suffix in ("pdf", "png")]


@pytest.mark.parametrize("id_", ["respo/fig1", "respo/fig3"])
def test_remaking_gives_the_same_bytes(folder, monkeypatch, id_):
    made = folder()
    made.metrics([0.5] * 32, [-0.1] * 32, "grpo")
    pdf, png = draw(monkeypatch, id_, made.path)
    assert pdf.startswith(b"%PDF")
    assert png.startswith(b"\x89PNG")
    assert b"made from results" in png
    assert b"CreationDate" not in pdf
    # Another process, another day as far as the files can tell, another backend. Only the kernels
    # need torch.
    code = (
        "import sys\nfrom respo.reporting.figure import main\nmain()\nprint('torch' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, id_, "--study", made.path],
        check=True,
        capture_output=True,
        text=True,
        env={**os.environ, "SOURCE_DATE_EPOCH": "1000000000", "MPLBACKEND": "svg"},
    )
    assert done.stdout.splitlines()[-1] == str(id_ == "respo/fig1")
    again = [(made.path / f"figures/{id_}.{suffix}").read_bytes() for suffix in ("pdf", "png")]
    assert again == [pdf, png]


def test_a_damaged_run_is_told_in_one_line(folder, monkeypatch):
    made = folder()
    path = made.metrics([0.5] * 31, [0.0] * 31, "grpo")
    with pytest.raises(SystemExit) as stop:
        draw(monkeypatch, "respo/fig3", made.path)
    assert str(stop.value).startswith(f"error: {path}: update: does not count from 1 to 32")
    assert not (made.path / "figures").exists()
