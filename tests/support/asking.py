"""A run that asks a person what may enter its bank: an expert plays, with real stores and a policy that stays."""

from support.sessions import iterate, opened
from support.worker import expert_worker

from coevo.configs.load.load import load_recipe

SMALL = (
    "warmstart=null", "iterations=3", "rollout.tasks=4", "rollout.group_size=4", "evaluation.tasks=4",
    "evaluation.final_panels=[]",
    "bank.every=1", "approval.admission=person",
    "bank.admission={per: batch, replays: 2, delta: -1.0, confidence: null}",
)  # fmt: skip


def config(*overrides):
    return load_recipe("homerules-experience-only", [*SMALL, *overrides])


def play(root, iterations=1, settings=None):
    """So many iterations of the run ``run``, in a process of its own as far as the stores know; what each measured."""
    with opened(root, settings or config(), played=expert_worker()) as session:
        return [iterate(session) for _ in range(iterations)]
