"""Export of a revision for the tools of others: the policy in Hugging Face format, or as PEFT adapters, and its bank.

<directory>/                   what ``transformers`` or ``peft`` load: weights as safetensors, settings, tokenizer
<directory>/bank.jsonl         the active entries, as ``coevo bank export`` writes them
<directory>/SKILL.md           the same for agents and people, a section per scope
<directory>/README.md          a model card
<directory>/coevo.json         settings of prompts, answers, retrieval and environment, for ``coevo evaluate``
"""

import json
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any

from coevo.configs.policy_config import EndpointPolicyConfig, PretrainedPolicyConfig
from coevo.configs.run_config import RunConfig
from coevo.configs.trust_settings import chosen
from coevo.flows.evaluation.evaluation_targets import BANK, SECTIONS, SETTINGS
from coevo.flows.history import history
from coevo.flows.history.revision_reference import Reading, reading
from coevo.lineage.atomic_files import locked_alone
from coevo.lineage.revision.code_version import flat
from coevo.lineage.revision.manifest import Manifest
from coevo.lineage.scratch import scratch_directory
from coevo.lineage.workspace import Workspace
from coevo.memory.exchange.exchange import write_entries
from coevo.memory.skill_markdown import SkillHead, escaped, skill_markdown
from coevo.memory.stats import Stats
from coevo.models.policy.foreign import HUB
from coevo.models.policy.sound import load_sound
from coevo.records.entry import Entry, Verdict
from coevo.records.intervals import of_share
from coevo.tasks.cost import spending
from coevo.tasks.publish.reporter import in_stage
from coevo.tasks.run.weight_digests import check_weights
from coevo.utilities.errors import CoevoError

SKILL, CARD = "SKILL.md", "README.md"


def export(reference: str, directory: Path, workspace: Workspace) -> str:
    """Write ``RUN[@N]`` into a new or empty directory, and return its name; the directory is whole or not there.

    Raises:
        CoevoError: the revision does not exist or was dropped, a setting is not confirmed, its policy is nonsense or
            behind an endpoint, or the directory holds something.
    """
    with reading(reference, workspace) as run, scratch_directory(workspace.root) as scratch:
        workspace.trust.demand(run.paths.name, run.config)
        run.lineage.history.require(run.manifest.revision)
        if isinstance(run.config.policy, EndpointPolicyConfig):
            raise CoevoError(
                f"{run.name}: policy.type=endpoint has no weights to export, they are at {run.config.policy.url}: give "
                "the bank away with `coevo bank export`"
            )
        check_weights(run.manifest, run.config, workspace.root, run.name)
        with new_directory(directory.absolute()) as made, in_stage(f"exports {run.name}"):
            kept = run.lineage.artifacts.materialise(run.manifest.revision, "policy", scratch / "policy")
            shutil.copytree(kept, made, dirs_exist_ok=True, copy_function=_copy)
            load_sound(made, run.config.policy)
            _write_texts(run, made)
        return run.name


def _copy(source: str, target: str) -> None:
    """Copy a file of the cache, which nobody may change, as one that its owner may."""
    shutil.copyfile(source, target)
    Path(target).chmod(0o644)


def _write_texts(run: Reading, made: Path) -> None:
    bank = None if run.config.bank is None else run.bank()
    entries = [] if bank is None else bank.active()
    if bank is not None and entries:
        write_entries(entries, made / BANK)
        judged = [each.verdict for each in bank.judged()]
        (made / SKILL).write_text(skill(run, entries, bank.stats(), judged), encoding="utf-8")
    (made / CARD).write_text(model_card(run, len(entries)), encoding="utf-8")
    (made / SETTINGS).write_text(json.dumps(_settings(run), indent=1) + "\n", encoding="utf-8")


