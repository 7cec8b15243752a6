"""The last word of a command."""

import errno
import subprocess
import sys

import pytest

from respo.cli import UserError, command, printable, say


def test_a_message_cannot_command_a_terminal() -> None:
    """Texts of other people's files stand in messages."""

    @command
    def main() -> None:
        raise UserError("g.jsonl: problem 'a\x1b[2J\x9b\u202e\r\0\ud800' is\n  none é日")

    with pytest.raises(SystemExit) as end:
        main()
    text = "error: g.jsonl: problem 'a\\x1b[2J\\x9b\\u202e\\r\\x00\\ud800' is\n  none é日"
    assert end.value.code == text
    assert printable(text) == text


def test_what_is_printed_of_files_cannot_command_a_terminal(capsys) -> None:
    say("results/\x1b]0;x\x07.json: \u2066a\nb")
    assert capsys.readouterr().out == "results/\\x1b]0;x\\x07.json: \\u2066a\nb\n"


@pytest.mark.parametrize(
    ("error", "code", "expected"),
    [
        (UserError("x.yaml: seeds: wrong"), "error: x.yaml: seeds: wrong", ""),
        (OSError(errno.ENOSPC, "No space", "f"), "error: f: the disk is full.", ""),
        (PermissionError(errno.EACCES, "Permission denied", "f"), "error: f: Permission", ""),
        (KeyboardInterrupt(), "130", "the next start continues"),
    ],
)
def test_a_command_ends_with_one_message(capsys, error, code, expected):
    @command
    def main():
        raise error

    with pytest.raises(SystemExit) as end:
        main()
    assert str(end.value.code).startswith(code)
    assert expected in capsys.readouterr().err


def test_an_error_of_our_own_making_keeps_its_traceback():
    @command
    def main():
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        main()


def test_a_reader_that_went_away_ends_the_work_quietly():
    code = "import sys, respo.cli as c; c.command(lambda: print('x' * 10**6))()"
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 141
