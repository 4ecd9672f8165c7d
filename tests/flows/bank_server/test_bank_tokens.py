"""A token opens the scopes that have its names, and no other; nobody can make one."""

import shutil

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coevo.flows.bank_server.bank_tokens import SERVER, BankTokens, Grant
from coevo.tasks.bank_alone.new_lesson import NAMES, scope_text
from coevo.utilities.errors import CoevoError

VALUES = st.text("ab=&%+ /u", min_size=1, max_size=3) | st.sampled_from(["ann", "bob", "b\u00f6b", "user=ann"])
SCOPES = st.dictionaries(st.sampled_from(NAMES), VALUES)


@pytest.fixture(scope="module")
def tokens(tmp_path_factory):
    return BankTokens(tmp_path_factory.mktemp("bank"))


@given(SCOPES, SCOPES | st.none() | st.text("abu=&ser", max_size=6))
def test_every_scope_that_a_token_opens_has_its_names(names, asked):
    try:
        opened = Grant(names).scope(asked)
    except CoevoError:
        assert names and asked and not (isinstance(asked, dict) and {**asked, **names} == {**names, **asked})
        return
    if names:
        assert opened.items() >= names.items() and opened == {**names, **(asked or {})}
        assert Grant(names).sees(scope_text(opened))
    else:
        assert scope_text(opened) == scope_text(asked or "")


@given(SCOPES, SCOPES)
def test_an_entry_is_seen_where_its_scope_has_all_names_of_the_token(names, scope):
    assert Grant(names).sees(scope_text(scope)) == (not scope or names.items() <= scope.items())
    assert Grant(names).changes(scope_text(scope)) == (names.items() <= scope.items())


@pytest.mark.parametrize(
    "text", ["user=ann&user=bob", "user=ann&x=1", "agent=a&user=ann", " user=ann", "user=ann&", "lotus"]
)
def test_a_text_that_only_reads_like_names_is_not_seen(text):
    assert not Grant({"user": "ann"}).sees(text) and Grant().sees(text)


@given(names=SCOPES)
def test_a_token_states_its_names_and_no_changed_one_opens_anything(tokens, names):
    token = tokens.token(names)
    assert tokens.grant(token).names == names
    assert token.isascii() and " " not in token
    for place in (4, 5, len(token) // 2, len(token) - 1):
        other = "A" if token[place] != "A" else "B"
        for changed in (f"{token[:place]}{other}{token[place + 1 :]}", token[:place], token + other, f" {token}"):
            assert tokens.grant(changed) is None
    stated, _, mac = token.partition(".")
    other = tokens.token({**names, "user": "eve"}).partition(".")[0]
    assert tokens.grant(f"{other}.{mac}") is None or other == stated


@pytest.mark.parametrize("given_", ["", ".", "bank_", "bank_.", "bank_é." + "0" * 64, "bank_" + "A" * 30_000, "\x00"])
def test_what_is_no_token_opens_nothing(tokens, given_):
    assert tokens.grant(given_) is None


def test_tokens_end_when_they_are_renewed_and_a_copy_of_the_bank_has_others(tmp_path):
    tokens = BankTokens(tmp_path / "one")
    token = tokens.token({"user": "ann"})
    shutil.copytree(tmp_path / "one", tmp_path / "two")
    assert BankTokens(tmp_path / "two").grant(token) is None
    assert BankTokens(tmp_path / "one").grant(token).names == {"user": "ann"}
    other = BankTokens(tmp_path / "one")
    other.renew()
    assert tokens.grant(token) is None and tokens.grant(other.token({})).names == {}


def test_the_secret_is_for_its_owner_alone(tmp_path):
    tokens = BankTokens(tmp_path)
    tokens.token({})
    secret = tmp_path / SERVER / "secret"
    assert secret.stat().st_mode & 0o077 == 0
    secret.chmod(0o644)
    with pytest.raises(CoevoError, match="others may know this secret"):
        BankTokens(tmp_path).grant(tokens.token({}))


@pytest.mark.parametrize("names", [{"house": "a"}, {"user": ""}, {"user": "a\nb"}])
def test_names_that_are_not_acceptable_are_refused(tokens, names):
    with pytest.raises(CoevoError):
        tokens.token(names)
