"""The environment of a run outside its own process: of an evaluation, or of a gateway."""

from pathlib import Path
from typing import Any

from coevo.configs.run_config import RunConfig
from coevo.envs.base import Environment
from coevo.envs.registry import make
from coevo.flows.history.revision_reference import Reading
from coevo.flows.servers.ray_cluster import use_cluster
from coevo.tasks.publish.reporter import in_stage
from coevo.tasks.run.assemble import place_simulators
from coevo.tasks.run.weight_digests import check_data


def run_environment(config: RunConfig, workspace: Path, run: Reading | None = None) -> Environment[Any]:
    """Build an environment, with its simulators where the placement says.

    Args:
        config: settings of the environment and the placement.
        workspace: directory of the workspace, whose cluster is used where the placement leaves that open.
        run: revision with whose data it has to be; None for any data.

    Raises:
        CoevoError: it cannot be built, its data have changed, or no cluster runs.
    """
    with in_stage("builds the environment"):
        use_cluster(config, workspace)
        env = make(config.env)
    try:
        if run is not None:
            check_data(run.manifest, run.config, env, run.name)
        place_simulators(config, env)
    except BaseException:
        env.close()
        raise
    return env
