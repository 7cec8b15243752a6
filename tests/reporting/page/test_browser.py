"""The page as a browser shows it, after its scripts have run."""

import re
import shutil
import subprocess
from html import unescape

import pytest

from respo.files import write_text
from respo.reporting.page.data import collect
from respo.reporting.page.document import page

BROWSER = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
pytestmark = pytest.mark.skipif(BROWSER is None, reason="there is no Chromium on this machine")
NASTY = '</script><script>document.title = "theirs"</script><img src=x onerror="document.title=1">'
WHEN_READY = """
const waiting = setInterval(() => {
  if (!document.documentElement.dataset.ready) return;
  clearInterval(waiting);
  %s
  document.body.dataset.address = location.hash;
}, 10);
"""


@pytest.fixture
def opened(tmp_path):
    """A function that opens a results folder at an address and returns the document."""

    def open_(made, at="", then=""):
        path, text = tmp_path / "explore.html", page(collect(made.results))
        if then:
            # What a reader does: only here another script may run.
            text = re.sub(r"script-src [^\"]*", "script-src 'unsafe-inline'", text)
            text = text.replace("</body>", f"<script>{WHEN_READY % then}</script></body>")
        write_text(path, text)
        options = [
            *(
                "--headless",
                "--no-sandbox",
                "--disable-gpu",
                "--dump-dom",
                "--enable-logging=stderr",
            ),
            *("--virtual-time-budget=3000", f"--user-data-dir={tmp_path / 'browser'}"),
        ]
        done = subprocess.run(
            [BROWSER, *options, f"{path.as_uri()}#{at}"],
            check=True,
            capture_output=True,
            encoding="utf-8",
            timeout=120,
        )
        # What the page logs: errors, and all that its policy has refused.
        assert "CONSOLE" not in done.stderr
        assert 'data-ready="yes"' in done.stdout
        assert '<p id="error" role="alert" hidden=""></p>' in done.stdout
        assert "<title>A study: explore</title>" in done.stdout
        return done.stdout

    return open_


def words(html):
    return " ".join(unescape(re.sub("<[^>]*>", " ", html)).split())


def lines(document):
    """Return the text of each row of the grid."""
    table = re.search('<div class="scroll" id="grid".*?</table>', document, re.DOTALL)[0]
    return [words(row) for row in re.findall("<tr.*?</tr>", table, re.DOTALL)]


def part(document, start, end):
    return re.search(f"{start}.*?{end}", document, re.DOTALL)[0]


def test_the_grid_and_the_curves(folder, opened):
    made = folder()
    made.cell("easy", [2, 2, 1, 2], "grpo")
    made.cell("hard", [0, 0, 0, 0], "grpo")
    made.cell("easy", [1, 1, 1, 1], "respo")
    made.metrics([0.0] * 32, [-0.5 * update for update in range(32)], "grpo")
    document = opened(made, "metric=log_ratio_mean&at=11")
    # Means 1, 1, 0.5, 1 have a standard deviation of sqrt(3) / 8, and their mean has half of it,
    # 10.83; the bootstrap's draws give 10.85.
    assert lines(document) == [
        "Method N Easy Hard Macro average Seed sd Seeds",
        "GRPO 8 87.5 ± 10.9 0.0 ± 0.0 43.8 ± 5.4 1",
        "ReSPO 8 50.0 ± 0.0 -- -- 0 of 1",
    ]
    assert "Study tried: Small & dense, 2 runs, 4 cells, 1 of them missing" in words(document)
    panel = part(document, '<div class="panel">', "</ul>")
    assert words(panel).startswith("N = 8 update 11")
    # Update 11 lies in the second rollout batch, of updates 9 to 16, whose mean is that of
    # -0.5 * 8 to -0.5 * 15; three updates, a sixteenth of 32, are as good as one batch.
    assert words(panel).endswith("GRPO -5.75")
    assert "It starts anew with every rollout batch" in words(document)
    assert 'stroke="#E69F00"' in panel
    missing = made.run("respo").folder(made.path) / "metrics.parquet"
    assert f"Missing: {missing}." in words(document)


