"""What a log ends with; the texts are those that the project's commands write."""

from pathlib import Path

import pytest

from respo.status import logs
from respo.training.local.progress import Progress


def test_progress_is_read_as_the_trainer_writes_it(capsys: pytest.CaptureFixture[str]) -> None:
    progress = Progress("qwen3-tiny/grpo/N8/seed1", "update", 0, 4)
    progress.tell(4, "mean reward +0.25")
    line = capsys.readouterr().err.rstrip("\n")
    assert logs.told([line, "something else"]) == (4, 4, 0.0)


def test_the_newest_progress_counts() -> None:
    tail = [
        "a/initial/m  step 100/400  loss 0.7  0.1 s/step  30 s left",
        "a/initial/m  step 200/400  loss 0.5  0.1 s/step  20 s left",
    ]
    assert logs.told(tail) == (200, 400, 20.0)


def test_nothing_told() -> None:
    assert logs.told(["results/r: continues after update 60"]) is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x\nerror: a.yaml: seed: is missing", "error: a.yaml: seed: is missing"),
        ("error: a.yaml: one\n       a.yaml: two\n\n", "error: a.yaml: one a.yaml: two"),
        ("usage: p [-h]\nx.py: error: no such option", "x.py: error: no such option"),
        (
            'Traceback (most recent call last):\n  File "a.py", line 1\nRuntimeError: no memory',
            "RuntimeError: no memory",
        ),
        # The last of two, and what an exception says in several lines.
        (
            "Traceback (most recent call last):\n  a\nKeyError: 1\n\nDuring ...:\n\n"
            "Traceback (most recent call last):\n  b\nValueError: first\nsecond",
            "ValueError: first",
        ),
        ("", None),
        ("all well", None),
        ("  all is indented", None),
        # Told by the work of which it is, which went on.
        ("error: one file is skipped\nm  update 3/4  mean reward +1  1.0 s/update  1 s left", None),
        ("Traceback (most recent call last):\n  a\nKeyError: 1\n" + "went on\n" * 20, None),
        ("Traceback (most recent call last):\n  it is being written", None),
        # Asked to stop, whatever went wrong then.
        (
            "Traceback (most recent call last):\n  a\nKeyboardInterrupt\n"
            "results/r: stopped. It made 3 of 4 policy updates; the next start continues",
            None,
        ),
        ("m: stopped after update 3/4; the next start continues", None),
        ("interrupted; the next start continues", None),
    ],
)
def test_failures(tmp_path: Path, text: str, message: str | None) -> None:
    log = tmp_path / "x.log"
    log.write_text(text)
    assert logs.failure(logs.lines(log)) == message


def test_lines_hold_no_control_characters_and_no_blanks(tmp_path: Path) -> None:
    log = tmp_path / "x.log"
    log.write_bytes(b"one\r50%\r\x1b[31mred\x1b[0m \n\n\xff\n")
    assert logs.lines(log) == ["one", "50%", "[31mred[0m", "\ufffd"]


def test_of_a_long_log_the_last_whole_lines(tmp_path: Path) -> None:
    log = tmp_path / "x.log"
    log.write_text("first line\nsecond\nthird\n")
    assert logs.lines(log, size=15) == ["second", "third"]


def test_no_log(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert logs.lines(tmp_path / "x.log") == []
    assert logs.lines(tmp_path / "file" / "x.log") == []
