"""What a check has to say of a file."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

Kind = Literal["damaged", "missing", "foreign", "link", "redrawn", "note"]


@dataclass(frozen=True)
class Finding:
    """One file and what is wrong with it.

    Attributes:
        kind: damaged (not what it was, or not what belongs here), missing, foreign (belongs to
            nothing that the study names), link (nothing wrong, but it lies elsewhere),
            redrawn (nothing wrong, but made anew where a pack was unpacked), note (nothing wrong,
            but not checked in full).
        name: of the file, below the folder.
        text: what is wrong; empty for a file that is missing.
        target: what to make anew, below the folder; None where nothing makes it.
    """

    kind: Kind
    name: str
    text: str = ""
    target: str | None = None


@dataclass
class Findings:
    """Collects findings: of a file, only the first, from which the others may follow."""

    all: list[Finding] = field(default_factory=list)
    bad: set[str] = field(default_factory=set)
    notes: set[Finding] = field(default_factory=set)

    def add(self, finding: Finding) -> None:
        """Take a finding, unless the file has one that is as bad."""
        if finding.kind in ("link", "redrawn", "note"):
            if finding not in self.notes:
                self.notes.add(finding)
                self.all.append(finding)
        elif finding.name not in self.bad:
            self.bad.add(finding.name)
            self.all.append(finding)

    def damaged(self, name: str, text: str, target: str | None) -> None:
        """Tell of a file that is not what it should be."""
        self.add(Finding("damaged", name, text, target))

    def missing(self, name: str, target: str | None, text: str = "") -> None:
        """Tell of a file that is not there."""
        self.add(Finding("missing", name, text, target))

    def foreign(self, name: str, text: str) -> None:
        """Tell of a file that belongs to nothing."""
        self.add(Finding("foreign", name, text))

    def link(self, name: str, text: str) -> None:
        """Tell of a link that leads out of the folder, and was followed."""
        self.add(Finding("link", name, text))

    def redrawn(self, name: str, text: str) -> None:
        """Tell of a record that was made anew in a pack."""
        self.add(Finding("redrawn", name, text))

    def note(self, name: str, text: str) -> None:
        """Tell what was not checked in full."""
        self.add(Finding("note", name, text))

    def of(self, kind: Kind) -> list[Finding]:
        """Return the findings of one kind, in the order in which they were made."""
        return [finding for finding in self.all if finding.kind == kind]

    @property
    def ok(self) -> bool:
        """Whether nothing is damaged and nothing missing."""
        return not self.of("damaged") and not self.of("missing")


def without(path: Path, message: str) -> str:
    """Return a message without the path in front and the remedies of the pipeline at its end."""
    text = message.removeprefix(f"{path}: ").removeprefix(f"{path}:")
    for remedy in (". Delete it and start again.", ". Delete it and make it anew."):
        text = text.removesuffix(remedy)
    return text.rstrip(".")
