"""A package, and the agent that plays from it: as an evaluation in this process does, turn by turn."""

import itertools
import json
import re
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from support.packages import ORIGIN, AskedPlayer, Told, packaged
from support.tools import ACTION, CALL, ToolHouse, parrot
from support.worker import CONFIG, Short, environment

from coevo.configs.env import PluginEnvConfig
from coevo.configs.load.load import load_recipe, validate
from coevo.envs.base import Guide
from coevo.envs.homerules import HomeRules
from coevo.models.policy.policy import save
from coevo.records.answer_form import OwnForm, TagForm
from coevo.records.demonstration import PastTurn
from coevo.records.draws import key
from coevo.tasks.iteration.held_out import play_panel
from coevo.tasks.package.agent import Agent, TurnRequest
from coevo.tasks.package.package import Package, pack
from coevo.tasks.play.retrieve import NOTHING, index_of, recall
from coevo.tasks.run.assemble import worker_of
from coevo.utilities.errors import CoevoError

SEED = 7


def said(episodes):
    """Answers and retrieved entries, turn by turn."""
    return [[(turn.completion.text, turn.action, turn.retrieved) for turn in each.turns] for each in episodes]


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    """A package that has been moved; what it was packed from is gone."""
    root = tmp_path_factory.mktemp("packed")
    packaged(root)
    shutil.rmtree(root / "policy")
    return Package((root / "package").rename(root / "moved"))


def test_settings_and_origin_come_back(package):
    assert package.config == CONFIG
    assert package.origin == ORIGIN
    assert package.origin.name == "first@2"


def test_the_bank_answers_as_before(package):
    asked = [(task.instruction, task.scope) for task in environment().sample(16, key("asked"))]
    before, after = index_of(Told(), CONFIG), package.index()
    assert [before.search(*each) for each in asked] == [after.search(*each) for each in asked]
    assert any(after.search(*each) for each in asked)


def test_an_agent_plays_a_panel_as_an_evaluation_does(package):
    panel = environment().panel("seen-houses", 12)
    seen = recall(package.index(), key(SEED, "evaluate"))
    here = play_panel(worker_of(CONFIG, environment(), package.policy()), panel, seen, SEED, 2)
    there = play_panel(AskedPlayer(environment(), Agent(package), SEED), panel, NOTHING, SEED, 2)
    assert said(here) == said(there)
    assert any(shown for episode in said(there) for *_, shown in episode)
    assert [episode.success for episode in here] == [episode.success for episode in there]


def test_an_agent_remembers_nothing(package):
    agent, task = Agent(package), environment().panel("seen-houses", 1).tasks[0]
    first = TurnRequest(task.instruction, "at hall hold nothing", (), task.scope, task.kind, task.id)
    later = replace(first, history=(PastTurn("at hall", "go safe", "see mug"),))
    alone = agent.answer([first], SEED)
    assert [agent.answer([later, first], SEED)[1], agent.answer([first], SEED)[0]] == alone * 2
    assert agent.answer([replace(first, scope="")], SEED)[0].shown == ()


def test_an_agent_names_only_what_fits_its_prompt(tmp_path, package):
    scope = environment().panel("seen-houses", 1).tasks[0].scope
    asked = [TurnRequest("task heat mug", "at hall hold nothing", scope=scope)]
    tight = packaged(tmp_path, load_recipe("homerules-coevo-rl", ["context.experience_tokens=6"]))
    (roomy,), (cramped,) = (Agent(each).answer(asked, SEED) for each in (package, tight))
    assert len(roomy.shown) == 2
    assert cramped.shown == roomy.shown[:1]


def test_another_seed_draws_otherwise(package):
    agent = Agent(package)
    asked = [
        TurnRequest(task.instruction, "at hall", id=task.id) for task in environment().panel("seen-houses", 8).tasks
    ]
    one, two = ([reply.text for reply in agent.answer(asked, seed)] for seed in (1, 2))
    assert one != two


