"""Measure what is missing of these benchmarks, or of all, and print tables.

With ``--check``, measure them anew beside what is kept, and fail where something has become worse.
"""

import argparse
import sys
from collections.abc import Sequence
from functools import partial

from benchmarks import evidence, structure
from benchmarks.bench import Bench
from benchmarks.command import coevo
from benchmarks.gpu import gpu
from benchmarks.learning import (
    admission_cost,
    gateway_tokens,
    gateway_training,
    harmful,
    pilot,
    retirement_power,
    trial_gap,
)
from benchmarks.mutation import mutants
from benchmarks.running import (
    bank_alone,
    before,
    database,
    durability,
    fsck_time,
    host_memory,
    model_size,
    newcomer,
    on_ray,
    publishing_cost,
    report_time,
    scale,
    ui,
    watch_page,
)
from benchmarks.running.regression import FIGURES, check
from benchmarks.speed import (
    engines,
    environments,
    episode_pace,
    gateway_overhead,
    lookups,
    orchestration,
    rendering,
    retrieval_speed,
    rollout_peers,
    vllm,
)
from benchmarks.update import forwarded, micro_batches, output_layer, trainer, update_peers, update_turns
from coevo.utilities.errors import CoevoError

BENCHMARKS = {
    "newcomer": newcomer.run,
    "ray": on_ray.run,
    "before": before.run,
    "ui": ui.run,
    "bank_alone": bank_alone.run,
    "orchestration": orchestration.run,
    "admission": admission_cost.run,
    "harmful": harmful.run,
    "within_group": trial_gap.run,
    "publishing": publishing_cost.run,
    "database": database.run,
    "durability": durability.run,
    "fsck": fsck_time.run,
    "report": report_time.run,
    "watch": watch_page.run,
    "scale": scale.run,
    "model_size": model_size.run,
    "retrieval": retrieval_speed.run,
    "lookups": lookups.run,
    "rendering": rendering.run,
    "gateway": gateway_overhead.run,
    "gateway_tokens": gateway_tokens.run,
    "gateway_training": gateway_training.run,
    "trainer": trainer.run,
    "rollout_peers": rollout_peers.run,
    "update_peers": update_peers.run,
    "update_turns": update_turns.run,
    "micro_batches": micro_batches.run,
    "forwarded": forwarded.run,
    "output_layer": output_layer.run,
    "gpu": gpu.run,
    "host_memory": host_memory.run,
    "pilot": pilot.run,
    "retirement": retirement_power.run,
    "vllm": vllm.run,
    "engines": engines.run,
    "pace": episode_pace.run,
    "environments": environments.run,
    "mutants": mutants.run,
    "structure": structure.run,
    "tables": evidence.print_tables,
    "studies": evidence.decide,
}
COMPARED = list(dict.fromkeys(figure.benchmark for figure in FIGURES))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run benchmarks by name. Returns the exit code."""
    parser = _parser()
    given = parser.parse_args(arguments)
    unknown = [name for name in given.names if name not in BENCHMARKS]
    if unknown:
        parser.error(f"no benchmark {unknown[0]!r}: choose from {', '.join(BENCHMARKS)}")
    try:
        return _check(given.names or COMPARED) if given.check else _measure(given.names or list(BENCHMARKS))
    except CoevoError as error:
        sys.stderr.write(f"benchmarks: {error}\n")
        return 2


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"some of {', '.join(BENCHMARKS)}")
    parser.add_argument(
        "--check", action="store_true", help="measure anew, fail where a ratio is worse than the kept one"
    )
    return parser


def _measure(names: Sequence[str]) -> int:
    for name in names:
        _run(name, Bench.of(name))
    return 0


def _check(names: Sequence[str]) -> int:
    worse = [line for name in names for line in check(name, Bench.of(name), partial(_run, name))]
    for line in worse:
        sys.stderr.write(f"benchmarks: worse than it was: {line}\n")
    return 1 if worse else 0


def _run(name: str, bench: Bench) -> None:
    try:
        BENCHMARKS[name](bench)
    finally:
        if bench.workspace.root.is_dir():
            coevo(bench.workspace, "down")


if __name__ == "__main__":
    sys.exit(main())
