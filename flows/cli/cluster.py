"""``coevo cluster``: a Ray cluster of this machine."""

from typing import Annotated

import typer

from coevo.flows.console import output
from coevo.flows.console.options import JsonOption, WorkspaceOption, workspace_at

app = typer.Typer(name="cluster", help="Start, show and stop a Ray cluster on this machine.", no_args_is_help=True)


@app.command()
def up(
    nodes: Annotated[int, typer.Option(min=1, max=64, help="Number of nodes, all on this machine.")] = 1,
    cpus: Annotated[int | None, typer.Option(min=1, max=1024, help="Cores that each offers; all by default.")] = None,
    seconds: Annotated[float, typer.Option(min=1, max=3600, help="Limit of a start; each has two attempts.")] = 60.0,
    as_json: JsonOption = False,
    workspace: WorkspaceOption = None,
) -> None:
    """Start the workspace's cluster, or the nodes that it lacks.

    All its sockets are on 127.0.0.1, and only who can read the token in the workspace can use it. Runs with
    placement.type=ray use it; `coevo down` stops it together with the servers.

    Example: coevo cluster up --nodes 2
    """
    from coevo.flows.servers.ray_cluster import cluster_up

    root = workspace_at(workspace).root
    running = cluster_up(root, nodes, cpus, seconds)
    many = "1 node" if len(running) == 1 else f"{len(running)} nodes"
    address = f"127.0.0.1:{running[0].port}"
    output.result(
        as_json,
        {"address": address, "nodes": [node.name for node in running]},
        f"The Ray cluster at {address} has {many}. Stop it with: coevo cluster down",
    )


@app.command()
def down(as_json: JsonOption = False, workspace: WorkspaceOption = None) -> None:
    """Stop the workspace's cluster; runs that use it end.

    Example: coevo cluster down
    """
    from coevo.flows.servers.ray_cluster import cluster_down

    root = workspace_at(workspace).root
    stopped = cluster_down(root) if root.is_dir() else []
    said = f"Stopped {len(stopped)} of its nodes." if stopped else f"No Ray cluster of {root} was running."
    output.result(as_json, {"stopped": len(stopped)}, said)


@app.command()
def status(as_json: JsonOption = False, workspace: WorkspaceOption = None) -> None:
    """Show the nodes of the workspace's cluster, or of RAY_ADDRESS, with what they have and what is free.

    Example: coevo cluster status
    """
    import os

    from coevo.flows.servers.ray_cluster import cluster_address
    from coevo.utilities.cluster.joined_cluster import joined
    from coevo.utilities.cluster.setting_names import SettingNames

    address = os.environ.get("RAY_ADDRESS") or cluster_address(workspace_at(workspace).root)
    rows = [
        {
            "node": node.id[:12],
            "address": node.address,
            **{f"{name.lower()}s": node.total.get(name, 0.0) for name in ("CPU", "GPU")},
            **{f"free_{name.lower()}s": node.free.get(name, 0.0) for name in ("CPU", "GPU")},
        }
        for node in joined(address, 30.0, SettingNames("RAY_ADDRESS", "")).nodes()
    ]
    if as_json:
        output.document(rows)
    else:
        output.table(rows, ("node", "address", "cpus", "free_cpus", "gpus", "free_gpus"))