def test_a_prompt_that_is_too_long_ends_its_own_episode_alone(package):
    agent, short, long = Agent(package), TurnRequest("task heat mug", "at hall"), TurnRequest("mug " * 5000, "at hall")
    (alone,), (cut, beside) = agent.answer([short], SEED), agent.answer([long, short], SEED)
    assert (cut.text, cut.answer.action, cut.fault, cut.shown) == ("", "", "overlong", ())
    assert re.fullmatch(r"overlong: a prompt of \d+ tokens, and the policy attends to \d+ before its answer", cut.over)
    assert beside == alone
    assert agent.answer([long], SEED) == [cut]


class Shorter(AskedPlayer):
    """Asks an agent whose policy attends to fewer tokens."""

    def __init__(self, env, agent, most):
        super().__init__(env, agent, SEED)
        agent.engine = Short(agent.engine, most)


def test_an_overlong_episode_through_an_agent_is_one_that_is_played_here(package):
    panel, seen = environment().panel("seen-houses", 6), recall(package.index(), key(SEED, "evaluate"))
    worker = worker_of(CONFIG, environment(), package.policy())
    lengths = [len(turn.prompt_ids) for each in play_panel(worker, panel, seen, SEED, 2) for turn in each.turns]
    most = sorted(lengths)[len(lengths) // 2]
    worker.engine = Short(worker.engine, most)
    here = play_panel(worker, panel, seen, SEED, 2)
    there = play_panel(Shorter(environment(), Agent(package), most), panel, NOTHING, SEED, 2)
    assert said(here) == said(there)
    assert [(each.cut, each.truncated) for each in here] == [(each.cut, each.truncated) for each in there]
    assert any(each.cut for each in there)


def test_gates_of_retrieval_stay_closed_as_long_as_in_the_run(tmp_path):
    late = load_recipe("homerules-coevo-rl", ["bank.retrieval.warmup=3"])
    package = packaged(tmp_path, late)
    assert package.index() is None
    (tmp_path / "open").mkdir()
    assert packaged(tmp_path / "open", late, origin=replace(ORIGIN, iteration=3)).index() is not None


def test_a_method_without_a_bank_has_none(tmp_path):
    bankless = validate(CONFIG.model_dump(mode="json") | {"bank": None}, "bankless")
    package = packaged(tmp_path, bankless, bank=None)
    assert package.index() is None
    assert not (package.directory / "bank").exists()
    assert Agent(package).answer([TurnRequest("house lotus", "at hall")], SEED)[0].shown == ()


def test_an_encoder_of_its_own_travels_with_the_package(tmp_path):
    (tmp_path / "encoder").mkdir()
    (tmp_path / "encoder" / "modules.json").write_text("[]")
    here = f"bank.retrieval.encoder.model={tmp_path / 'encoder'}"
    judge = f"evaluation.encoder={tmp_path / 'encoder'}"  # a package evaluates nothing
    config = load_recipe("homerules-coevo-rl", ["bank.retrieval.type=embedding", here, judge])
    package = packaged(tmp_path, config)
    shutil.rmtree(tmp_path / "encoder")
    moved = Package(package.directory.rename(tmp_path / "moved"))
    encoder = moved.config.bank.retrieval.encoder
    assert Path(encoder.model) == tmp_path / "moved" / "encoders" / "0"
    assert (Path(encoder.model) / "modules.json").is_file()
    with pytest.raises(CoevoError, match="no such directory"):
        packaged(tmp_path / "again", config)


def chatting(tmp_path, text, kind=ToolHouse, limit=2):
    """A package of a policy that says a text, in conversations with tools."""
    save(parrot(text), tmp_path / "policy")
    settings = [
        f"env={{type: '{kind.__module__}:{kind.__name__}'}}",
        *("policy.type=pretrained", f"policy.path={tmp_path / 'policy'}", "bank=null", "warmstart=null"),
        *("context.style=conversation", f"context.invalid_limit={'null' if limit is None else limit}"),
    ]
    return pack(tmp_path / "package", tmp_path / "policy", None, load_recipe("homerules-coevo-rl", settings), ORIGIN)


def test_a_package_holds_tools_whose_calls_are_its_actions(tmp_path):
    package = chatting(tmp_path, CALL)
    assert json.dumps(package.tools) == json.dumps(ToolHouse.tools)  # fields in their order
    replies = Agent(package).answer([TurnRequest("heat mug", "at hall", (), id="t", guide="Call a tool.")], SEED)
    assert [(each.answer.action, each.fault, each.over) for each in replies] == [(ACTION, "", "")]


def test_no_package_of_words_holds_tools(tmp_path):
    plugin = PluginEnvConfig(type=f"{ToolHouse.__module__}:ToolHouse")
    assert packaged(tmp_path, CONFIG.model_copy(update={"env": plugin})).tools == ()


NUMBERS = itertools.count()


class Formed(HomeRules):
    """A household that names the form of an answer."""

    form = TagForm(name="move", examples=("go safe",))

    def guide(self, task):
        return Guide("Move.", ("go",), answer=self.form)


def test_a_package_holds_the_form_of_an_answer(tmp_path):
    package = chatting(tmp_path, "<move>go hall</move>", Formed)
    assert package.answer == Formed.form
    (reply,) = Agent(package).answer([TurnRequest("heat mug", "at hall", (), id="t", guide="Move.")], SEED)
    assert (reply.answer.action, reply.fault) == ("go hall", "")
    (package.directory / "answer.json").write_text('{"kind": "shout"}')
    with pytest.raises(CoevoError, match=r"answer.json is damaged"):
        Package(package.directory).answer  # noqa: B018


@pytest.mark.parametrize(
    ("form", "reason"),
    [
        (OwnForm(parser="support.answer_shapes:shouted", request="Shout!"), "a parser of its own .* name another form"),
        (property(lambda env: TagForm(name=f"move{next(NUMBERS)}")), "names other forms of answers from task to task"),
    ],
)
def test_a_form_that_a_package_cannot_hold_is_refused(tmp_path, monkeypatch, form, reason):
    monkeypatch.setattr(Formed, "form", form)
    with pytest.raises(CoevoError, match=reason):
        chatting(tmp_path, "go", Formed)
    assert not (tmp_path / "package").exists()


class Moody(ToolHouse):
    """A household whose tools depend on the task."""

    def guide(self, task):
        return Guide("Call a tool.", (), self.tools[: 1 + len(task.instruction) % 2])


def test_tools_that_differ_from_task_to_task_are_refused(tmp_path):
    with pytest.raises(CoevoError, match="declares other tools from task to task") as refused:
        chatting(tmp_path, CALL, Moody)
    assert "\n" not in str(refused.value)
    assert not (tmp_path / "package").exists()


def test_unusable_answers_have_a_reason_and_end_an_episode(tmp_path):
    agent, idle, act = Agent(chatting(tmp_path, "hm")), PastTurn("at hall", "", "?"), PastTurn("at hall", "go", "ok")
    histories = [(), (idle,), (idle, act), (idle, idle), (act, idle)]
    replies = agent.answer([TurnRequest("heat mug", "at hall", each) for each in histories], SEED)
    assert {(each.answer.action, each.fault) for each in replies} == {("", "no action")}
    assert [bool(each.over) for each in replies] == [False, True, False, True, True]
    over = "the episode is over: 2 unusable answers in a row reach context.invalid_limit=2"
    assert {each.over for each in replies} == {"", over}


def test_without_a_limit_no_answer_ends_an_episode(tmp_path):
    idle = (PastTurn("at hall", "", "?"),) * 9
    (reply,) = Agent(chatting(tmp_path, "hm", limit=None)).answer([TurnRequest("heat mug", "at hall", idle)], SEED)
    assert (reply.over, reply.fault) == ("", "no action")


def test_what_is_no_package_is_named(tmp_path):
    with pytest.raises(CoevoError, match=r"holds no config\.json; name what `coevo package` has made"):
        _ = Package(tmp_path).config


def test_a_policy_behind_an_endpoint_is_not_packaged(tmp_path):
    config = load_recipe("homerules-experience-only-endpoint")
    with pytest.raises(CoevoError, match=r"policy.type=endpoint has no weights .* `coevo bank export`"):
        pack(tmp_path / "package", tmp_path, None, config, ORIGIN)
    assert not (tmp_path / "package").exists()
