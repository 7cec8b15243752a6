import base64
import gzip
import hashlib
import json
import re
import sys

import pytest

from respo.reporting.page import __main__ as command

NASTY = "</script><script>alert(1)</script><!--<script> &amp; \u2028 \x00 \\boxed{6}"


def write(monkeypatch, path):
    monkeypatch.setattr(sys, "argv", ["page", "--study", str(path)])
    command.main()
    return (path / "explore.html").read_text(encoding="utf-8")


def data_of(page):
    packed = base64.b64decode(re.search('id="data">(.*?)</script>', page)[1])
    return json.loads(gzip.decompress(packed))


def test_the_page_holds_the_results_and_asks_nobody(folder, monkeypatch, write_responses):
    made = folder()
    made.cell("easy", [2, 0], "grpo")
    write_responses(made, "easy", [("easy-0", 0, True, NASTY, "6")])
    page = write(monkeypatch, made.path)
    data = data_of(page)
    assert data["study"] == "tried"
    # Orange is GRPO's colour in every figure.
    assert data["methods"]["grpo"] == {
        **{"label": "GRPO", "color": "#E69F00", "dash": "", "width": 1.5},
    }
    assert data["methods"]["baseline"] == {"label": "as it comes"}
    samples = data["cells"]["small/grpo/N8/seed1/easy"]["samples"]
    assert [sample["response"] for sample in samples] == [NASTY]
    # One block of data and one script, whatever a response says.
    assert page.count("<script") == page.count("</script") == 2
    assert "<!--" not in page
    # Nothing from elsewhere: the only address is the name of SVG.
    assert set(re.findall(r"\w+://[^\"'\s]*", page)) == {"http://www.w3.org/2000/svg"}


def test_the_policy_of_the_page_allows_its_own_script_and_style_alone(folder, monkeypatch):
    page = write(monkeypatch, folder().path)

    def digest(tag):
        text = re.search(f"<{tag}>(.*?)</{tag}>", page, re.DOTALL)[1]
        return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()

    policy = re.search('Policy" content="(.*?)"', page)[1]
    assert policy == (
        f"default-src 'none'; style-src 'sha256-{digest('style')}'; "
        f"script-src 'sha256-{digest('script')}'"
    )


def test_remaking_gives_the_same_bytes(folder, monkeypatch):
    made = folder()
    made.cell("easy", [2, 0], "grpo")
    made.metrics([0.5] * 32, [-0.1] * 32, "grpo")
    first = write(monkeypatch, made.path)
    assert write(monkeypatch, made.path) == first
    made.cell("easy", [1, 0], "grpo")
    changed = write(monkeypatch, made.path)
    assert data_of(changed)["made_from"] != data_of(first)["made_from"]


def test_a_damaged_cell_is_told_in_one_line(folder, monkeypatch):
    made = folder()
    path = made.cell("easy", [2, 0], "grpo", changes={"pass_at_1": 0.4})
    with pytest.raises(SystemExit) as stop:
        write(monkeypatch, made.path)
    assert str(stop.value).startswith(f"error: {path}: pass_at_1: is not the mean")
    assert not (made.path / "explore.html").exists()


def test_a_page_that_is_too_large_for_the_report_says_so(folder, monkeypatch, capsys):
    made = folder()
    write(monkeypatch, made.path)
    assert capsys.readouterr().out == f"{made.path}/explore.html\n"
    monkeypatch.setattr(command, "SHOWN_IN_REPORT", 1000)
    write(monkeypatch, made.path)
    assert "too large to be shown within report.html" in capsys.readouterr().out
