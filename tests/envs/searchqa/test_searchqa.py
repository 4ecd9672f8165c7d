"""Search QA: what a question needs, what its outcome reveals, and questions, passages and retrievers from outside."""

import json
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coevo.envs.base import MissingPartError
from coevo.envs.failures import EpisodeFailure
from coevo.envs.searchqa import SearchQA
from coevo.envs.searchqa.encyclopedia import SOURCES
from coevo.envs.searchqa.question_draws import facts_of, note
from coevo.envs.searchqa.search_episode import normal, tagged_action
from coevo.models.answers.read import Reader
from coevo.records.demonstration import Moment, Note, PastTurn
from coevo.records.draws import extend, key
from coevo.records.episode import Completion, Episode, Turn
from coevo.tasks.checks.environment_check import check_environment
from coevo.utilities.errors import CoevoError, ConfigError

QUESTIONS = [
    {"id": "1", "question": "who wrote Vel ?", "golden_answers": ["The Old Tarn", "Tarn"], "split": "train"},
    {"id": "2", "question": "where is Lumo ?", "golden_answers": "Norland", "split": "test"},
]
CORPUS = [{"id": text[0], "contents": text} for text in ("Vel is by Tarn", "Lumo is in Norland", "Ox eats")]


def written(folder, questions=QUESTIONS, corpus=CORPUS):
    for name, rows in {"questions.jsonl": questions, "corpus.jsonl": corpus}.items():
        (folder / name).write_text("".join(f"{row if isinstance(row, str) else json.dumps(row)}\n" for row in rows))
    return folder


def played(env, task, advise, lessons=()):
    """Last step of an episode, and its actions."""
    (state, observation), history = env.start(task), ()
    while True:
        moment = Moment(task.instruction, tuple(map(Note, lessons)), history, observation)
        answer = advise(state, moment, extend(key("play"), task.id, len(history)))
        (step,) = env.step([state], [answer.action])
        history = (*history, PastTurn(observation, answer.action, step.feedback))
        state, observation = step.state, step.observation
        if step.done:
            return step, [turn.action for turn in history]


@pytest.mark.parametrize("level", [1, 2])
@pytest.mark.parametrize("form", ["line", "tags"])
def test_the_oracle_answers_every_question_and_the_expert_as_its_notes_say(level, form):
    env = SearchQA(level, form=form)
    tasks = (*env.sample(60, key("oracle")), *(each for name in env.panels for each in env.panel(name, 30).tasks))
    assert all(played(env, task, env.oracle)[0].success for task in tasks)
    hops = {len(played(env, task, env.oracle)[1]) - 1 for task in tasks}
    assert hops == ({1} if level == 1 else {1, 2})
    told = [played(env, task, env.advise, [note("right", task.scope, facts_of(task).trusted)])[0] for task in tasks]
    assert all(step.success for step in told)
    guessed = sum(played(env, task, env.advise)[0].success for task in tasks) / len(tasks)
    assert guessed < 0.5
    wrong = [note("wrong", task.scope, facts_of(task).trusted) for task in tasks]
    misled = [played(env, task, env.advise, [each])[0].success for task, each in zip(tasks, wrong, strict=True)]
    assert sum(misled) / len(misled) < 0.1


def test_an_outcome_reveals_what_is_true_of_the_source_that_was_believed():
    env = SearchQA(1)
    for task in env.sample(20, key("reveals")):
        known = facts_of(task)
        for source in SOURCES:
            state, _ = env.start(task)
            (found,) = env.step([state], [f"search[{' '.join(task.data['relations'])} {task.data['subject']}]"])
            (line,) = (line for line in found.observation.split("\n") if source in line)
            (step,) = env.step([found.state], [f"answer[{line.split()[-1]}]"])
            verdict = "right" if source == known.trusted else "wrong"
            assert step.success is (verdict == "right")
            assert f"{task.scope} {step.feedback}" == note(verdict, task.scope, source)
            turn = Turn("", (), Completion((), (), "", True), "answer", step.feedback, step.reward, True)
            (told,) = env.revealed(Episode("1", task, 0, 0, (turn,), step.success, False))
            assert (told.note, told.step) == (note(verdict, task.scope, source), 0)