def test_a_logarithmic_axis(folder, opened):
    made = folder()
    norm = [10.0 ** (1 - update // 8) for update in range(32)]
    made.metrics([0.0] * 32, [0.0] * 32, "grpo", grad_norm=[0.0, *norm[1:]])
    panel = part(opened(made, "metric=grad_norm&axis=log&smooth=0&at=32"), "<svg viewBox", "</ul>")
    # From 10 down to 0.01, of which 1 / 1.1 is the lower end; three powers of ten and more.
    labels = [
        label for label in re.findall("<text[^>]*>([^<]*)", panel) if "." in label or label == "1"
    ]
    assert labels == ["0.01", "0.1", "1"]
    assert words(panel).endswith("GRPO 0.0100")
    # The zero at the start leaves a gap, and the line one piece.
    assert re.search('<path d="M([^"]*)"', panel)[1].count("M") == 0


def test_a_cell_with_responses_that_attack_the_page(folder, opened, write_responses):
    made = folder()
    made.cell("easy", [2, 0], "grpo", changes={"majority": 0.5})
    rows = [("easy-0", 0, True, NASTY, "<b>6</b>"), ("easy-1", 0, False, "a\nb", None)]
    write_responses(made, "easy", rows)
    document = opened(made, "cell=small/grpo/N8/seed1/easy")
    cell = part(document, '<section id="cell"', "</section>")
    text = words(cell)
    assert text.startswith("GRPO, N = 8, Small & dense, Easy Close")
    assert "pass@1 50.0%, update 32 problems 2 with 2 samples each (strict box)" in text
    assert "responses 4 no readable answer 1 out of time when checked 0" in text
    assert "mean length 10.0 tokens majority vote 50.0% right" in text
    assert f"snakemake {made.path}/small/grpo/N8/seed1/eval/32/easy/cell.json" in text
    assert "verifier strict_box" in text
    right, wrong = re.findall('<div class="sample.*?</pre>.*?</pre>', cell, re.DOTALL)
    assert words(right).startswith("✓ right easy-0, sample 0")
    assert "gold gold of easy-0 , extracted <b>6</b>" in words(right)
    assert unescape(right).endswith(f"{NASTY}</pre>")
    assert words(wrong).startswith("✗ wrong easy-1, sample 0 (unparsed, 3 tokens)")
    assert wrong.endswith("a\nb</pre>")
    assert "<img" not in document


def test_a_missing_cell_of_a_filtered_and_sorted_grid(folder, opened):
    made = folder(seeds=[1, 2], benchmarks=["easy"])
    made.cell("easy", [0, 2], "grpo")
    made.cell("easy", [1, 2], "respo")
    made.cell("easy", [2, 2], "respo", seed=2)
    document = opened(made, "cell=small/grpo/N8/seed2/easy&benchmark=easy&sort=easy&n=8")
    assert [line.partition(" ±")[0] for line in lines(document)] == [
        "Method N Easy ▼ Seed sd Seeds",
        # 1, 2, 2, 2 of 2, and 0, 2 of 2.
        "ReSPO 8 87.5",
        "GRPO 8 50.0 †",
    ]
    text = words(part(document, '<section id="cell"', "</section>"))
    assert "The grid shows the mean over seeds (50.0 ± " in text
    assert "%, † 1 of 2 seeds); this is one seed: seed 1 seed 2 (missing)" in text
    assert "This cell is missing. The target that makes it:" in text
    # Nothing is ranked: without GRPO, ReSPO is alone.
    assert '<span class="best">' not in document
    notes = words(part(document, '<div class="quiet" id="grid-notes">', "</section>"))
    assert "† of some of the seeds alone, not ranked: Small & dense, N = 8, GRPO" in notes
    target = f"{made.path}/small/grpo/N8/seed2/eval/32/easy/cell.json"
    assert f"snakemake {target} --config study=tried results={made.path.parent}" in text
    assert "No run has been trained yet." in words(document)


def test_what_a_reader_does(folder, opened):
    made = folder()
    for benchmark, correct in (("easy", [0, 2]), ("hard", [2, 2])):
        made.cell(benchmark, correct, "grpo")
        made.cell(benchmark, [1, 2], "respo")
    for method in ("grpo", "respo"):
        lengths = [float(update) for update in range(32)]
        made.metrics([0.0] * 32, [0.0] * 32, method, response_length=lengths)
    document = opened(
        made,
        "metric=response_length&smooth=0",
        then="""
  const find = (selector) => document.querySelector(selector);
  find("[data-key=hard]").click();
  find("[data-key=hard]").click();
  find('[data-cell="small/respo/N8/seed1/easy"]').click();
  find('[data-cell="small/grpo/N8/seed1/hard"]').focus();
  const [, methods] = document.querySelectorAll("fieldset");
  methods.querySelectorAll("input")[1].click();
  const slider = find(".panel svg");
  for (const key of ["End", "ArrowLeft", "Tab"]) {
    slider.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
  }
""",
    )
    # Upwards: 75% before 100%.
    assert [line.split(" ±")[0] for line in lines(document)[1:]] == [
        "ReSPO 8 75.0",
        "GRPO 8 50.0",
    ]
    assert (
        words(part(document, '<section id="cell"', "</h2>")) == "ReSPO, N = 8, Small & dense, Easy"
    )
    tip = words(part(document, '<div id="tip"', "</div>"))
    assert tip.startswith("GRPO, Hard seeds 1 of 1 responses 4 no readable answer 1")
    # Only GRPO is left, and the cursor one update before the last.
    panel = part(document, '<div class="panel">', "</ul>")
    assert words(panel).startswith("N = 8 update 31")
    assert words(panel).endswith("GRPO 30.0")
    assert "ReSPO" not in panel
    assert 'aria-valuetext="update 31: GRPO 30.0"' in panel
    address = unescape(re.search('data-address="([^"]*)"', document)[1])
    assert set(address[1:].split("&")) == {
        "metric=response_length",
        "smooth=0",
        "sort=-hard",
        "cell=small%2Frespo%2FN8%2Fseed1%2Feasy",
        "without=respo",
    }


def test_numbers_are_printed_as_in_the_tables(folder, opened):
    made = folder(seeds=[1, 2], benchmarks=["easy"])
    # 241 of 400 are 60.25%, which Python prints as 60.2 and JavaScript as 60.3.
    made.cell("easy", [2] * 120 + [1] + [0] * 79, "grpo")
    made.cell("easy", [2] * 120 + [1] + [0] * 79, "grpo", seed=2)
    document = opened(made, "cell=small/grpo/N8/macro")
    assert lines(document)[1].startswith("GRPO 8 60.2 ± ")
    cell = words(part(document, '<section id="cell"', "</section>"))
    assert cell.startswith("GRPO, N = 8, Small & dense, Macro average Close Mean of the benchmarks")
    assert cell.endswith("seed 1 60.2% seed 2 60.2%")
    assert "60.3" not in document


def test_a_band_on_a_logarithmic_axis(folder, opened):
    made = folder(seeds=[1, 2])
    nan = float("nan")
    # Means of 5 and 50, standard deviations of 5 and 45; then a gap, and a point on its own.
    first = [10.0] * 4 + [5.0] * 4 + [nan] * 20 + [5.0] + [nan] * 3
    second = [0.0] * 4 + [95.0] * 4 + [nan] * 20 + [95.0] + [nan] * 3
    made.metrics([0.0] * 32, [0.0] * 32, "grpo", grad_norm=first)
    made.metrics([0.0] * 32, [0.0] * 32, "grpo", seed=2, grad_norm=second)
    made.metrics([0.0] * 32, [0.0] * 32, "respo", grad_norm=[nan] * 32)
    document = opened(made, "metric=grad_norm&axis=log&smooth=0")
    panel = part(document, '<div class="panel">', "</ul>")
    area, line = re.findall('<path[^>]* d="([^"]*)"', panel)
    pieces = [re.findall(r"([\d.]+) ([\d.]+)", piece) for piece in area.split("Z") if piece]
    # 8 points with two edges, and 1: the gap is not bridged.
    assert [len(piece) for piece in pieces] == [16, 2]
    # The lower edge of the first four is zero, which is the floor of the panel: 230 - 32.
    assert [y for _, y in pieces[0][-4:]] == ["198.0"] * 4
    assert float(pieces[0][8][1]) < 198
    assert (line.count("M"), line.endswith("h2")) == (2, True)


def test_addresses_that_are_no_cells(folder, opened):
    made = folder()
    for address in ("__proto__", "constructor", "small/grpo"):
        document = opened(made, f"cell={address}&model=constructor&sort=__proto__&n=toString")
        cell = words(part(document, '<section id="cell"', "</section>"))
        assert cell == f"This study has no cell {address}. Close"
        assert len(lines(document)) == 3


def test_the_keyboard_alone(folder, opened):
    made = folder()
    for method in ("grpo", "respo"):
        made.cell("easy", [0, 2], method)
        made.cell("hard", [1, 2], method)
    document = opened(
        made,
        then="""
  const press = (key) => document.activeElement.dispatchEvent(
    new KeyboardEvent("keydown", { key, bubbles: true }),
  );
  document.querySelector("[data-cell]").focus();
  ["ArrowRight", "ArrowDown"].forEach(press);
  document.activeElement.click();
  document.body.dataset.opened = location.hash;
  press("Escape");
  document.body.dataset.focused = document.activeElement.dataset.cell;
  press("End");
""",
    )
    assert 'data-opened="#cell=small%2Frespo%2FN8%2Fseed1%2Fhard"' in document
    assert '<section id="cell" aria-labelledby="cell-title" hidden=""' in document
    assert 'data-focused="small/respo/N8/seed1/hard"' in document
    tip = words(part(document, '<div id="tip"', "</dl>"))
    assert tip == "ReSPO, Macro average seeds 1 of 1 seed 1 62.5%"
    # One stop in each row: at first its first cell, then where the focus was last.
    stops = re.findall('data-cell="([^"]*)"[^>]*tabindex="0"', document)
    assert stops == ["small/grpo/N8/seed1/easy", "small/respo/N8/macro"]
