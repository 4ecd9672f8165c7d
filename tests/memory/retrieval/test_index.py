"""Structured TF-IDF: scores against a plain reference, scopes, ties and limits."""

import math
import time
import unicodedata
from dataclasses import replace

import numpy as np
import pytest
from support.entries import entry

from coevo.configs.bank.retrieval_config import Bm25Config, ClustersConfig, FieldWeights, TfidfConfig
from coevo.memory.admission.score import Known
from coevo.memory.clusters import Cluster, Clusters
from coevo.memory.library import Library
from coevo.memory.retrieval import postings
from coevo.memory.retrieval.index import Index
from coevo.memory.retrieval.scorer import MAX_FULL_SORT, NEVER, top
from coevo.records.draws import generator, key

FIELDS = ("strategy", "condition", "example", "keywords")


def reference(entries, query, weights):
    """Equation 2 written out with dictionaries."""

    def vector(text, idf):
        counts = {word: text.split().count(word) * idf[word] for word in text.split() if word in idf}
        norm = math.sqrt(sum(value * value for value in counts.values())) or 1.0
        return {word: value / norm for word, value in counts.items()}

    scores = dict.fromkeys(entries, 0.0)
    for name in FIELDS:
        texts = [getattr(e, name) for e in entries]
        vocabulary = {word for text in texts for word in text.split()}
        idf = {
            word: math.log((1 + len(texts)) / (1 + sum(word in t.split() for t in texts))) + 1 for word in vocabulary
        }
        asked = vector(query, idf)
        for e, text in zip(entries, texts, strict=True):
            scores[e] += getattr(weights, name) * sum(
                asked.get(word, 0.0) * value for word, value in vector(text, idf).items()
            )
    return scores


def test_worked_value():
    # Keywords "heat" and "mug": idf of either ln(3/2) + 1, so the query "heat heat mug" is (2, 1) / sqrt(5) there.
    config = TfidfConfig(weights=FieldWeights(strategy=0, condition=0, example=0, keywords=2), scoped=False)
    first, second = Index([entry("a", keywords="heat"), entry("b", keywords="mug")], config).search("Heat heat mug", "")
    assert (first.entry.strategy, second.entry.strategy) == ("a", "b")
    assert first.score == pytest.approx(2 * 2 / math.sqrt(5))
    assert second.score == pytest.approx(2 * 1 / math.sqrt(5))


@pytest.mark.parametrize("common", [128, 5])
def test_scores_equal_the_reference_on_random_banks(common, monkeypatch):
    monkeypatch.setattr(postings, "COMMON", common)
    draws = generator(key(3, "index"))
    words = [f"w{i}" for i in range(30)]

    def text(low, high):
        return " ".join(draws.choice(words, draws.integers(low, high)))

    entries = [entry(f"{text(1, 8)} n{i}", text(0, 3), text(0, 3), text(1, 4)) for i in range(60)]
    config = TfidfConfig(k=60, scoped=False, weights=FieldWeights(strategy=1.0, condition=0.7, example=0.5, keywords=2))
    index = Index(entries, config)
    for _ in range(20):
        query = text(1, 12) + " unknown"
        expected = {e: score for e, score in reference(entries, query, config.weights).items() if score > 1e-12}
        hits = index.search(query, "")
        assert {hit.entry for hit in hits} == set(expected)
        assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
        np.testing.assert_allclose([hit.score for hit in hits], [expected[hit.entry] for hit in hits], atol=1e-11)


def test_scope_restricts_but_unscoped_entries_hold_everywhere():
    here, there, anywhere = entry("mug a", scope="lotus"), entry("mug b", scope="maple"), entry("mug c")
    found = {hit.entry for hit in Index([here, there, anywhere], TfidfConfig()).search("mug", "lotus")}
    assert found == {here, anywhere}
    assert len(Index([here, there, anywhere], TfidfConfig(scoped=False)).search("mug", "lotus")) == 3


def test_equal_scores_prefer_the_later_edit_then_the_lower_id():
    entries = [entry(f"mug {name}", edited=edited) for name, edited in (("a", 1), ("b", 1), ("c", 4), ("d", 1))]
    expected = [entries[2].id, *sorted(e.id for e in entries if e.edited == 1)]
    for order in (entries, entries[::-1]):
        assert [hit.entry.id for hit in Index(order, TfidfConfig()).search("mug", "")] == expected


def test_k_limits_and_zero_retrieves_nothing():
    entries = [entry(f"mug {i}") for i in range(9)]
    assert [len(Index(entries, TfidfConfig(k=k)).search("mug", "")) for k in (0, 3, 20)] == [0, 3, 9]


@pytest.mark.parametrize("many", [postings.MAX_EXHAUSTIVE_POSTINGS, -1])
@pytest.mark.parametrize("scoped", [True, False])
def test_zero_retrieves_nothing_whether_or_not_all_words_are_read(many, scoped, monkeypatch):
    monkeypatch.setattr(postings, "MAX_EXHAUSTIVE_POSTINGS", many)
    entries = [entry("mug a", scope="lotus"), entry("mug b", scope="maple"), entry("cup c", scope="ivy")]
    index = Index(entries, TfidfConfig(k=0, scoped=scoped))
    assert [index.search(query, scope) for query in ("mug", "plate") for scope in ("lotus", "ivy")] == [[]] * 4


