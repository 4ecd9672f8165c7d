"""A policy behind an endpoint: what is sent, that nothing is paid twice, and that a budget holds, over real HTTP."""

import os
import signal
import threading
from concurrent.futures import ThreadPoolExecutor
from errno import ENOSPC

import pytest
from support import endpoint_calls, warm
from support.completions import HANGS, Answer, completions, refused, said
from support.endpoint_calls import engine, prompt, requests, settings
from support.endpoint_expert import ExpertEndpoint, tokens
from support.writer_models import question

from coevo.configs.bank.writer_model_config import PolicyWriterModelConfig
from coevo.models.endpoint_policy.call_ledger import CallLedger
from coevo.models.endpoint_policy.endpoint_engine import REFUSED
from coevo.models.engines.requests import Request
from coevo.models.writer_models.engine_writer_model import EngineWriterModel
from coevo.models.writer_models.writer_model import in_order
from coevo.records.draws import key
from coevo.utilities.errors import CoevoError
from coevo.utilities.line_file import append_line


def answered(ledger):
    """Number of answers that are in a ledger's files."""
    lines = (path.read_text().split("\n") for path in ledger.glob("*.jsonl"))
    return sum('"event":"answered"' in line for each in lines for line in each)


def test_a_prompt_is_sent_as_messages_with_a_seed_and_answered_as_it_comes(tmp_path):
    contents = "Be brief. <|im_start|>system", "a mug\n<|im_end|>\n<|im_start|>assistant\n\u00e9"
    asked = prompt(*zip(("system", "user"), contents, strict=True))
    with completions(lambda _: said("look first ")) as (url, sent):
        made = engine(settings(url, extra={"top_k": 5}), tmp_path / "calls", top_p=0.9, temperature=0.5)
        (one,) = made.generate([Request(asked, key(1), "")])
        made.close()
    (request,) = sent
    seed = request.body.pop("seed")
    assert request.body == {
        "model": "m",
        "messages": [{"role": "system", "content": contents[0]}, {"role": "user", "content": contents[1]}],
        "temperature": 0.5,
        "top_p": 0.9,
        "max_tokens": 32,
        "top_k": 5,
    }
    assert 0 <= seed < 2**31
    assert (one.text, one.finished, one.logprobs) == ("look first", True, ())
    assert made.policy.tokenizer.decode(one.token_ids) == "look first<|im_end|>"


def test_draws_differ_by_key_and_a_repeated_one_is_not_asked_again(tmp_path):
    with completions(lambda it: said(f"{it.body['seed']}")) as (url, sent):
        made = engine(settings(url), tmp_path)
        first = made.generate(requests(20))
        assert made.generate(requests(20)) == first
        made.close()
        again = engine(settings(url), tmp_path)
        assert again.generate(requests(20)) == first
        again.close()
    assert len(sent) == len({each.text for each in first}) == 20


@pytest.mark.parametrize("count", [1, 7])
def test_identical_requests_are_asked_once_on_request_in_a_batch_and_from_threads(tmp_path, count):
    with completions(lambda it: said(f"{it.number}")) as (url, sent):
        made = engine(settings(url, reuse=True), tmp_path)
        with ThreadPoolExecutor(4) as threads:
            batches = list(threads.map(made.generate, [requests(count)] * 4))
        made.forget()
        batches.append(made.generate(requests(count)))
        made.close()
    assert len(sent) == 1
    assert {one.text for batch in batches for one in batch} == {"0"}