def _settings(run: Reading) -> dict[str, Any]:
    """Settings that an evaluation elsewhere needs, without what only training reads."""
    config: RunConfig = run.config
    found = config.model_dump(mode="json")
    kept = {name: found[name] for name in SECTIONS if found.get(name) is not None}
    rollout = found["rollout"]
    kept["rollout"] = {name: rollout[name] for name in ("sampling", "max_turns")}
    if rollout["engine"].get("type") == "transformers":
        kept["rollout"]["engine"] = rollout["engine"]
    if config.bank is not None:
        kept["bank"] = {name: found["bank"][name] for name in ("key", "retrieval")}
    kept["evaluation"] = {name: found["evaluation"][name] for name in ("panels", "tasks")}
    dtype = config.policy.dtype if isinstance(config.policy, PretrainedPolicyConfig) else "float32"
    return {"origin": run.name, "iteration": run.manifest.iteration, "dtype": dtype, **kept}


@contextmanager
def new_directory(directory: Path) -> Iterator[Path]:
    """Directory to fill in the block, which gets its name at the end; a failure leaves nothing behind.

    What a killed process left is removed when the same directory is made again.

    Raises:
        CoevoError: something is there, it cannot be written, or another process makes it.
    """
    if directory.is_symlink() or (directory.exists() and not (directory.is_dir() and not any(directory.iterdir()))):
        raise CoevoError(f"{directory} is not empty: name a new or an empty directory")
    fresh = directory.with_name(f".{directory.name}.part")
    try:
        fresh.mkdir(parents=True, exist_ok=True)
        handle = os.open(fresh, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError as error:
        raise CoevoError(f"{directory}: {error.strerror}: name a directory that can be written") from None
    try:
        _take(handle, directory)
        _empty(fresh)
        yield fresh
        _sync(fresh)
        fresh.rename(directory)
    except OSError as error:
        raise CoevoError(f"{directory}: {error.strerror}: name a directory that can be written") from None
    finally:
        with suppress(CoevoError):
            _take(handle, directory)
            shutil.rmtree(fresh, ignore_errors=True)
        os.close(handle)


def _take(handle: int, directory: Path) -> None:
    if not locked_alone(handle, directory):
        raise CoevoError(f"{directory}: another process writes it: wait for it, or name another directory")


def _empty(folder: Path) -> None:
    for path in folder.iterdir():
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()


def _sync(folder: Path) -> None:
    """Let every file reach the disk before its directory gets its name."""
    for path in (*(each for each in folder.rglob("*") if each.is_file()), folder):
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def skill(run: Reading, entries: Sequence[Entry], stats: Mapping[str, Stats], verdicts: Sequence[Verdict]) -> str:
    """A bank as a skill file, with the evidence for each lesson.

    Args:
        run: the revision.
        entries: active entries.
        stats: counters by id.
        verdicts: results of replay, in the order of the bank.
    """
    about = f"{len(entries)} lessons for {run.config.env.type}, learned from episodes of {run.name}"
    alone = {
        each.candidates[0]: each for each in verdicts if each.admitted and len(each.candidates) == 1 and each.pairs
    }
    evidence = {entry.id: _evidence(entry, stats.get(entry.id), alone.get(entry.id)) for entry in entries}
    return skill_markdown(entries, SkillHead(f"Lessons of {run.name}", about), evidence)


def _evidence(entry: Entry, counted: Stats | None, verdict: Verdict | None) -> str:
    parts = [f"entry {entry.id}", f"written from {_count(len(entry.sources), 'episode')}"]
    if verdict is not None:
        low, high = verdict.interval
        gain = f"{verdict.difference:+.3f} [{low:+.3f}, {high:+.3f}]"
        parts.append(f"mean reward with it {gain} in {verdict.pairs} paired replays")
    else:
        parts.append("not tested by itself")
    if counted is not None and counted.retrievals:
        seen = _count(counted.retrievals, "training episode")
        parts.append(f"shown in {seen}, {counted.successes} of them solved")
    return "; ".join(parts)


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def model_card(run: Reading, entries: int) -> str:
    """Model card with method, data, figures and versions.

    Args:
        run: the revision.
        entries: number of active entries of its bank.
    """
    return "\n".join(_card_lines(run, entries)) + "\n"


def _card_lines(run: Reading, entries: int) -> Iterator[str]:
    config = run.config
    adapters = isinstance(config.policy, PretrainedPolicyConfig) and config.policy.lora is not None
    yield from ("---", f"library_name: {'peft' if adapters else 'transformers'}", "pipeline_tag: text-generation")
    base = _base(config)
    if base is not None and HUB.fullmatch(base):
        yield f"base_model: {base}"
    yield from ("tags: [coevo, agent]", "---", "", f"# {run.name}", "")
    yield f"The policy of an agent that coevo trained in {config.env.type}, with a bank of {entries} written lessons."
    yield from _method(run, base)
    yield from _data(run)
    yield from _figures(run)
    yield from _versions(run.manifest)
    yield from _use(adapters, entries)


def _base(config: RunConfig) -> str | None:
    """Name of the model that training began from; of a folder, only its last part."""
    if not isinstance(config.policy, PretrainedPolicyConfig):
        return None
    path = config.policy.path
    return path if HUB.fullmatch(path) and not Path(path).is_dir() else Path(path).name


def _method(run: Reading, base: str | None) -> Iterator[str]:
    config, spent = run.config, spending(run.history)[-1]
    yield from ("", "## Method", "", "| part | |", "|---|---|", f"| recipe | {escaped(config.recipe)} |")
    scratch = "random weights" if config.warmstart is None else "random weights, then a warm start"
    began = scratch if base is None else escaped(base)
    yield f"| began as | {began} |"
    yield f"| updates of the policy | {run.manifest.iteration} |"
    update, bank = config.update, config.bank
    kinds = {
        "advantage": None if update is None else getattr(update.advantage, "type", None),
        "retrieval": None if bank is None else bank.retrieval.type,
        "writer": None if bank is None else bank.writer.type,
        "admission": None if bank is None else bank.admission.type,
    }
    yield from (f"| {name} | {escaped(str(kind)) if kind else 'none'} |" for name, kind in kinds.items())
    yield f"| seed | {config.seed} |"
    for name, count in (("episodes", spent.episodes), ("tokens", spent.tokens)):
        yield f"| {name} spent | {'not counted' if count is None else f'{count:,}'} |"


def _data(run: Reading) -> Iterator[str]:
    """The environment, without settings that name files, programs or addresses of one machine."""
    config = run.config
    hidden = [each.name for each in chosen(config)]
    env = flat({"env": config.env.model_dump(mode="json")})
    yield from ("", "## Data", "", "Tasks of the environment with these settings; held-out tasks taught nothing.", "")
    for name, value in env.items():
        if not any(f"{name}.".startswith(f"{each}.") for each in hidden):
            yield f"- {escaped(name)}: {escaped(json.dumps(value))}"


def _figures(run: Reading) -> Iterator[str]:
    yield from ("", "## Figures", "")
    last = history.evaluated(run.history)
    if last is None:
        yield "Not evaluated."
        return
    yield f"Success on held-out tasks at revision {last.revision}, with Wilson's 95 % interval over tasks:"
    yield from ("", "| panel | tasks | success | 95 % interval |", "|---|---:|---:|---|")
    for panel, outcomes in last.state.get("outcomes", {}).items():
        played = outcomes.replace("-", "")
        if played:
            share = of_share(played.count("1") / len(played), len(played))
            yield f"| {escaped(panel)} | {len(played)} | {share.mean:.3f} | [{share.low:.3f}, {share.high:.3f}] |"


def _versions(manifest: Manifest) -> Iterator[str]:
    yield from ("", "## Versions", "")
    code, settings = (manifest.state[name][:12] for name in ("code", "config_hash"))
    yield f"- coevo {version('coevo')}, code {code}, configuration {settings}"
    yield from (f"- {escaped(f'{name} {found}')}" for name, found in manifest.state.get("packages", {}).items())


def _use(adapters: bool, entries: int) -> Iterator[str]:
    kind, package = ("AutoPeftModelForCausalLM", "peft") if adapters else ("AutoModelForCausalLM", "transformers")
    first = "from transformers import AutoTokenizer\n" if adapters else ""
    names = kind if adapters else f"{kind}, AutoTokenizer"
    yield from ("", "## Use", "", "```python", f"{first}from {package} import {names}", "")
    yield from (f'model = {kind}.from_pretrained("DIR")', 'tokenizer = AutoTokenizer.from_pretrained("DIR")', "```", "")
    yield "`coevo evaluate DIR` plays its environment with the prompts that it was trained with."
    if entries:
        yield "The lessons are in `bank.jsonl`, and for other agents in `SKILL.md`."
