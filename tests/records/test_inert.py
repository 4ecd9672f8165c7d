"""Text from outside is data: no control token is left in it, however it was hidden, and plain text stays as it is."""

import time
import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coevo.memory.text import MAX_FIELD_CHARS, clean
from coevo.records.inert import COMMON, control_tokens, either, flaw, inert, shown, visible

OWN = control_tokens(["<eos>", "<pad>", "[GMASK]", "  "])
PIECES = (
    "<|", "|>", "<", ">", "im_start", "eos", "<eos>", "</s>", "\uff1c", "\uff1e", "\uff5c", "\u200b", "[INST]", "\n",
)  # fmt: skip
HOSTILE = st.lists(st.one_of(st.sampled_from(PIECES), st.text(max_size=3)), max_size=12).map("".join)


@pytest.mark.parametrize(
    "text", ["", "lotus mug in safe", "a < b | c > d\n\tnext line", "caf\u00e9 \u65e5\u672c\u8a9e \uff02quoted\uff02"]
)
def test_plain_text_stays_as_it_is(text):
    assert inert(text) == text


@pytest.mark.parametrize(
    "text",
    [
        "a <eos> b",
        "a <EOS> b",
        "a <e<eos>os> b",
        "a <\u200beos> b",
        "a \uff1ceos\uff1e b",
        "a \uff1c\u200be<pad>os\uff1e b",
        "a [gMask] b",
        "a <|im_start|> b",
        "a <|im_<|im_end|>start|> b",
        "a [GM[gmask]ASK] b",
    ],
)
def test_a_control_token_is_found_however_it_is_hidden(text):
    control = either(OWN, COMMON)
    assert control.search(unicodedata.normalize("NFKC", text.replace("\u200b", "")))
    left = inert(text, control)
    assert (left.split()[0], left.split()[-1]) == ("a", "b")
    assert not control.search(unicodedata.normalize("NFKC", left))


def test_what_is_left_of_two_tokens_may_be_a_third():
    assert inert("<tool<eos>call>", control_tokens(["<eos>", "<tool call>"])) == " "


def test_of_two_tokens_that_begin_alike_the_longer_one_is_found():
    assert inert("a <e>x b", control_tokens(["<e", "<e>x", "<e>"])) == "a   b"


def test_only_the_token_is_replaced():
    assert inert("\uff02x\uff02 \uff1ceos\uff1e", OWN) == "\uff02x\uff02  "


def test_without_control_tokens_of_its_own_nothing_matches():
    assert control_tokens([]).search("anything") is None


def test_surrogates_that_no_tokenizer_takes_are_left_out():
    assert inert("a\ud800b") == "ab"


@given(HOSTILE)
@settings(max_examples=300, deadline=None)
def test_what_is_inert_stays_so_and_matches_nothing(text):
    control = either(OWN, COMMON)
    left = inert(text, control)
    assert inert(left, control) == left
    assert not control.search(left)
    assert not control.search("".join(unicodedata.normalize("NFKC", character) for character in left))


@given(HOSTILE)
@settings(max_examples=300, deadline=None)
def test_a_cleaned_field_has_no_flaw(text):
    line = clean(text)
    assert flaw(line) is None
    assert len(line) <= MAX_FIELD_CHARS
    assert line == " ".join(line.split())


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("a\nb", "U+000A"),
        ("a\x1b[2Jb", "U+001B"),
        ("a\u202eb", "U+202E"),
        ("a\ud800b", "U+D800"),
        ("a\u2028b", "U+2028"),
        ("a\u2029b", "U+2029"),
    ],
)
def test_a_flaw_is_named(text, says):
    assert says in flaw(text)


@pytest.mark.parametrize("text", ["a </s>", "a \uff1ceos\uff1e", "x<|y|>z", "[SEP] <think>"])
def test_control_tokens_may_stand_in_the_bank(text):
    assert flaw(text) is None
    assert clean(text) == text


@pytest.mark.parametrize("unit", ["<|", "<|x", "<", "[", "\uff1c|"])
def test_a_long_text_takes_no_time(unit):
    start = time.process_time()
    clean(unit * 1_000_000)
    inert(unit * 20_000)
    assert time.process_time() - start < 2


