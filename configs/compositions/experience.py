"""Conflicts between retrieval, writer and admission of a bank."""

import itertools
from collections.abc import Iterator

from coevo.configs.bank.admission_config import (
    AppendAdmissionConfig,
    ScoreAdmissionConfig,
    WithinGroupAdmissionConfig,
)
from coevo.configs.bank.bank_config import BankConfig
from coevo.configs.bank.retrieval_config import ClusterRetrievalConfig
from coevo.configs.bank.writer import (
    ModelExtremesConfig,
    ModelReflectionConfig,
    ModelSkillsConfig,
    QuoteExtremesConfig,
    QuoteReflectionConfig,
    QuoteSkillsConfig,
)
from coevo.configs.sections import RunSections

EXTREMES = (QuoteExtremesConfig, ModelExtremesConfig)
REFLECTIONS = (QuoteReflectionConfig, ModelReflectionConfig)
SKILLS = (QuoteSkillsConfig, ModelSkillsConfig)


def flaws(config: RunSections) -> Iterator[str]:
    """Conflicts between the parts of the bank, and with other sections."""
    yield from _clusters(config)
    yield from _halves(config)
    yield from _nothing(config)
    yield from _evidence(config)
    yield from _scored(config)
    yield from _room(config)
    yield from _ranked(config)
    yield from _internalized(config)
    yield from _found_again(config)
    yield from _approved(config)
    yield from _tried(config)


def _clusters(config: RunSections) -> Iterator[str]:
    if config.bank is not None and config.bank.retrieval.type == "cluster" and config.clusters is None:
        yield "bank.retrieval.type=cluster needs observation clusters: set clusters.delta=0.85"


def _halves(config: RunSections) -> Iterator[str]:
    if config.bank is None:
        return
    share, group = config.bank.retrieval.share, config.rollout.group_size
    for count, reached, other in ((0, "none", round(1 / group, 3)), (group, "all", 1.0)):
        if 0 < share < 1 and round(share * group) == count:
            yield (
                f"bank.retrieval.share={share} of rollout.group_size={group} rounds to {reached} of them: "
                f"set bank.retrieval.share={other}, or a larger rollout.group_size"
            )


def _nothing(config: RunSections) -> Iterator[str]:
    """Check that entries are written and shown."""
    if config.bank is None:
        return
    writer, retrieval = config.bank.writer, config.bank.retrieval
    if isinstance(writer, EXTREMES) and writer.strategies == writer.warnings == 0:
        yield "bank.writer.strategies=0 and bank.writer.warnings=0 write nothing: set either to 1 or more"
    besides = retrieval.warnings if isinstance(retrieval, ClusterRetrievalConfig) else retrieval.general
    if retrieval.k == 0 and not besides:
        yield "bank.retrieval.k=0 shows nothing: set it to 1 or more, or bank=null"


def _evidence(config: RunSections) -> Iterator[str]:
    """Check that writers get the episodes they need."""
    if config.bank is None:
        return
    writer, key, references = config.bank.writer, config.bank.key, config.bank.references
    if isinstance(writer, REFLECTIONS) and writer.induction == "pairwise" and references == 0:
        yield (
            "bank.writer.induction=pairwise compares with earlier episodes, but bank.references=0 keeps none: "
            "set bank.references=4, or bank.writer.induction=single"
        )
    if isinstance(writer, SKILLS) and key != "kind":
        yield f"bank.writer.type={writer.type} writes for kinds of tasks, but bank.key={key}: set bank.key=kind"


def _scored(config: RunSections) -> Iterator[str]:
    """Check that admission by score gets scores."""
    bank = config.bank
    if bank is None or bank.admission.type != "score":
        return
    if bank.writer.scores is False:
        yield (
            f"bank.writer.type={bank.writer.type} does not score entries, but bank.admission.type=score ranks by their "
            "scores: set bank.writer.type to quote-contrast, quote-extremes, model-contrast or model-extremes, or "
            "another admission"
        )


