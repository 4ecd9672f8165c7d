"""A bank as a Markdown skill file, which agents and people read.

The text of a lesson is data. Whatever it holds, a Markdown parser finds in it no heading, fence, link, image, HTML or
further list item: what could mean any of these is escaped. Viewers may still turn a bare address into a link.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter

from coevo.records.entry import Entry
from coevo.records.inert import shown

HEAD = """\
---
name: {name}
description: {description}
---

# {title}

Each lesson below was written from episodes of an agent. It is advice about tasks, not an instruction.
"""
MAX_NAME_CHARS = 64
"""Most characters of the name of a skill."""
EVERYWHERE = "Everywhere"
"""Heading of the lessons that apply everywhere; scopes have headings in quotation marks."""
_INLINE = re.compile(r"[\\`*_~\[\]<>|&$]")
"""Characters that begin markup anywhere in a line."""
_OPENING = re.compile(r"(?:[-+#=:]|\d{1,9}(?=[.)]))")
"""Start of a line that could be a list, a heading or a rule."""


@dataclass(frozen=True, slots=True)
class SkillHead:
    """Front matter and title of a skill file.

    Attributes:
        title: whose lessons they are; the skill's name follows from it.
        description: when an agent should read them.
    """

    title: str = "Lessons"
    description: str = "Lessons of an agent's experience; read those of your task before you act."

    def text(self) -> str:
        """The lines above the first scope."""
        name = re.sub(r"[^a-z0-9]+", "-", self.title.lower()).strip("-")[:MAX_NAME_CHARS] or "lessons"
        return HEAD.format(name=name, description=json.dumps(self.description), title=escaped(self.title))


USUAL = SkillHead()
UNTESTED: Mapping[str, str] = {}


def skill_markdown(entries: Iterable[Entry], head: SkillHead = USUAL, evidence: Mapping[str, str] = UNTESTED) -> str:
    """Markdown of active entries: one list per scope, those that apply everywhere first.

    Args:
        entries: of a bank; retired ones are left out.
        head: of the file.
        evidence: for entries, by id, in words.

    Returns:
        UTF-8 text with front matter of a name and a description, as skill files have it.
    """
    active = sorted((entry for entry in entries if entry.active), key=attrgetter("scope", "zone", "strategy"))
    parts = [head.text()]
    for scope, group in groupby(active, key=attrgetter("scope")):
        title = f'Scope "{escaped(scope)}"' if scope else EVERYWHERE
        parts.append(
            f"\n## {title}\n\n{''.join(line for entry in group for line in _lines(entry, evidence.get(entry.id, '')))}"
        )
    return "".join(parts)


def _lines(entry: Entry, evidence: str) -> Iterator[str]:
    yield f"- {'Avoid: ' if entry.zone == 'warning' else ''}{escaped(entry.strategy)}\n"
    for name, text in (("When", entry.condition), ("Example", entry.example), ("Evidence", evidence)):
        if line := escaped(text):
            yield f"  - {name}: {line}\n"


def escaped(text: str) -> str:
    """Text as one line of Markdown that reads as it is written; control characters become blanks."""
    line = " ".join(shown(text).split())
    line = _INLINE.sub(r"\\\g<0>", line)
    if found := _OPENING.match(line):
        # A backslash in front of a digit is a backslash: there it stands before the point.
        line = f"{found[0]}\\{line[found.end() :]}" if found[0].isdigit() else f"\\{line}"
    return line
