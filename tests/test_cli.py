"""The last word of a command."""

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
