"""The public interface of coevo, for notebooks and plug-ins.

Names are looked up when they are first used, so that importing this costs next to nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from coevo.configs.base import Config
    from coevo.configs.load.open_parts import open_part
    from coevo.configs.load.pairing import Pairing
    from coevo.envs.base import Environment, Guide, Probe, Step
    from coevo.envs.registry import add as add_environment
    from coevo.envs.stateful.interface import Live
    from coevo.envs.stateful.stateful_environment import StatefulEnvironment
    from coevo.flows.api import (
        ablate,
        approve,
        bank,
        compare,
        curves,
        evaluate,
        export,
        log,
        package,
        promote,
        resume,
        run,
        runs,
        serve,
        waiting,
    )
    from coevo.flows.console.trust_prompt import trust
    from coevo.flows.evaluation.evaluate_samples import SampleRequest, evaluate_samples
    from coevo.flows.evaluation.evaluation_targets import TargetSettings
    from coevo.flows.from_adapters import from_factory, from_gymnasium, from_mcp, from_openenv, from_verifiers
    from coevo.flows.from_rows import from_rows
    from coevo.memory.admission.admission import AdmissionPart, Decision, Trial
    from coevo.memory.evidence.references import References
    from coevo.memory.library import Library
    from coevo.memory.retrieval.scorer import NEVER, BankQuery, RetrievalPart
    from coevo.memory.writers.writer import Edit, Evidence, Proposal, WriterPart
    from coevo.models.advantages import AdvantagePart
    from coevo.models.advantages.trajectory import Advantages, Trajectory, of_episodes
    from coevo.models.rewards import RewardPart, Rewards
    from coevo.records.answer_form import (
        BlockForm,
        CallForm,
        FenceForm,
        LineForm,
        NamedAction,
        NamedForm,
        OwnForm,
        TagForm,
        WholeForm,
    )
    from coevo.records.demonstration import Answer, Demonstration, Moment, Note
    from coevo.records.draws import extend, generator, key, seed_of
    from coevo.records.entry import Entry, entry_id
    from coevo.records.episode import Completion, Episode, Turn
    from coevo.records.task import Panel, Task
    from coevo.records.writing import Question, Reply
    from coevo.tasks.bank_alone.chat_trajectory import ChatTrajectory
    from coevo.tasks.bank_alone.standalone_bank import open_bank
    from coevo.tasks.checks.environment_check import check_environment
    from coevo.tasks.schedule import Phase, SchedulePart
    from coevo.utilities.errors import CoevoError

_HOME = {
    "coevo.configs.base": ("Config",),
    "coevo.configs.load.open_parts": ("open_part",),
    "coevo.configs.load.pairing": ("Pairing",),
    "coevo.memory.evidence.references": ("References",),
    "coevo.memory.admission.admission": ("AdmissionPart", "Decision", "Trial"),
    "coevo.memory.library": ("Library",),
    "coevo.memory.retrieval.scorer": ("NEVER", "BankQuery", "RetrievalPart"),
    "coevo.memory.writers.writer": ("Edit", "Evidence", "Proposal", "WriterPart"),
    "coevo.models.advantages": ("AdvantagePart",),
    "coevo.models.advantages.trajectory": ("Advantages", "Trajectory", "of_episodes"),
    "coevo.models.rewards": ("RewardPart", "Rewards"),
    "coevo.records.writing": ("Question", "Reply"),
    "coevo.tasks.schedule": ("Phase", "SchedulePart"),
    "coevo.utilities.errors": ("CoevoError",),
    "coevo.envs.base": ("Environment", "Guide", "Probe", "Step"),
    "coevo.envs.stateful.stateful_environment": ("StatefulEnvironment",),
    "coevo.envs.stateful.interface": ("Live",),
    "coevo.flows.api": (
        "ablate",
        "approve",
        "bank",
        "compare",
        "curves",
        "episodes",
        "evaluate",
        "export",
        "log",
        "package",
        "promote",
        "resume",
        "run",
        "runs",
        "serve",
        "waiting",
    ),
    "coevo.flows.evaluation.evaluate_samples": ("SampleRequest", "evaluate_samples"),
    "coevo.flows.evaluation.evaluation_targets": ("TargetSettings",),
    "coevo.flows.from_adapters": ("from_factory", "from_gymnasium", "from_mcp", "from_openenv", "from_verifiers"),
    "coevo.flows.from_rows": ("from_rows",),
    "coevo.records.answer_form": (
        "BlockForm",
        "CallForm",
        "FenceForm",
        "LineForm",
        "NamedAction",
        "NamedForm",
        "OwnForm",
        "TagForm",
        "WholeForm",
    ),
    "coevo.records.demonstration": ("Answer", "Demonstration", "Moment", "Note"),
    "coevo.records.draws": ("extend", "generator", "key", "seed_of"),
    "coevo.records.entry": ("Entry", "entry_id"),
    "coevo.records.episode": ("Completion", "Episode", "Turn"),
    "coevo.records.task": ("Panel", "Task"),
    "coevo.tasks.bank_alone.chat_trajectory": ("ChatTrajectory",),
    "coevo.tasks.bank_alone.standalone_bank": ("open_bank",),
    "coevo.tasks.checks.environment_check": ("check_environment",),
}
_WHERE = {name: (module, name) for module, names in _HOME.items() for name in names}
_WHERE["trust"] = ("coevo.flows.console.trust_prompt", "trust")
_WHERE["add_environment"] = ("coevo.envs.registry", "add")

__all__ = [
    "NEVER",
    "AdmissionPart",
    "AdvantagePart",
    "Advantages",
    "Answer",
    "BankQuery",
    "BlockForm",
    "CallForm",
    "ChatTrajectory",
    "CoevoError",
    "Completion",
    "Config",
    "Decision",
    "Demonstration",
    "Edit",
    "Entry",
    "Environment",
    "Episode",
    "Evidence",
    "FenceForm",
    "Guide",
    "Library",
    "LineForm",
    "Live",
    "Moment",
    "NamedAction",
    "NamedForm",
    "Note",
    "OwnForm",
    "Pairing",
    "Panel",
    "Phase",
    "Probe",
    "Proposal",
    "Question",
    "References",
    "Reply",
    "RetrievalPart",
    "RewardPart",
    "Rewards",
    "SampleRequest",
    "SchedulePart",
    "StatefulEnvironment",
    "Step",
    "TagForm",
    "TargetSettings",
    "Task",
    "Trajectory",
    "Trial",
    "Turn",
    "WholeForm",
    "WriterPart",
    "ablate",
    "add_environment",
    "approve",
    "bank",
    "check_environment",
    "compare",
    "curves",
    "entry_id",
    "episodes",
    "evaluate",
    "evaluate_samples",
    "export",
    "extend",
    "from_factory",
    "from_gymnasium",
    "from_mcp",
    "from_openenv",
    "from_rows",
    "from_verifiers",
    "generator",
    "key",
    "log",
    "of_episodes",
    "open_bank",
    "open_part",
    "package",
    "promote",
    "resume",
    "run",
    "runs",
    "seed_of",
    "serve",
    "trust",
    "waiting",
]


def __getattr__(name: str) -> object:
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from coevo.utilities.extras import extras_named

    module, attribute = _WHERE[name]
    with extras_named():
        return getattr(import_module(module), attribute)


def __dir__() -> list[str]:
    return __all__
