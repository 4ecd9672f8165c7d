"""Manifests that coevo writes or wrote pass the schema, and others do not."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coevo.lineage.objects.pointer import Pointer
from coevo.lineage.revision.manifest import Manifest
from coevo.lineage.revision.manifest_schema import check
from coevo.utilities.errors import CoevoError

OBJECT = "0" * 32 + ".dir"
FIRST = {
    "revision": 1,
    "iteration": 1,
    "parent": 0,
    "restored_from": None,
    "config": {"seed": 0},
    "config_hash": "a" * 64,
    "code": "b" * 64,
    "artifacts": {"policy": OBJECT},
    "tables": {"entries": "c" * 64},
    "metrics": {"agent/success/train": 0.5, "bank/size": 2},
}
"""Manifest as the first version wrote it."""
LATER = {
    "fired": 1,
    "packages": {"torch": "2.13.0+cpu"},
    "modules": {"shop.doors": "f" * 64},
    "panels": {"seen-houses": "d" * 64},
    "outcomes": {"seen-houses": "01-0"},
    "accepted_change": ["update.optimizer.lr 2e-4 → 1e-5"],
    "waiting": False,
    "approval": {"revision": 0, "proposal": OBJECT, "approved": True},
    "imported": {"file": "e" * 64, "added": 2, "known": 0},
    "retired": {"entry": "be2ed4d78501", "reason": "it misleads"},
}
SEEN = {"timestamp": 1_795_322_846_830, "tables": {"entries": 3}}
MORE = {
    "run": "first",
    "metrics": {"cost/seconds/gate panels": 0.1},
    "decided_by": "Zoë",
    "branched_from": {"run": "other", "revision": 4},
}


@pytest.mark.parametrize("state", [FIRST, FIRST | LATER], ids=["first", "last"])
@pytest.mark.parametrize("observed", [SEEN, SEEN | MORE], ids=["few", "all"])
def test_what_coevo_writes_passes(state, observed):
    manifest = Manifest.of(state, observed)
    check(manifest)
    assert Manifest.exactly(manifest.text().encode()) == manifest


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("revision", "1"),
        ("revision", -1),
        ("revision", True),
        ("iteration", 10**30),
        ("artifacts", {"../policy": OBJECT}),
        ("artifacts", {"/policy": OBJECT}),
        ("artifacts", {"a\nb": OBJECT}),
        ("artifacts", {"policy": "../../x"}),
        ("artifacts", []),
        ("tables", {"a/b": "c"}),
        ("metrics", {"x": "1"}),
        ("metrics", {"\x1b[2J": 1.0}),
        ("outcomes", {"seen-houses": "012"}),
        ("accepted_change", ["x"] * 10_001),
        ("hook", "x"),
    ],
)
def test_what_it_never_writes_is_named(field, value):
    with pytest.raises(CoevoError, match=rf"^'state\.{field}") as caught:
        check(Manifest(FIRST | {field: value}, SEEN))
    assert str(caught.value).isprintable()


@pytest.mark.parametrize("field", sorted(FIRST))
def test_what_every_version_wrote_is_required(field):
    with pytest.raises(CoevoError, match=rf"^'state\.{field}': Field required"):
        check(Manifest({name: value for name, value in FIRST.items() if name != field}, SEEN))


@pytest.mark.parametrize("files", [None, 0, 6])
def test_a_pointer_is_read_as_it_is_written(files):
    pointer = Pointer("policy", OBJECT, 784706, files)
    assert Pointer.parse(pointer.text(), "policy") == pointer


@pytest.mark.parametrize("text", ["", "outs: []\n", Pointer("policy", OBJECT, 1, 1).text() + "frozen: true\n"])
def test_another_form_of_pointer_is_refused(text):
    with pytest.raises(CoevoError, match=r"^policy\.dvc is not as coevo writes it$"):
        Pointer.parse(text, "policy")


UNSAFE = st.one_of(
    st.characters(categories=["Cc", "Cf", "Zl", "Zp", "Co", "Cn"]),
    st.sampled_from(['<', '>', '&', '"', "'", "`", "\\", "|", "?", "\u202e", "\u2066", "\u200b", "\x85", "\x9b"]),
    st.sampled_from(["../", "/../", "//", "/./", "<script>", "\u202ereversed", "\x1b[2J"]),
)  # fmt: skip
PLACES = {
    "a metric": lambda name: {"metrics": {f"agent/success/{name}": 0.5}},
    "a metric's group": lambda name: {"metrics": {f"{name}/x": 0.5}},
    "a panel": lambda name: {"panels": {name: "d" * 64}},
    "outcomes": lambda name: {"outcomes": {name: "01"}},
    "a package": lambda name: {"packages": {name: "1"}},
    "a version": lambda name: {"packages": {"torch": name}},
    "a module": lambda name: {"modules": {name: "f" * 64}},
}
RIGHT = (
    "seen-houses",
    "from_-0.5",
    "gate panels",
    "häuser",
    "日本",
    "नमस्ते",
    "e\u0301",
    "2.13.0+cpu",
    "bm25:k=3",
    "a.b.c",
)


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(sorted(PLACES)), UNSAFE, st.text("ab-1.", max_size=3), st.text("ab-1", min_size=1, max_size=3))
def test_a_name_with_an_unsafe_character_is_refused_in_one_line(place, unsafe, before, after):
    with pytest.raises(CoevoError) as caught:
        check(Manifest({**FIRST, **PLACES[place](before + unsafe + after)}, SEEN))
    assert str(caught.value).isprintable()


HIDING = (
    "\n", "\x00", "\x7f", "\x85", "\x9b2J", "\xad", "\u061c", "\u200b", "\u200d", "\u200e", "\u2028", "\u202e",
    "\u2060", "\u2066", "\ufeff", "\ufff9", "\U000e0041", "\ue000", "\ud800", "\u180e", "\ufdd0", "\U0001d173",
)  # fmt: skip


@pytest.mark.parametrize("hiding", HIDING, ids=ascii)
@pytest.mark.parametrize("around", ["{}", "Zoë{}", "{}Zoë", "Zo{}ë"])
@pytest.mark.parametrize("field", ["run", "decided_by"])
def test_a_word_with_a_character_that_acts_or_hides_is_refused_in_one_line(field, around, hiding):
    with pytest.raises(CoevoError, match=f"^'observed.{field}'") as caught:
        check(Manifest(FIRST, SEEN | {field: around.format(hiding)}))
    assert str(caught.value).isprintable()


@pytest.mark.parametrize("name", ["Zoë", "日本", "क्‍ष", "می‌خواهم", "O'Neill <o@example.com>", "👩‍💻", "", "a" * 300])
def test_persons_of_any_script_decide(name):
    check(Manifest(FIRST, SEEN | {"decided_by": name}))


@pytest.mark.parametrize("name", RIGHT)
@pytest.mark.parametrize("place", PLACES)
def test_names_of_any_script_pass(place, name):
    check(Manifest({**FIRST, **PLACES[place](name)}, SEEN))


@pytest.mark.parametrize("name", ["..", ".", "a/../b", ".hidden", "a" * 301, "", " ", "a ", "/", "a/", "/a"])
def test_a_name_that_leads_elsewhere_is_refused(name):
    with pytest.raises(CoevoError):
        check(Manifest({**FIRST, "metrics": {name: 1.0}}, SEEN))
