"""``python -m benchmarks [NAME ...]``: measure what is missing of these benchmarks, or of all, and print tables."""

import argparse
import sys
from collections.abc import Sequence

from benchmarks import (
    babyai,
    durability,
    engines,
    fsck,
    gpu,
    homerules,
    level2,
    lookups,
    methods,
    newcomer,
    orchestration,
    publishing,
    report,
    retrieval,
    rollout_peers,
    trainer,
    ui,
    update_peers,
    vllm,
)
from benchmarks.bench import Bench
from benchmarks.command import coevo
from configs.errors import CoevoError

BENCHMARKS = {
    "newcomer": newcomer.run,
    "ui": ui.run,
    "orchestration": orchestration.run,
    "publishing": publishing.run,
    "durability": durability.run,
    "fsck": fsck.run,
    "report": report.run,
    "retrieval": retrieval.run,
    "lookups": lookups.run,
    "trainer": trainer.run,
    "rollout_peers": rollout_peers.run,
    "update_peers": update_peers.run,
    "gpu": gpu.run,
    "homerules": homerules.run,
    "level2": level2.run,
    "methods": methods.run,
    "vllm": vllm.run,
    "engines": engines.run,
    "babyai": babyai.run,
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run benchmarks by name. Returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"some of {', '.join(BENCHMARKS)}")
    names = parser.parse_args(arguments).names or list(BENCHMARKS)
    unknown = [name for name in names if name not in BENCHMARKS]
    if unknown:
        parser.error(f"no benchmark {unknown[0]!r}: choose from {', '.join(BENCHMARKS)}")
    try:
        for name in names:
            _run(name)
    except CoevoError as error:
        sys.stderr.write(f"benchmarks: {error}\n")
        return 2
    return 0


def _run(name: str) -> None:
    bench = Bench.of(name)
    try:
        BENCHMARKS[name](bench)
    finally:
        if bench.workspace.root.is_dir():
            coevo(bench.workspace, "down")


if __name__ == "__main__":
    sys.exit(main())