# What is only read: joiners where a script or an emoji needs them, and characters newer than Python's tables.
_READ = """क्\u200dष র\u200d্য ಕ್\u200cಷ ක්\u200dෂ ශ්\u200dරී ന്\u200d தமிழ் خانه\u200cها
    می\u200cخواهم کتاب\u200cها बुद्\u200cध নির্\u200cভর
    \u0600١٢ \u06ddا ࣢ا 👩\u200d🚀 👩🏽\u200d🚀 ❤️\u200d🔥
    🏳️\u200d🌈 👨\u200d👩\u200d👧 🧑🏿\u200d❤️\u200d🧑🏻 🐦\u200d🔥 🙂\u200d↔️ \U0001fae9 \U0001f6d8
    \U0001fa8e \U0001faea\u200d♂️
    \U0001f3f4\U000e0067\U000e0062\U000e0073\U000e0063\U000e0074\U000e007f \U000323b0
    សូម\u200bយក\u200bកែវ หยิบ\u200bแก้ว ຈັບ\u200bຈອກ ခွက်\u200bယူ ᠮᠣᠩᠭᠣᠯ\u180eᠠ 𓊃\U00013430𓏏
    א\u05bcב ﷺ ꧋ꦲ\u200dꦏ ཀྵ་ 1️⃣ 👁️\u200d🗨️ 🧑\u200d🦽\u200d➡️
    \U00011b60 \U0001c8ff café naïve e\u0301 ﬁ ½ ① <b> a|b"""
READ = _READ.split()
ACTS = (
    "\x00", "\x07", "\x1b", "\x7f", "\x85", "\x9b", "\u202a", "\u202d", "\u202e", "\u2066", "\u2068", "\u2069",
    "\u206a", "\ufff9", "\U000e0041", "\U000e007f", "\ufdd0", "\uffff", "\ufeff", "\u2060", "\u00ad", "\u2028",
    "\u2029", "\ue0b0", "\U000f0001", "\ud800", "\udfff", "\u2065",
)  # fmt: skip


@settings(max_examples=400, deadline=None)
@given(st.lists(st.sampled_from(READ), min_size=1, max_size=6).map(" ".join))
def test_text_that_is_only_read_stays_as_it_is(text):
    assert visible(text) == inert(text) == shown(text) == text
    assert flaw(text) is None
    assert clean(text) == text


@settings(max_examples=400, deadline=None)
@given(st.lists(st.sampled_from(READ), max_size=3), st.sampled_from(ACTS), st.lists(st.sampled_from(READ), max_size=3))
def test_a_character_that_acts_is_removed_named_or_replaced_and_nothing_else(before, acting, after):
    first, last = " ".join(before), " ".join(after)
    text = f"{first} {acting} {last}"
    assert visible(text).split() == [*before, *after]
    assert f"U+{ord(acting):04X}" in flaw(text)
    assert shown(text) == f"{first}   {last}"


@pytest.mark.parametrize("joiner", ["\u200b", "\u200c", "\u200d", "\u200e", "\u200f"])
@pytest.mark.parametrize("before", ["", "a", "<", "é", "e\u0301", "ｅ", "ℹ", "K", "▁", "｜", "1", " ", "\u200d"])
def test_what_joins_nothing_hides_no_control_token(before, joiner):
    text = f"x {before}{joiner}os> y"
    assert joiner not in visible(text).replace("\u200d", "" if before == "\u200d" else "\u200d")
    assert flaw(text) is not None
    assert not OWN.search(unicodedata.normalize("NFKC", inert(f"<e{joiner}os> <{joiner}eos>", OWN)))


@given(st.text(max_size=12), st.integers(MAX_FIELD_CHARS - 9, MAX_FIELD_CHARS + 1))
@settings(max_examples=300, deadline=None)
def test_visible_text_stays_visible_also_where_it_is_cut(text, length):
    line = clean(
        "x" * length + "❤️\u200d🔥क्\u200dष\U0001f3f4\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f" + text
    )
    assert flaw(line) is None
    assert visible(visible(text)) == visible(text)
