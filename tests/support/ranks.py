"""Several trainer processes without their launcher: forked from one that has imported what takes long."""

import json
import multiprocessing
import os
from pathlib import Path

HEAVY = ["coevo.models.trainer.ranks", "coevo.models.trainer.training_session"]


def trained(directory: Path, count: int, config, updates, **paths):
    """Metrics of updates by so many processes, which save policy and optimizer in ``directory``.

    Args:
        directory: a new directory.
        count: of processes.
        config: the ``UpdateConfig``.
        updates: numbers that decide the order of minibatches, an update each.
        paths: ``policy``, ``reference``, ``batch`` and perhaps ``optimizer``, and ``others``: the policy as all but the
            first process find it.
    """
    directory.mkdir()
    work = json.dumps({"config": config.model_dump_json(), "updates": list(updates), "directory": str(directory)}
                      | {name: str(path) for name, path in paths.items()})  # fmt: skip
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(HEAVY)
    ranks = [context.Process(target=train, args=(number, count, work)) for number in range(count)]
    for rank in ranks:
        rank.start()
    for rank in ranks:
        rank.join()
    assert [rank.exitcode for rank in ranks] == [0] * count
    return json.loads((directory / "metrics.json").read_text())


def train(number: int, count: int, work: str) -> None:
    """One of the processes."""
    os.environ |= {"RANK": str(number), "WORLD_SIZE": str(count), "LOCAL_RANK": str(number), "GLOO_SOCKET_IFNAME": "lo"}
    from coevo.models.trainer import ranks
    from coevo.models.trainer.training_session import TrainingSession

    asked = json.loads(work)
    directory = Path(asked["directory"])
    ranks.join(directory / "store")
    session = TrainingSession(
        config=asked["config"],
        temperature=0.8,
        threads=1,
        policy=asked["others"] if number and "others" in asked else asked["policy"],
        reference=asked["others"] if number and "others" in asked else asked["reference"],
        optimizer=asked.get("optimizer", ""),
    )
    metrics = [session.update(asked["batch"], [update]) for update in asked["updates"]]
    session.score(asked["batch"], str(directory / "scores.parquet"))
    session.save(str(directory / "policy"), str(directory / "optimizer"))
    if number == 0:
        (directory / "metrics.json").write_text(json.dumps(metrics))