def test_a_realm_trusts_one_source_in_all_its_questions_and_no_prompt_says_which():
    env = SearchQA(2)
    tasks = env.sample(400, key("realms"))
    trusted = {}
    for task in tasks:
        trusted.setdefault(task.scope, set()).add(facts_of(task).trusted)
        (state, observation), guide = env.start(task), env.guide(task).text
        assert "right answer" not in f"{task.instruction} {observation} {guide}"
        assert state.task == task
    assert all(len(sources) == 1 for sources in trusted.values())
    assert len({*map(tuple, trusted.values())}) > 1


def test_searches_end_and_one_action_is_left_for_the_answer():
    env = SearchQA(1, searches=2)
    (task,) = env.sample(1, key("limit"))
    state, steps = env.start(task)[0], []
    for action in ("search[mayor]", "search[nothing like this]", "search[poet]"):
        steps += env.step([state], [action])
        state = steps[-1].state
    assert [(step.valid, step.done, step.truncated) for step in steps] == [
        (True, False, False), (True, False, False), (False, True, True),
    ]  # fmt: skip
    assert steps[1].observation == steps[1].feedback == "nothing found"


@pytest.mark.parametrize(
    ("text", "expected"),
    [("The  Old, Tarn!", "old tarn"), ("an A.B. ", "ab"), ("", ""), ("the", ""), ("Theatre", "theatre")],
)
def test_answers_are_compared_in_the_normal_form_of_squad(text, expected):
    assert normal(text) == expected == normal(expected)


@given(st.text())
def test_the_normal_form_is_stable_and_empty_answers_are_never_right(text):
    env = SearchQA(1)
    state, _ = env.start(env.sample(1, key("empty"))[0])
    if not normal(text):
        (step,) = env.step([state], [f"answer[{text}]"])
        assert not step.success


@pytest.mark.parametrize(
    ("text", "action"),
    [
        ("I look.\n<search>mayor of  Lumo</search>", "<search> mayor of Lumo </search>"),
        ("<search>a</search>\n<information>b</information>\n<answer>c</answer>", "<search> a </search>"),
        ("<information>b</information><answer>c</answer>", None),
        ("<answer>cut off", None),
        ("no tag", None),
        ("<ANSWER>Tarn</ANSWER>", "<answer> Tarn </answer>"),
        ("<search> words </search> or <answer> words </answer>: <search>a</search>", "<search> a </search>"),
        ("I use <search>words</search>.\n<answer>Tarn</answer>", "<answer> Tarn </answer>"),
        ("<search>Words with Friends</search>", "<search> Words with Friends </search>"),
        ("<search>...</search>", None),
        ("<search> </search>", None),
        ("<answer></answer>", None),
        ("<answer> Words </answer>", None),
        ("<answer>…</answer>", None),
    ],
)
def test_tags_are_read_up_to_what_an_answer_invents(text, action):
    assert tagged_action(text, True) == action
    env = SearchQA(form="tags")
    form = env.guide(env.sample(1, key(0))[0]).answer
    assert Reader(form).read(text).action == (action or "")


@pytest.mark.parametrize("form", ["line", "tags"])
def test_files_are_played_by_their_own_division_or_a_hash_of_the_question(tmp_path, monkeypatch, form):
    monkeypatch.setenv("SEARCH_QA_DIR", str(written(tmp_path)))
    env = SearchQA(data="files", form=form)
    (train,), (held,) = env.sample(1, key(0)), env.panel("held-out", 1).tasks
    assert (train.instruction, held.instruction) == ("who wrote Vel ?", "where is Lumo ?")
    step, actions = played(env, train, env.advise)
    assert (step.success, len(actions)) == (True, 2)
    assert env.panel_bank("held-out") is None
    state, _ = env.start(held)
    (found,) = env.step([state], ["search[Lumo]"])
    assert found.observation == "Lumo is in Norland"
    (lost,) = env.step([found.state], ["answer[Tarn]"])
    assert (lost.feedback, lost.reward) == ("wrong , the answer is Norland", 0.0)
    many = [{"question": f"q{n} ?", "golden_answers": [str(n)]} for n in range(60)]
    divided = SearchQA(data="files", path=str(written(tmp_path, many)), form=form)
    failed = [str(each) for each in check_environment(divided, tasks=3) if not each.passed]
    assert [line for line in failed if "sample" not in line] == []
    assert divided.version != env.version, "results name the files that they are about"
    with pytest.raises(CoevoError, match=r"set env\.data and env\.path"):
        divided.start(train)
    with pytest.raises(MissingPartError, match="no demonstrations"):
        divided.demonstrations(1, 0, key(0))


