"""Bodies that are no chat completion: each is a reply with a fault on one line, whatever it holds."""

import gzip
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.completions import Answer, completions, said
from support.writer_models import question

from coevo.configs.bank.writer_model_config import EndpointWriterModelConfig
from coevo.models.writer_models.answer import FILTERED, INTERRUPTED, MAX_BODY_BYTES, After, Failure, read
from coevo.models.writer_models.endpoint_writer_model import EndpointWriterModel
from coevo.records.writing import Reply

GOOD = said("x").parts()[0]


def changed(**fields):
    return json.dumps({**json.loads(GOOD), **fields}).encode()


NONE = {
    "empty": b"",
    "half": GOOD[:40],
    "text": b"<html>busy</html>",
    "not UTF-8": b'{"choices": "\xff"}',
    "a list": b"[]",
    "null": b"null",
    "no choices": b"{}",
    "no choice": changed(choices=[]),
    "a choice that is text": changed(choices=["x"]),
    "no message": changed(choices=[{}]),
    "a number for text": changed(choices=[{"message": {"content": 7}}]),
    "a list for text": changed(choices=[{"message": {"content": [{"text": "x"}]}}]),
    "text for tokens": changed(usage={"prompt_tokens": "many"}),
    "negative tokens": changed(usage={"prompt_tokens": -1}),
    "endless tokens": changed(usage={"completion_tokens": 10**30}),
    "nested without end": b'{"choices":' + b"[" * 100_000,
    "half of a surrogate pair": GOOD.replace(b'"x", "', b'"\\ud800", "').replace(
        b'"content": "x"', b'"content": "\\ud800"'
    ),
    "compressed": gzip.compress(GOOD),
    "huge": said("x" * MAX_BODY_BYTES).parts()[0],
}


@pytest.mark.parametrize("body", NONE.values(), ids=NONE)
def test_a_body_that_is_no_completion_is_a_fault(body):
    found = read(body)
    assert isinstance(found, Failure)
    assert found.fault.startswith("the endpoint's answer is ") and "\n" not in found.fault and len(found.fault) < 300


@pytest.mark.parametrize("body", [changed(usage=None), changed(usage={}), changed(more={"a": [1]})])
def test_what_is_missing_or_more_does_no_harm(body):
    found = read(body)
    assert isinstance(found, Reply) and found.text == "x" and not found.fault


def test_a_server_that_sends_without_end_or_compressed_fills_no_memory():
    """The body is not read to its end, and what nobody asked to compress is not expanded."""
    bomb = gzip.compress(b" " * 2**24)
    taken = []

    def endless():
        for number in range(1000):
            taken.append(number)
            yield b" " * 2**20

    def behave(request):
        return Answer(endless()) if request.user == "endless" else Answer(bomb, headers={"Content-Encoding": "gzip"})

    with completions(behave) as (url, _):
        config = EndpointWriterModelConfig(type="endpoint", url=url, model="m", concurrency=1)
        made = EndpointWriterModel(config, pytest.fail)
        found = [reply for _, reply in made.replies([question("endless"), question("bomb")])]
    assert found[0].fault == "the endpoint's answer is longer than 4 MiB"
    assert found[1].fault.startswith("the endpoint's answer is no chat completion")
    assert len(taken) < 100


@pytest.mark.parametrize("other", [None, 7, "x", {}, {"message": None}, {"message": {"content": 7}}])
def test_a_flaw_in_a_choice_that_is_not_read_does_no_harm(other):
    first = json.loads(GOOD)["choices"][0]
    assert read(changed(choices=[first, other])).text == "x"


WORDS = st.text("abc def.", min_size=1, max_size=20).filter(str.strip)
CODES = {
    None: After.AGAIN,
    500: After.AGAIN,
    "502": After.AGAIN,
    "server_error": After.AGAIN,
    "overloaded_error": After.AGAIN,
    429: After.WAIT,
    "rate_limit_exceeded": After.WAIT,
    "insufficient_quota": After.STOP,
    401: After.STOP,
    "invalid_api_key": After.STOP,
    "model_not_found": After.STOP,
    400: After.NEXT,
    "context_length_exceeded": After.NEXT,
}
ERRORS = {
    "text": lambda words, code: words,
    "OpenAI's": lambda words, code: {"message": words, "type": "x", "code": code},
    "of a kind": lambda words, code: {"message": words, "type": code},
    "of a provider behind": lambda words, code: {"message": "no", "code": code, "metadata": {"raw": words}},
    "a detail": lambda words, code: {"detail": words, "code": code},
}
PLACES = {
    "alone": lambda error: {"error": error},
    "beside null": lambda error: {"error": error, "choices": None},
    "beside no choice": lambda error: {"error": error, "choices": []},
    "beside an answer": lambda error: {"error": error, **json.loads(GOOD)},
    "in the choice": lambda error: {
        "choices": [{"error": error, "finish_reason": "error", "message": {"content": ""}}]
    },
    "in a choice without a message": lambda error: {"choices": [{"error": error}]},
}