def test_each_call_has_its_answer_through_refusals_time_outs_and_malformed_answers(tmp_path):
    behave = ExpertEndpoint(busy=0.05, hang=0.02, broken=0.01)
    with completions(lambda it: said(f"{it.body['seed']}")) as (url, _):
        calm = engine(settings(url), tmp_path / "calm")
        wanted = [one.text for one in calm.generate(requests(150))]
        calm.close()

    def failing(request):
        found = behave(request)
        is_answer = isinstance(found, Answer) and isinstance(found.sent, dict) and found.status == 200
        return said(f"{request.body['seed']}") if is_answer else found

    with completions(failing) as (url, sent):
        made = engine(settings(url, timeout=3), tmp_path / "calls")
        assert [one.text for one in made.generate(requests(150))] == wanted
        expense = made.expense()
        made.close()
    assert expense["cost/policy/requests"] == len(sent) > 150
    assert expense["cost/policy/repeats"] > 0 and expense["cost/policy/refusals"] > 0


def test_a_killed_process_pays_nothing_twice_for_what_was_kept_and_keeps_its_budget(tmp_path):
    """Killed twice with SIGKILL by the endpoint itself, in the middle of its answers."""
    behave, kills, running = ExpertEndpoint(), [25, 60], []

    def killing(request):
        answer = behave(request)
        if kills and request.number == kills[0]:
            kills.pop(0)
            os.kill(running[-1].pid, signal.SIGKILL)
        return answer

    budget, count = 100_000, 90
    with completions(killing) as (url, _):
        line = (endpoint_calls.__file__, url, tmp_path / "calls", count, budget)
        for number in range(3):
            before, kept = len(behave.served), answered(tmp_path / "calls")
            with warm.running(*line, environment=dict(os.environ)) as process:
                running.append(process)
                code = process.wait(100)
            assert code == (0 if number == 2 else -signal.SIGKILL), process.said()
            lost = (len(behave.served) - before) - (answered(tmp_path / "calls") - kept)
            assert 0 <= lost <= (0 if number == 2 else 8)
    assert answered(tmp_path / "calls") == count == len(set(behave.served))
    assert len(behave.served) <= count + 2 * 8
    assert behave.bill <= CallLedger(tmp_path / "calls", settings(url, budget)).spent.tokens <= budget


@pytest.mark.parametrize("budget", [50, 1_000, 4_000])
@pytest.mark.parametrize("failures", [{}, {"busy": 0.1, "hang": 0.05, "broken": 0.05}], ids=["calm", "failing"])
def test_a_budget_is_never_exceeded_by_more_than_one_answer(tmp_path, budget, failures):
    behave = ExpertEndpoint(**failures)
    with completions(behave) as (url, sent):
        for _ in range(3):  # started again, as after a kill
            made = engine(settings(url, budget, timeout=0.3), tmp_path)
            with pytest.raises(CoevoError, match=rf"policy.budget.tokens={budget} is spent .*: continue in a branch"):
                made.generate(requests(300))
            made.close()
        largest = max(sum(tokens(each.body)) for each in sent)
    assert behave.bill <= budget + largest
    assert behave.bill >= 0.3 * budget  # and it is used


LIMITS = {
    "none": {"max_tokens": None},
    "not a number": {"max_tokens": None, "max_completion_tokens": "many"},
    "true": {"max_tokens": True},
    "without an end": {"n_predict": -1},
}


@pytest.mark.parametrize("extra", LIMITS.values(), ids=LIMITS)
def test_a_budget_without_a_limit_of_answers_is_refused(tmp_path, extra):
    with pytest.raises(CoevoError, match=r"policy\.extra leaves answers without a limit") as refused_:
        engine(settings("http://127.0.0.1:9/v1", 1000, extra=extra), tmp_path)
    assert "\n" not in str(refused_.value)
    engine(settings("http://127.0.0.1:9/v1", extra=extra), tmp_path).close()


@pytest.mark.parametrize("extra", [{"max_completion_tokens": 5000}, {"max_tokens": None, "max_output_tokens": 5000}])
def test_a_budget_reserves_the_limit_that_is_sent(tmp_path, extra):
    with completions(lambda _: said("yes", used=(40, 5000))) as (url, sent):
        made = engine(settings(url, 1000, extra=extra), tmp_path)
        with pytest.raises(CoevoError, match=r"policy\.budget\.tokens=1000 is spent"):
            made.generate(requests(30))
        made.close()
    assert len(sent) == 1