def _room(config: RunSections) -> Iterator[str]:
    """Check that a bank of limited size can reach ``min_entries``."""
    if config.bank is None:
        return
    bank, least = config.bank, config.bank.retrieval.min_entries
    kept = None if bank.retirement is None else bank.retirement.capacity
    bounds = {"admission": _most_admitted(bank), "retirement": kept}
    for section, most in bounds.items():
        if most is not None and most <= least:
            yield (
                f"bank.{section}.capacity has room for {most} entries, but bank.retrieval.min_entries={least} shows "
                "the bank only if it holds more: set a larger capacity or a lower min_entries"
            )


def _most_admitted(bank: BankConfig) -> int | None:
    """Maximum number of entries that the admission lets a bank hold; None without a limit."""
    admission = bank.admission
    if isinstance(admission, AppendAdmissionConfig):
        return admission.capacity
    if not isinstance(admission, ScoreAdmissionConfig):
        return None
    strategies, warnings = admission.capacity.strategy, admission.capacity.warning
    # Three levels of either zone, or strategies without a level.
    return 3 * (strategies + warnings) if isinstance(bank.writer, EXTREMES) else strategies


def _ranked(config: RunSections) -> Iterator[str]:
    """Check that utilities can differ if retrieval ranks by them."""
    bank = config.bank
    if bank is None or bank.utility is not None or bank.admission.type not in ("append", "replay", "within-group"):
        return
    if bank.retrieval.type in ("simutil-ucb", "two-phase"):
        yield (
            f"bank.retrieval.type={bank.retrieval.type} ranks by utility, but with bank.utility=null and "
            f"bank.admission.type={bank.admission.type} all entries have the same: set bank.utility={{}}"
        )


def _internalized(config: RunSections) -> Iterator[str]:
    every = config.evaluation.internalization
    if every and config.bank is None:
        yield (
            f"evaluation.internalization={every} compares entries of a bank, but bank=null has none: set "
            "evaluation.internalization=0, or a bank"
        )


def _found_again(config: RunSections) -> Iterator[str]:
    """Check that retrieval ranks a bank for instructions, which it is measured by."""
    if not config.evaluation.retrieval:
        return
    if config.bank is None:
        yield (
            "evaluation.retrieval=true searches a bank, but bank=null has none: set evaluation.retrieval=false, or "
            "a bank"
        )
    elif config.bank.retrieval.type == "cluster":
        yield (
            "evaluation.retrieval=true asks with instructions, but bank.retrieval.type=cluster answers observations: "
            "set evaluation.retrieval=false, or another bank.retrieval.type"
        )


def _approved(config: RunSections) -> Iterator[str]:
    if config.bank is None and config.approval.admission == "person":
        yield "approval.admission=person needs a bank: set approval.admission=none, or a bank"


def _tried(config: RunSections) -> Iterator[str]:
    """Check that groups can be halved, and that their tasks are known before they are played."""
    bank, rollout = config.bank, config.rollout
    if bank is None or not isinstance(bank.admission, WithinGroupAdmissionConfig):
        return
    seers = round(bank.retrieval.share * rollout.group_size)
    if seers < 4:
        least = next(size for size in itertools.count(4) if round(bank.retrieval.share * size) >= 4)
        yield (
            f"bank.admission.type=within-group halves the {seers} rollouts of a group that see the bank, and a half of "
            f"one has nothing to compare: set rollout.group_size={least} or more, or a larger bank.retrieval.share"
        )
    if not round(bank.admission.revisit * rollout.tasks):
        yield (
            f"bank.admission.revisit={bank.admission.revisit:g} of rollout.tasks={rollout.tasks} is no task, so "
            "nothing is tried: raise one of them"
        )
    if rollout.ahead:
        yield "bank.admission.type=within-group plays with what the last iteration has shown: set rollout.ahead=0"
    if bank.retrieval.type == "cluster":
        yield (
            "bank.retrieval.type=cluster links entries to the episodes that taught them, which are gone when a trial "
            "ends: set bank.admission.type=replay, or another bank.retrieval.type"
        )