@settings(max_examples=400, deadline=None)
@given(WORDS, st.sampled_from([*CODES]), st.sampled_from([*ERRORS]), st.sampled_from([*PLACES]), st.booleans())
def test_an_error_that_arrives_with_200_is_reported_in_its_words_and_costs_what_is_reported(
    words, code, shape, place, reported
):
    body = PLACES[place](ERRORS[shape](words, code)) | ({} if reported else {"usage": None})
    body = body | ({"usage": {"prompt_tokens": 5, "completion_tokens": 2}} if reported else {})
    found = read(json.dumps(body).encode())
    assert isinstance(found, Failure)
    assert words in found.fault and found.fault.startswith("the endpoint answers with an error (")
    assert (found.prompt_tokens, found.answer_tokens) == ((5, 2) if reported else (0, 0))
    assert found.after is (After.AGAIN if shape == "text" else CODES[code])


PART = st.one_of(
    WORDS.map(lambda text: (text, text)),
    WORDS.map(lambda text: ({"type": "text", "text": text}, text)),
    WORDS.map(lambda text: ({"type": "output_text", "text": text, "annotations": []}, text)),
    WORDS.map(lambda text: ({"type": "thinking", "thinking": [{"type": "text", "text": text}]}, "")),
    WORDS.map(lambda text: ({"type": "reasoning", "text": text}, "")),
    st.just(({"type": "image_url", "image_url": {"url": "x"}}, "")),
    st.just(({"type": "text", "text": None}, "")),
)


@settings(max_examples=300, deadline=None)
@given(st.lists(PART, max_size=6))
def test_content_in_parts_is_its_text_without_its_thinking(parts):
    text = "".join(text for _, text in parts).strip()
    found = read(said([part for part, _ in parts]).parts()[0])
    if text:
        assert isinstance(found, Reply) and (found.text, found.finished, found.answer_tokens) == (text, True, 3)
    else:
        assert isinstance(found, Failure) and found.fault.startswith("the endpoint's answer has no text")


SPENT = "the model's thinking used up bank.writer.model.max_new_tokens=9: raise it, or let it think less"
EMPTY = {
    "thinking in another field": (said(None, "length", reasoning_content="hm"), SPENT, After.NEXT),
    "thinking of OpenRouter": (said("", "length", reasoning="hm"), SPENT, After.NEXT),
    "thinking in marks": (said("<think>hm", "length"), SPENT, After.NEXT),
    "thinking in parts": (said([{"type": "thinking", "thinking": "hm"}], "length"), SPENT, After.NEXT),
    "of another name": (said(None, "MAX_TOKENS", reasoning="hm"), SPENT, After.NEXT),
    "only thinking": (said(None, reasoning="hm"), "the endpoint's answer has no text, only thinking", After.AGAIN),
    "null": (said(None), "the endpoint's answer has no text", After.AGAIN),
    "nothing": (said(""), "the endpoint's answer has no text", After.AGAIN),
    "blanks": (said(" \n"), "the endpoint's answer has no text", After.AGAIN),
    "no part": (said([]), "the endpoint's answer has no text", After.AGAIN),
    "a call": (said(None, "tool_calls"), "the endpoint's answer has no text", After.NEXT),
    "a refusal in parts": (
        said([{"type": "refusal", "refusal": "I cannot"}]), "the model refuses to answer: I cannot", After.NEXT,
    ),
    **{
        end: (said("so", end), f"the endpoint did not finish the answer (finish_reason: {end})", After.AGAIN)
        for end in INTERRUPTED
    },
    **{end: (said("so", end.upper()), "the endpoint filtered the answer", After.NEXT) for end in FILTERED},
}  # fmt: skip


@pytest.mark.parametrize(("answer", "fault", "then"), EMPTY.values(), ids=EMPTY)
def test_an_answer_without_an_answer(answer, fault, then):
    found = read(answer.parts()[0], most=9)
    assert isinstance(found, Failure)
    assert (found.fault, found.after, found.prompt_tokens, found.answer_tokens) == (fault, then, 7, 3)


def test_what_was_interrupted_is_not_counted_as_written_unless_it_is_reported():
    silent = json.loads(said("half of it", "error").parts()[0])
    del silent["usage"]
    assert read(json.dumps(silent).encode()).answer_tokens == 0
