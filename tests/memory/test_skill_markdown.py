"""Whatever the text of a lesson, a Markdown parser finds it as it was written, and no structure but the file's."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from support.entries import entry

from coevo.memory.exchange.exchange import read_entries, write_entries
from coevo.memory.skill_markdown import skill_markdown
from coevo.records.entry import entry_id
from coevo.records.inert import flaw, shown
from coevo.utilities.errors import CoevoError

HOSTILE = (
    "# heading", "## Scope \"root\"", "```", "~~~ sh", "---", "===", "- item", "+ item", "* item", "1. item",
    "12) item",
    "> quote", "[text](http://evil.example)", "![pixel](http://evil.example/a.png)", "<script>alert(1)</script>",
    "<!-- comment", "&lt;b&gt;", "`code`", "**bold**", "_it_ a_b_c", "| a | b |", "\\", "a\\", "~~gone~~", "[x] done",
    "[a]: http://evil.example", "$x$", ": definition", "<http://evil.example>", "\x1b[31mred", "a\nb", "\u202eabc",
    "\tindented", "    code", "a  ", "#", "1.", "-", "<a@b.example>", "&#35; x", "---\nname: evil",
)  # fmt: skip
ANY = st.sampled_from(HOSTILE) | st.text(max_size=40) | st.text("#`*_-+=>[]()!<>&|~\\1.: ab\n", max_size=20)


def lesson(strategy, condition="", scope=""):
    made = entry(strategy or "x", condition, "", "key")
    return replace(made, strategy=strategy, condition=condition, scope=scope, id=entry_id(scope, strategy))


def plain(text):
    """Text as a reader sees it: what acts or hides is a blank."""
    return " ".join(shown(text).split())


@given(st.lists(st.tuples(ANY, ANY, ANY), max_size=4))
@pytest.mark.parametrize("kind", ["commonmark", "gfm-like"])
def test_the_file_has_its_own_structure_and_the_words_of_the_lessons(kind, given_):
    entries = [lesson(strategy, condition, scope) for strategy, condition, scope in given_]
    text = skill_markdown(entries)
    body = text.split("---\n", 2)[2]
    found = MarkdownIt(kind, {"linkify": False}).parse(body)
    inline = [token for token in found if token.type == "inline"]
    assert {child.type for token in inline for child in token.children} <= {"text", "softbreak", "text_special"}
    assert {token.type.removesuffix("_open").removesuffix("_close") for token in found} <= {
        "heading", "paragraph", "inline", "bullet_list", "list_item",
    }  # fmt: skip
    scopes = {each.scope for each in entries}
    assert sum(token.type == "heading_open" for token in found) == 1 + len(scopes)
    read = ["".join(child.content for child in token.children) for token in inline]
    for each in entries:
        if plain(each.strategy):
            assert plain(each.strategy) in map(plain, read)
        if plain(each.condition):
            assert plain(f"When: {each.condition}") in map(plain, read)
    assert not any(flaw(line) for line in text.split("\n"))


def test_retired_entries_are_left_out_and_warnings_are_named():
    kept, gone = lesson("look first"), replace(lesson("never look"), retired=3)
    warned = replace(lesson("the stove is hot"), zone="warning")
    text = skill_markdown([gone, warned, kept])
    assert "never look" not in text
    assert text.endswith("## Everywhere\n\n- look first\n- Avoid: the stove is hot\n")


def test_a_bank_is_written_as_a_skill_file_and_not_read_back(tmp_path):
    path = tmp_path / "SKILL.md"
    assert write_entries([lesson("look first")], path) == 1
    assert path.read_text(encoding="utf-8") == skill_markdown([lesson("look first")])
    with pytest.raises(CoevoError, match=r"ends in \.parquet or \.jsonl$"):
        read_entries(path)
    with pytest.raises(CoevoError, match="already there"):
        write_entries([], path)