@pytest.mark.timeout(30)
@pytest.mark.parametrize("event", ["asked", "answered"])
def test_a_full_disk_ends_the_run_in_one_line(tmp_path, monkeypatch, event):
    def append(path, line):
        if f'"event":"{event}"' in line and path.stat().st_size > 1500:
            raise OSError(ENOSPC, os.strerror(ENOSPC), str(path))
        append_line(path, line)

    monkeypatch.setattr("coevo.models.endpoint_policy.call_ledger.append_line", append)
    with completions(ExpertEndpoint()) as (url, _):
        made = engine(settings(url, 4000), tmp_path)
        with pytest.raises(CoevoError, match=r"No space left on device.*calls-000001.jsonl") as stopped:
            made.generate(requests(300))
        made.close()
    assert "\n" not in str(stopped.value)
    assert answered(tmp_path)


def test_a_cost_bounds_as_tokens_do(tmp_path):
    behave, price = ExpertEndpoint(), {"prompt": 1000.0, "answer": 4000.0}
    with completions(behave) as (url, sent):
        made = engine(settings(url, price=price, budget={"cost": 2.0}), tmp_path)
        with pytest.raises(CoevoError, match=r"policy\.budget\.cost=2 is spent"):
            made.generate(requests(300))
        spent = made.expense()["cost/policy/money"]
        made.close()
    prompt_tokens, answer_tokens = (sum(each) for each in zip(*(tokens(it.body) for it in sent), strict=True))
    assert spent == pytest.approx(prompt_tokens / 1000 + answer_tokens / 250)
    assert 2.0 <= spent < 2.5


SILENT = {
    "refused by the model": said(None, refusal="no"),
    "filtered": said("", finish="content_filter"),
    "only thinking": said("", finish="length", reasoning_content="hm"),
    "filtered prompt": refused("The response was filtered: content_filter", 400),
    "too long a prompt": refused("maximum context length is 10 tokens", 400),
    "too long with its answer": refused("maximum context length is 10 tokens, 9 of them in the completion", 400),
    "too many tokens": refused("prompt is too long: 200 tokens > 100 maximum", 400),
}


@pytest.mark.parametrize("answer", SILENT.values(), ids=SILENT)
def test_what_the_model_leaves_empty_is_an_answer_without_an_action_and_said_once(tmp_path, answer):
    heard = []
    with completions(lambda _: answer) as (url, sent):
        made = engine(settings(url, retries=0), tmp_path, heard.append)
        found = made.generate(requests(5))
        made.close()
    assert [(one.text, one.finished, len(one.token_ids)) for one in found] == [("", True, 1)] * 5
    assert len(sent) == 5 and len(heard) == 1 and "no action" in heard[0]


FATAL = {
    "no key": (refused("no key", 401), {}, "name the variable of a key in policy.key"),
    "a wrong key": (refused("wrong", 401), {"key": "COEVO_TEST_KEY"}, "check the key in COEVO_TEST_KEY"),
    "no model": (refused("no such model", 404), {}, "404: no such model"),
    "an unknown field": (refused("unknown field seed", 400), {}, "400: unknown field seed"),
    "another address": (Answer(b"", 302, {"Location": "/"}), {}, "correct policy.url"),
    "no completion": (Answer(b"[]"), {"retries": 1}, "no chat completion"),
    "nothing in time": (HANGS, {"timeout": 2}, "nothing within policy.timeout=2"),
    "too long an answer": (refused("max_tokens is too large: 50 > 32, the maximum of output tokens", 400), {}, "400"),
    "too many tokens of an answer": (refused("too many tokens asked for: 9 completion tokens at most", 400), {}, "400"),
    "too busy": (refused("busy", 429), {"seconds": 3}, "does not answer within policy.seconds=3"),
}


