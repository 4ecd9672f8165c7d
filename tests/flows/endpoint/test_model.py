"""Sessions of a served agent are a memory that may be forgotten at any time."""

from support.gateway_turns import grown

from coevo.flows.endpoint.model import ServedSessions
from coevo.tasks.gateway.gateway_session import SessionLimits
from coevo.tasks.gateway.memory_bound import MIB
from coevo.tasks.gateway.session_store import SessionTask


def test_what_was_unused_longest_is_forgotten_for_others():
    found = ServedSessions(SessionLimits(sessions=3))
    used = {name: grown(found.use(name)) for name in ("a", "b", "c")}
    assert found.use("a").tree is used["a"].tree
    found.use("d")
    assert found.use("a").tree is used["a"].tree
    assert found.use("b").tree is not used["b"].tree
    assert found.use("").tree is not found.use("").tree


def test_conversations_have_a_bound_of_memory_and_are_never_refused_for_it():
    found = ServedSessions(SessionLimits(memory=2 * MIB, each=MIB))
    for number in range(100):
        session = grown(found.use(f"s{number}"), 5)
        assert found.use(f"s{number}").tree is session.tree
    for _ in range(100):
        grown(found.use("long"), 5)
    assert len(found.use("long").tree.turns) < 500


def test_the_task_is_that_of_the_request():
    found = ServedSessions(SessionLimits())
    task = SessionTask(scope="lotus")
    assert found.use("a", task).task == task
    assert found.use("a").task == SessionTask()


def test_requests_of_one_conversation_at_a_time_keep_their_tasks_and_share_its_answers():
    found = ServedSessions(SessionLimits())
    tasks = [SessionTask(scope=scope) for scope in ("lotus", "iris", "cedar")]
    requests = [found.use("a", task) for task in tasks]
    assert [each.task for each in requests] == tasks
    grown(requests[0])
    assert len(grown(requests[2]).tree.turns) == len(found.use("a").tree.turns) == 2
    assert found.use("a").memory.used == requests[0].memory.used


def test_a_repeated_request_is_the_first_of_its_prompt_and_its_own_answers_differ():
    found = ServedSessions(SessionLimits())
    assert [found.use("a").repeated("prompt", 2) for _ in range(3)] == [0, 0, 0]
    one = found.use("a")
    assert [one.repeated("prompt", 2), one.repeated("prompt", 1)] == [0, 2]
