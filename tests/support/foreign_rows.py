"""Rows of banks from elsewhere, generated: valid ones, and ones with a single thing wrong whose field is known."""

import json
import random
from dataclasses import asdict, replace

from support.batches import entry

from coevo.records.entry import LEVELS, MAX_TEXT_CHARS, ZONES, entry_id

LETTERS = "abcdefghijklmnopqrstuvwxyz     \u00e9\u00df\u65e5\u672c\u05d0\U0001f600\"'\\<[]{}%$,;:-."
TEXTS = ("strategy", "condition", "example", "keywords", "scope")
HIDDEN = (
    "\x00", "\x1b[2J", "\n", "\r", "\t\x0b", "\x7f", "\x85", "\u2028", "\u200b", "\u202e", "\ud800", "\udfff", "\udc80",
    "\ufffe\ud83d", "\U000e0041", "\ue000",
)  # fmt: skip
"""Characters that no line of plain text has; lone surrogates among them."""
TOKENS = ("<|im_start|>", "</s>", "[INST]", "\uff1c|x|\uff1e", "<EOS>", "<|\u2581|>")
"""Control tokens, which a lesson may quote."""
NO_TEXT = (None, 7, 1.5, True, ["x"], {"x": 1}, 10**40, [[[[]]]])
NO_REVISION = (None, "1", 1.5, True, [1], {}, 10**30, -(10**30), 2**31, 1e300)
NO_SOURCE = ("", "/etc/passwd", "1/../t/0", "1/r/t", "1/r/t/0\n", "\u0661/r/t/0", "1/r/\ud800/0", 7, None, ["1/r/t/0"])


def valid(draws, number):
    """A row that may be imported; ``number`` keeps its wording apart from others."""
    texts = {name: _text(draws, 1, 60) for name in TEXTS}
    texts["strategy"] += f" {draws.choice(TOKENS)} n{number}"
    created = draws.randrange(2**31 - 1)
    made = replace(
        entry(**texts),
        id=entry_id(texts["scope"], texts["strategy"]),
        sources=tuple(f"{draws.randrange(99)}/rollout-{n}/t{n}/{n}" for n in range(draws.randrange(4))),
        created=created,
        edited=draws.randrange(created, 2**31),
        zone=draws.choice(ZONES),
        level=draws.choice(("", *LEVELS)),
    )
    return json.loads(json.dumps(asdict(made)))


def spoiled(draws, row):
    """The row with one thing wrong, and the field that a refusal has to name; None where the row has no such field."""
    text, number = draws.choice(TEXTS), draws.choice(("created", "edited", "retired"))
    at = draws.randrange(len(row[text]) + 1)
    ways = {
        "type": lambda: (text, draws.choice(NO_TEXT)),
        "hidden": lambda: (text, row[text][:at] + draws.choice(HIDDEN) + row[text][at:]),
        "long": lambda: (text, "x" * draws.choice((MAX_TEXT_CHARS + 1, 10_000, 200_000))),
        "number": lambda: (number, draws.choice(NO_REVISION)),
        "id": lambda: ("id", draws.choice(("", "../../x", "0" * 12, row["id"].upper() + "A", "\ud800", None, 3))),
        "split": lambda: ("split", draws.choice(("seen-houses", "", "Train", None, "\udc80"))),
        "zone": lambda: ("zone", draws.choice(("", "STRATEGY", None, ["strategy"], "\ud800"))),
        "level": lambda: ("level", draws.choice(("rule", None, {"a": 1}, "\udc80"))),
        "sources": lambda: ("sources", draws.choice((None, "1/r/t/0", {}, 3, ["1/r/t/0"] * 1001))),
        "source": lambda: ("sources", [*row["sources"], draws.choice(NO_SOURCE)]),
        "retired": lambda: ("retired", draws.choice((0, 3, 2**31 - 1))),
        "blank": lambda: (draws.choice(("strategy", "keywords")), "   "),
    }
    field, value = ways[draws.choice(sorted(ways))]()
    return {**row, field: value}, field


def line(row):
    """A row as a line of JSON; surrogates stay escaped, so that the bytes are UTF-8."""
    return f"{json.dumps(row)}\n".encode()


def broken(draws, row):
    """Bytes of a line that is no row at all."""
    whole = line(row).rstrip(b"\n")
    ways = (
        lambda: whole[: draws.randrange(1, len(whole))],
        lambda: whole.replace(b'"strategy"', b'"strategy\xed\xa0\x80"', 1),
        lambda: whole[:-5] + b"\xff\xfe" + whole[-5:],
        lambda: b"[" * draws.choice((10, 5000, 200_000)),
        lambda: b'{"a":' * 50_000,
        lambda: whole.replace(b'"created": ', b'"created": NaN, "x": ', 1),
        lambda: whole.replace(b'"created": ', b'"created": -Infinity, "x": ', 1),
        lambda: whole[:-1] + b', "id": "x"}',
        lambda: whole[:-1] + b', "note": 1}',
        lambda: b'{"created": ' + b"9" * 5000 + b"}",
        lambda: b"{}",
        lambda: b"null",
        lambda: b'"text"',
        lambda: b"\x00" * 100,
    )
    return draws.choice(ways)() + b"\n"


def _text(draws, least, most):
    while True:
        found = "".join(draws.choices(LETTERS, k=draws.randint(least, most)))
        if found.strip():
            return found


def seeded(seed):
    """Draws of one seed."""
    return random.Random(f"foreign rows {seed}")
