"""Whole runs of the real loop in this process: only Prefect, MLflow and the trainer's process are spared."""

from contextlib import ExitStack, closing
from dataclasses import replace

from support.sessions import parts
from support.trainer import LocalTrainer

from coevo.configs.load.load import validate
from coevo.envs.registry import make
from coevo.flows import coevolve
from coevo.lineage.lineage import Lineage
from coevo.lineage.workspace import Workspace
from coevo.memory.bank.bank import Bank
from coevo.models.policy.policy import load, save
from coevo.tasks import commit
from coevo.tasks.commit import Committer
from coevo.tasks.parts import Stores
from coevo.tasks.publish.reporter import Silent
from coevo.tasks.run.assemble import worker_of
from coevo.tasks.run.open_run import take_up_writing
from coevo.tasks.run.warmstart import warm_start
from coevo.tasks.session import Session
from coevo.tasks.steps.evaluate import evaluate

STEPS = {
    "homerules": {"steps": 120, "episodes": 8, "drills": 6, "probe_every": 120, "probe_tasks": 16},
    "babyai": {"steps": 20, "probe_every": 20, "probe_tasks": 8, "episodes": 8, "read": 0.0},
    "babyai-rules": {"steps": 20, "probe_every": 20, "probe_tasks": 8, "episodes": 8, "read": 0.0},
    "sokoban": {"steps": 40, "probe_every": 40, "probe_tasks": 8, "episodes": 8, "read": 0.0},
    "minesweeper": {"steps": 40, "probe_every": 40, "probe_tasks": 8, "episodes": 8, "read": 0.0},
    "lifelong-db": {"steps": 60, "probe_every": 60, "probe_tasks": 8, "episodes": 8, "read": 0.0},
    "webshop": {"steps": 40, "probe_every": 40, "probe_tasks": 8, "episodes": 8, "read": 0.0},
    "searchqa": {"steps": 60, "probe_every": 60, "probe_tasks": 8, "episodes": 8, "read": 0.0},
    "rows": {"steps": 60, "probe_every": 60, "probe_tasks": 16},
    "gymnasium": {"steps": 60, "probe_every": 60, "probe_tasks": 16, "episodes": 8},
}


REFLECTIONS = 2
"""Reflections per step of a policy that is to write its own lessons; each is an episode to play and a long text."""


def novice(config, place):
    """A policy for a configuration that has been shown how to act, but not for long; of the same seed as small runs."""
    settings = config.model_dump(mode="json") | {"seed": 5}
    shown = settings["warmstart"] or {}
    few = {"reflections": min(REFLECTIONS, shown.get("reflections", 0))}
    brief = validate(settings | {"warmstart": shown | STEPS[config.env.type] | few}, "novice")
    return warm_start(brief, make(config.env), place, Silent())


def played(root, config, policy, monkeypatch):
    """The revisions of a run that starts from a policy."""
    monkeypatch.setattr(commit, "publish", lambda stores, frozen, manifest: None)
    place = Workspace(root)
    paths = place.create("run", config)
    env = make(config.env)
    worker = worker_of(config, env, load(policy))
    trainer = LocalTrainer(config, policy) if config.update else None
    with closing(env), Lineage.open(paths.lineage, place.cache) as lineage, ExitStack() as stack:
        stores = Stores(paths, Bank(paths.bank), lineage, None, Silent())
        writing = stack.enter_context(take_up_writing(config, stores, worker.engine, None))
        session = Session(config, replace(parts(config, worker, None, trainer), writing=writing), stores)
        save(load(policy), paths.staging / "policy")
        session.pending.measure(evaluate(session))
        with closing(Committer(session)) as keeping:
            keeping.begin()
            while session.iteration < config.iterations:
                coevolve.iterate(session, keeping)
        return lineage.history.log()
