"""Bodies that are no chat completion: each is a reply with a fault on one line, whatever it holds."""

import gzip
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.completions import Answer, completions, said
from support.writer_models import question

from coevo.configs.bank.writer_model_config import EndpointWriterModelConfig
from coevo.models.writer_models.answer import FILTERED, INTERRUPTED, MAX_BODY_BYTES, read
from coevo.models.writer_models.endpoint_writer_model import EndpointWriterModel
from coevo.models.writer_models.failure import After, Failure
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
    "overloaded_error": After.WAIT,
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
    "within another": lambda words, code: {"error": {"message": words, "code": code}},
    "in a list": lambda words, code: [{"message": words, "code": code}],
    "as text": lambda words, code: json.dumps({"message": words, "code": code}),
    "its message as text": lambda words, code: {"message": json.dumps({"error": {"message": words, "code": code}})},
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
    "in the message": lambda error: {"choices": [{"message": {"content": "", "error": error}}]},
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


BODIES = {
    "Gemini's list": ([{"error": {"code": 429, "message": "W", "status": "RESOURCE_EXHAUSTED"}}], After.WAIT),
    "Baidu": ({"error_code": 336100, "error_msg": "W"}, After.AGAIN),
    "MiniMax": ({"choices": None, "base_resp": {"status_code": 1002, "status_msg": "W rate limit"}}, After.WAIT),
    "Zhipu": ({"code": "401", "msg": "W", "success": False}, After.STOP),
    "FastAPI": ({"detail": [{"loc": ["body"], "msg": "W", "type": "invalid"}]}, After.NEXT),
    "vLLM": ({"object": "error", "message": "W", "type": "BadRequestError", "code": 400}, After.NEXT),
    "Cloudflare": ({"success": False, "errors": [{"code": 7009, "message": "W"}], "result": None}, After.AGAIN),
    "true": ({"error": True, "message": "W"}, After.AGAIN),
    "a kind, and a message": ({"error": "rate_limit_exceeded", "message": "W"}, After.WAIT),
    "no balance": ({"error": {"type": "exceeded_current_quota_error", "message": "W"}}, After.STOP),
    "a policy": ({"error": {"code": "content_policy_violation", "message": "W"}}, After.NEXT),
    "a blocked prompt": ({"choices": [], "prompt_feedback": {"block_reason": "W"}}, After.NEXT),
    "an event": (b'event: error\ndata: {"error": {"message": "W", "code": 429}}\n\n', After.WAIT),
    "a gateway": (b"upstream connect error W", After.NEXT),
    "a page": (b"<html><title>W</title></html>", After.NEXT),
}


@pytest.mark.parametrize(("body", "then"), BODIES.values(), ids=BODIES)
def test_an_error_is_reported_in_its_words_in_whatever_form_a_provider_states_it(body, then):
    found = read(body if isinstance(body, bytes) else json.dumps(body).encode())
    assert isinstance(found, Failure) and "W" in found.fault
    assert found.after is then
    assert found.answer_tokens == 0 or found.unread


ENDS = {
    "MALFORMED": True, "COMPLETE": True, "end_turn": True, "eos": True, "null": True, "": True, "OTHER": True,
    "max_length": False, "model_context_window_exceeded": False, "max_completion_tokens": False, "ERROR_LIMIT": False,
    "token_limit": False, "MaxTokens": False,
    "contentFilter": "filtered", "content-filter": "filtered", "SPII": "filtered", "IMAGE_SAFETY": "filtered",
    "refusal": "filtered", "guardrail_intervened": "filtered", "ERROR_TOXIC": "filtered",
    "engine_overloaded": "did not finish", "server_error": "did not finish", "timeout": "did not finish",
}  # fmt: skip


@pytest.mark.parametrize(
    "error",
    [
        '{"message": "' + "[" * 400 + "]" * 400 + '"}',
        '"' + "[" * 400 + "]" * 400 + '"',
        '{"code": "429' + "0" * 5000 + '", "message": "x"}',
    ],
    ids=["brackets in a message", "brackets alone", "a code of 5,003 digits"],
)
def test_an_error_without_end_is_a_fault(error):
    found = read(b'{"error": ' + error.encode() + b"}")
    assert isinstance(found, Failure) and found.fault.startswith("the endpoint answers with an error (")


@pytest.mark.parametrize("end", ENDS)
def test_ends_of_providers(end):
    found = read(said("so", end).parts()[0])
    if isinstance(ENDS[end], bool):
        assert isinstance(found, Reply) and found.finished is ENDS[end]
    else:
        assert isinstance(found, Failure) and ENDS[end] in found.fault


@pytest.mark.parametrize("before", [b"\xef\xbb\xbf", b"\n \n", b": PROCESSING\n\n", b"\xef\xbb\xbf\n: a\n: b\r\n\n"])
@pytest.mark.parametrize("fields", [{}, {"finish_reason": {"type": "stop"}}, {"finish_reason": 1}])
def test_what_stands_before_a_body_and_an_end_of_another_type_lose_no_answer(before, fields):
    first = json.loads(GOOD)["choices"][0]
    found = read(before + changed(choices=[first | fields]))
    assert isinstance(found, Reply) and found.text == "x"


PART = st.one_of(
    WORDS.map(lambda text: (text, text)),
    WORDS.map(lambda text: ({"type": "text", "text": text}, text)),
    WORDS.map(lambda text: ({"type": "output_text", "text": text, "annotations": []}, text)),
    WORDS.map(lambda text: ({"type": "thinking", "thinking": [{"type": "text", "text": text}]}, "")),
    WORDS.map(lambda text: ({"type": "reasoning", "text": text}, "")),
    st.just(({"type": "image_url", "image_url": {"url": "x"}}, "")),
    st.just(({"type": "text", "text": None}, "")),
    st.just((None, "")),
    WORDS.map(lambda text: ({"type": "text", "text": {"value": text, "annotations": []}}, text)),
    WORDS.map(lambda text: ({"type": "TEXT", "text": text}, text)),
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
    "thinking of LiteLLM": (said("", "length", thinking_blocks=[{"thinking": "hm"}]), SPENT, After.NEXT),
    "thinking in details": (said("", "length", reasoning_details=[{"text": "hm"}]), SPENT, After.NEXT),
    "thinking that is hidden": (said("", "length"), SPENT, After.NEXT),
    "a call without its end": (said(None, tool_calls=[{"id": "1"}]), "the endpoint's answer has no text", After.NEXT),
    "a refusal of another form": (
        said(None, refusal={"message": "I cannot"}), "the model refuses to answer: I cannot", After.NEXT,
    ),
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


@pytest.mark.parametrize("end", ["content_filter", "error", "length", "stop"])
def test_a_choice_without_a_message_is_told_by_its_end(end):
    told = {"content_filter": "filtered", "error": "did not finish", "length": "used up", "stop": "no text"}
    for choice in ({"finish_reason": end}, {"finish_reason": end, "message": None}):
        found = read(changed(choices=[choice]), most=9)
        assert isinstance(found, Failure) and told[end] in found.fault


def test_what_was_interrupted_is_not_counted_as_written_unless_it_is_reported():
    silent = json.loads(said("half of it", "error").parts()[0])
    del silent["usage"]
    assert read(json.dumps(silent).encode()).answer_tokens == 0