def test_all_files_of_a_folder_are_read_as_one(tmp_path, monkeypatch):
    questions = [{"question": f"q{n} ?", "golden_answers": [str(n)], "split": "train"} for n in range(6)] + QUESTIONS
    corpus = [*CORPUS, *({"id": str(n), "contents": f"fact{n} is {n}"} for n in range(6))]
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    for folder in (whole, parts):
        folder.mkdir()
    one = SearchQA(data="files", path=str(written(whole, questions, corpus)))
    for name, rows in {"questions": questions, "corpus": corpus}.items():
        for part, chosen in enumerate((rows[:2], rows[2:5], rows[5:])):
            (parts / f"{name}-{part}.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in chosen))
    several = SearchQA(data="files", path=str(parts))
    assert several.version == one.version
    assert several.sample(7, key(0)) == one.sample(7, key(0))
    assert len({task.id for task in several.sample(7, key(0))}) == 7
    assert several.panel("held-out", 1).hash == one.panel("held-out", 1).hash
    state, _ = several.start(several.sample(1, key(0))[0])
    for number in (0, 5):
        (found,) = several.step([state], [f"search[fact{number}]"])
        assert f"fact{number} is {number}" in found.observation
    (parts / "questions-3.jsonl").write_text(json.dumps(asked("new ?", "test")) + "\n")
    assert SearchQA(data="files", path=str(parts)).version != one.version
    (parts / "questions-3.jsonl").write_text(json.dumps(asked("q1 ?", "test")) + "\n")
    with pytest.raises(CoevoError, match="in train and in another split"):
        SearchQA(data="files", path=str(parts))
    (parts / "questions-3.jsonl").write_text('{"question": "z ?", "golden_answers": []}\n')
    with pytest.raises(CoevoError, match=r"questions-3\.jsonl, row 1: golden_answers"):
        SearchQA(data="files", path=str(parts))
    (parts / "questions-3.jsonl").unlink()
    monkeypatch.setattr("coevo.envs.searchqa.search_corpus.MAX_TABLE_ROWS", 7)
    with pytest.raises(CoevoError, match="have more than 7 rows together"):
        SearchQA(data="files", path=str(parts))


def asked(text, split=None):
    return {"question": text, "golden_answers": ["x"]} | ({"split": split} if split else {})


@pytest.mark.parametrize("other", ["who wrote Vel ?", " Who  wrote the vel?", "WHO WROTE VEL"])
def test_a_question_that_trains_and_evaluates_is_one_line(tmp_path, other):
    for first, second in (("train", "test"), ("dev", "train")):
        rows = [asked("who wrote Vel ?", first), asked("where is Lumo ?", "test"), asked(other, second)]
        with pytest.raises(CoevoError, match="is in train and in another split: keep it in one") as caught:
            SearchQA(data="files", path=str(written(tmp_path, rows)))
        assert "\n" not in str(caught.value)
    SearchQA(data="files", path=str(written(tmp_path, [asked("who wrote Vel ?", "test"), asked(other, "dev")])))


@given(st.lists(st.text("abc", min_size=1, max_size=3), min_size=8, max_size=30, unique=True))
def test_a_hash_puts_every_spelling_of_a_question_in_one_split(tmp_path_factory, names):
    rows = [asked(text) for name in names for text in (f"who is {name} ?", f"Who is the {name}")]
    folder = written(tmp_path_factory.mktemp("files"), [*rows, asked("t", "train"), asked("h", "test")])
    env = SearchQA(data="files", path=str(folder))
    train = {normal(task.instruction) for task in env.sample(100, key(0))}
    with pytest.raises(CoevoError) as caught:
        env.panel("held-out", 1_000)
    held = env.panel("held-out", int(str(caught.value).split(" tasks")[0].split()[-1])).tasks
    assert not train & {normal(task.instruction) for task in held}


@pytest.mark.parametrize(
    ("questions", "corpus", "line"),
    [
        ([{"question": "a ?"}], CORPUS, "no such column"),
        ([{"question": "", "golden_answers": ["x"]}], CORPUS, "row 1: question is no text"),
        ([{"question": "a ?", "golden_answers": []}], CORPUS, "row 1: golden_answers is no list of 1"),
        ([{"question": "a ?", "golden_answers": ["the"]}], CORPUS, "row 1: golden_answers"),
        ([{"question": "a ?", "golden_answers": [3]}], CORPUS, "row 1: golden_answers"),
        ([{"question": "a" * 3000, "golden_answers": ["x"]}], CORPUS, "row 1: question is no text"),
        (QUESTIONS, [{"contents": 3}], "contents of a row is no text"),
        (QUESTIONS, [{"id": "1"}], "no such column"),
        (["{"], CORPUS, "no JSON object"),
        (QUESTIONS, [], "no row"),
    ],
)
def test_files_that_are_none_are_one_line(tmp_path, questions, corpus, line):
    with pytest.raises(CoevoError, match=line) as caught:
        SearchQA(data="files", path=str(written(tmp_path, questions, corpus)))
    assert "\n" not in str(caught.value)


def test_a_folder_that_is_missing_or_not_meant_is_one_line(tmp_path, monkeypatch):
    monkeypatch.delenv("SEARCH_QA_DIR", raising=False)
    with pytest.raises(CoevoError, match="or SEARCH_QA_DIR to a folder"):
        SearchQA(data="files")
    with pytest.raises(CoevoError, match="it has no questions"):
        SearchQA(data="files", path=str(tmp_path))
    with pytest.raises(ConfigError, match="belong to data=files"):
        SearchQA(path=str(tmp_path))


@contextmanager
def retriever(reply):
    """A server on this machine whose answers ``reply`` makes of a request."""
    asked = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            asked.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            status, body = reply(asked[-1])
            self.send_response(status)
            if status == 302:
                self.send_header("Location", "http://127.0.0.1:9/elsewhere")
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/retrieve", asked
    finally:
        server.shutdown()
        server.server_close()


FOUND = [{"id": "1", "contents": "Vel is by\nTarn"}, {"document": {"contents": "x" * 9000}, "score": 1.5}]


def test_a_retriever_is_asked_as_search_r1_asks_and_its_passages_are_bounded(tmp_path):
    with retriever(lambda _: (200, json.dumps({"result": [FOUND]}).encode())) as (address, asked):
        env = SearchQA(data="files", path=str(written(tmp_path)), retriever=address, hits=2)
        state, _ = env.start(env.sample(1, key(0))[0])
        (step,) = env.try_step([state], ["search[ who wrote Vel ]"])
    assert asked == [{"queries": ["who wrote Vel"], "topk": 2, "return_scores": False}]
    assert step.observation.split("\n") == ["Vel is by Tarn", "x" * 4000]


@pytest.mark.parametrize(
    "reply",
    [(500, b""), (302, b""), (200, b"no JSON"), (200, b'{"result": []}'), (200, b'{"result": [[3]]}'),
     (200, b" " * (2**22 + 1))],
)  # fmt: skip
def test_a_retriever_that_fails_loses_the_episode_and_nothing_else(tmp_path, reply):
    with retriever(lambda _: reply) as (address, _):
        env = SearchQA(data="files", path=str(written(tmp_path)), retriever=address)
        state, _ = env.start(env.sample(1, key(0))[0])
        lost, answered = env.try_step([state, state], ["search[Vel]", "answer[tarn]"])
    assert isinstance(lost, EpisodeFailure)
    assert "env.retriever" in lost.detail
    assert answered.success
