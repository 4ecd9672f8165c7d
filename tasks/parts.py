"""Parts and stores of an open run."""

from dataclasses import dataclass

from coevo.envs.base import Environment
from coevo.lineage.lineage import Lineage
from coevo.lineage.workspace import RunPaths
from coevo.memory.admission.admission import Admission
from coevo.memory.bank.bank import Bank
from coevo.memory.writers.writer import Writer
from coevo.models.trainer.trainer_client import Trainer
from coevo.tasks.gates.episodes import EpisodeLimits
from coevo.tasks.play.play import RolloutWorker
from coevo.tasks.publish.prefect import FlowPages
from coevo.tasks.publish.publisher import Publisher
from coevo.tasks.publish.reporter import Reporter
from coevo.tasks.writing.ask_writer_model import Writing


@dataclass(frozen=True)
class Parts:
    """Parts of a run.

    There is no trainer where the policy is frozen, no writer and admission without a bank, and no writing for a writer
    that asks no model.
    """

    env: Environment[object]
    worker: RolloutWorker
    trainer: Trainer | None
    writer: Writer | None
    admission: Admission | None
    limits: EpisodeLimits
    writing: Writing | None = None


@dataclass(frozen=True)
class Stores:
    """Stores of a run, and its reporters; Prefect's artifacts exist within a flow only."""

    paths: RunPaths
    bank: Bank
    lineage: Lineage
    publisher: Publisher
    reporter: Reporter
    artifacts: FlowPages | None = None