@pytest.mark.parametrize(("general", "anywhere"), [(0, 0), (1, 1), (4, 3)])
def test_entries_without_a_scope_may_have_places_of_their_own(general, anywhere):
    entries = [entry(f"mug {n}", scope=scope) for n in range(3) for scope in ("", "lotus")]
    found = Index(entries, TfidfConfig(k=2, general=general)).search("mug", "lotus")
    assert [hit.entry.scope for hit in found] == ["lotus"] * 2 + [""] * anywhere


def test_entries_without_a_common_word_are_not_returned():
    assert Index([entry("mug in safe"), entry("soap in drawer")], TfidfConfig()).search("soap", "")[0].score > 0
    assert len(Index([entry("mug in safe"), entry("soap in drawer")], TfidfConfig()).search("soap", "")) == 1
    assert Index([entry("mug in safe")], TfidfConfig()).search("plate", "") == []


@pytest.mark.parametrize("entries", [[], [entry("...")], [replace(entry("mug"), retired=3)]])
def test_a_bank_with_nothing_to_find_finds_nothing(entries):
    assert Index(entries, TfidfConfig()).search("mug ...", "") == []


def test_retired_entries_are_neither_returned_nor_counted():
    active, retired = entry("mug in safe"), replace(entry("mug in drawer"), retired=2)
    config = TfidfConfig()
    assert Index([active, retired], config).search("mug safe", "") == Index([active], config).search("mug safe", "")


def test_a_search_costs_a_small_part_of_a_build():
    entries = [entry(f"mug w{i % 97} n{i}", f"w{i % 31}", f"use w{i % 13}", f"mug w{i % 97}") for i in range(1000)]
    started = time.process_time()
    index = Index(entries, TfidfConfig())
    built = time.process_time()
    for i in range(20):
        index.search(f"house . task heat w{i} to w{i + 40}", "")
    assert (time.process_time() - built) / 20 < (built - started) / 5


def test_the_name_of_the_scope_brings_nothing_in():
    entries = [entry("lotus mug in safe", keywords="lotus mug"), entry("lotus fork in chest", keywords="lotus fork")]
    found = Index(entries, TfidfConfig(k=8)).search("house lotus . task put mug", "lotus")
    assert [hit.entry.strategy for hit in found] == ["lotus mug in safe"]
    assert len(Index(entries, TfidfConfig(k=8, scoped=False)).search("house lotus . task put mug", "lotus")) == 2


@pytest.mark.parametrize("size", [1, 5, MAX_FULL_SORT, MAX_FULL_SORT + 1, 1000])
@pytest.mark.parametrize("short", [-1, 0, 1])
def test_the_best_come_first_and_the_earlier_of_equals(size, short):
    scores = generator(key(1, 1, "top", str(size))).integers(0, 9, size).astype(float)
    scores[::3] = NEVER
    ranked = [at for _, at in sorted((-score, at) for at, score in enumerate(scores) if score > NEVER)]
    for k in (0, 1, 7, size + short):
        assert top(scores, k).tolist() == ranked[:k]


LESSONS = {
    "Han": ("先打开冰箱门，再把杯子放进去", "冰箱"),
    "Japanese": ("冷蔵庫を開けてコップを入れる", "コップ"),
    "Thai": ("เปิดตู้เย็นแล้ววางแก้วน้ำ", "ตู้เย็น"),
    "Lao": ("ເປີດຕູ້ເຢັນແລ້ວວາງຈອກ", "ຕູ້ເຢັນ"),
    "Khmer": ("បើកទូទឹកកកហើយដាក់កែវ", "ទូទឹកកក"),
    "Burmese": ("ရေခဲသေတ္တာကိုဖွင့်ပါ", "ရေခဲသေတ္တာ"),
    "Korean": ("냉장고문을열고컵을넣는다", "냉장고"),
    "Hindi": ("फ्रिज खोलो और प्याला रखो", "प्याला"),
    "Turkish": ("İstanbul evini aç", "istanbul"),
    "German": ("die Straße und das Gefäß", "STRASSE"),
    "full width": ("ｍｕｇ in ｓａｆｅ", "mug"),
    "ligature": ("the ﬁnal oﬃce", "office"),
    "Persian": ("خانه\u200cها را بگرد", "خانهها"),
}


@pytest.mark.parametrize("config", [TfidfConfig(), Bm25Config(type="bm25")], ids=["tfidf", "bm25"])
@pytest.mark.parametrize("name", LESSONS)
@pytest.mark.parametrize("form", ["NFC", "NFD", "NFKC"])
def test_a_word_of_any_script_finds_its_lesson_alone(config, name, form):
    index = Index([entry(text) for text, _ in LESSONS.values()], config)
    text, word = LESSONS[name]
    assert [hit.entry.strategy for hit in index.search(unicodedata.normalize(form, word), "")] == [text]


@pytest.mark.parametrize("name", LESSONS)
def test_a_lesson_in_another_form_is_not_new_and_is_of_the_same_cluster(name):
    text, _ = LESSONS[name]
    other = unicodedata.normalize("NFD", text).upper()
    library = Library([entry(text)])
    assert Known(library, 1.0).has_like(replace(entry(other), id="another"))
    assert not Known(library, 0.9).has_like(entry("先关上窗户，然后离开房间"))
    clusters = Clusters(ClustersConfig(delta=1.0), [Cluster(0, "x y z"), Cluster(1, text)])
    assert clusters.nearest(other) == 1