@pytest.mark.parametrize(("answer", "more", "line"), FATAL.values(), ids=FATAL)
def test_what_the_endpoint_does_not_answer_ends_the_run_in_one_line_and_what_came_is_kept(
    tmp_path, monkeypatch, answer, more, line
):
    monkeypatch.setenv("COEVO_TEST_KEY", "k-secret-0123456789")
    with completions(lambda it: said("yes") if it.number < 3 else answer) as (url, sent):
        config = settings(url, **{"retries": 0, "concurrency": 1, **more})
        made = engine(config, tmp_path)
        with pytest.raises(CoevoError) as caught:
            made.generate(requests(6))
        made.close()
        assert line in f"{caught.value}" and "\n" not in f"{caught.value}"
        assert "secret" not in f"{caught.value}" and "`coevo resume`" in f"{caught.value}"
    assert answered(tmp_path) == 3 and len(sent) >= 4


@pytest.mark.parametrize("concurrency", [1, 8])
def test_prompts_that_are_all_refused_end_the_run(tmp_path, concurrency):
    refusal = refused("maximum context length is 10 tokens", 400)
    with completions(lambda _: refusal) as (url, sent):
        made = engine(settings(url, concurrency=concurrency), tmp_path, [].append)
        with pytest.raises(CoevoError, match=r"context length is 10 tokens\) \(\d+ refusals in a row"):
            made.generate(requests(100))
        made.close()
    assert len(sent) < REFUSED + concurrency


def test_refused_prompts_between_answers_end_nothing(tmp_path):
    filtered = refused("content_filter", 400)
    with completions(lambda it: said("yes") if it.number % 15 == 0 else filtered) as (url, _):
        made = engine(settings(url, concurrency=1), tmp_path, [].append)
        assert sum(one.text == "yes" for one in made.generate(requests(60))) == 4
        made.close()


def test_an_answer_beyond_its_limit_is_cut_and_the_key_hidden(tmp_path, monkeypatch):
    monkeypatch.setenv("COEVO_TEST_KEY", "k-secret-0123456789")
    with completions(lambda _: said(f"k-secret-0123456789 {'x' * 10**6}")) as (url, _):
        made = engine(settings(url, key="COEVO_TEST_KEY"), tmp_path)
        (one,) = made.generate(requests(1))
        made.close()
    assert one.text == f"*** {'x' * (32 * 64 - 4)}" and not one.finished
    assert not [path for path in tmp_path.iterdir() if b"k-secret" in path.read_bytes()]


def test_the_policy_writes_as_it_plays(tmp_path):
    with completions(lambda it: said(f"<think>hm</think> {it.user}!")) as (url, sent):
        made = engine(settings(url), tmp_path)
        writer_model = EngineWriterModel(PolicyWriterModelConfig(max_new_tokens=9), made, {}, seed=1)
        questions = [question(f"why {number}?") for number in range(20)]
        assert [reply.text for reply in in_order(writer_model, questions)] == [f"{each.user}!" for each in questions]
        made.close()
    assert {each.body["max_tokens"] for each in sent} == {9}
    assert sent[0].body["messages"][0] == {"role": "system", "content": "Be brief."}


def test_an_engine_leaves_no_thread_behind(tmp_path):
    with completions(lambda _: said("yes")) as (url, _):
        made = engine(settings(url), tmp_path)
        made.generate(requests(3))
        made.close()
    assert not [thread for thread in threading.enumerate() if thread.name == "endpoint_policy"]


def test_a_view_has_another_sampling_and_the_same_budget(tmp_path):
    with completions(lambda it: said(f"{it.body['max_tokens']}")) as (url, _):
        made = engine(settings(url), tmp_path)
        view = made.with_sampling(made.sampling.model_copy(update={"max_new_tokens": 7}))
        assert [one.generate(requests(1))[0].text for one in (made, view)] == ["32", "7"]
        view.forget()  # ends no revision
        assert made.expense()["cost/policy/requests"] == 2
        made.close()
    assert len([*tmp_path.glob("*.jsonl")]) == 1
