"""Serving a package at its own endpoint."""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from coevo.configs.proxies import reach_directly
from coevo.flows.endpoint.listening import url_of
from coevo.flows.endpoint.request_limits import Limits
from coevo.flows.history.revision_reference import Reference, reading
from coevo.flows.packages.make_package import package
from coevo.flows.packages.proof import prove
from coevo.lineage.scratch import scratch_directory
from coevo.lineage.trust import Consent, confirmed_before
from coevo.lineage.workspace import Workspace
from coevo.tasks import telemetry
from coevo.tasks.package.model_registry import find
from coevo.tasks.publish.mlflow.tracking_store import tracking_store
from coevo.tasks.publish.reporter import in_stage
from coevo.utilities.errors import CoevoError
from coevo.utilities.local_http import LOOPBACK, answers, free_port
from coevo.utilities.processes import HERE, UTF8, Launch, NotReadyError, ServerProcess, Starting

STARTUP = 300.0
"""Seconds after which a server that does not answer is given up."""


@dataclass(frozen=True, slots=True)
class Serving:
    """A served package.

    Attributes:
        name: ``RUN@N`` or ``MODEL/VERSION``.
        url: root URL of its server.
        process: guard of the server, which ends with this process, however that ends.
        log: log file of the server.
    """

    name: str
    url: str
    process: ServerProcess
    log: Path

    def wait(self) -> None:
        """Wait until the server ends.

        Raises:
            CoevoError: the server ended by itself.
        """
        raise CoevoError(f"the server at {self.url} ended with code {self.process.status()}: see {self.log}")


@dataclass(frozen=True, slots=True)
class Address:
    """Address of a server, and the names it answers to.

    Attributes:
        host: address to listen on.
        port: port to listen on; None for a free one.
        allowed: additional names that requests may use for the server.
    """

    host: str = LOOPBACK
    port: int | None = None
    allowed: Sequence[str] = ()


@contextmanager
def serve(
    what: str, address: Address, limits: Limits, workspace: Workspace, consent: Consent = confirmed_before
) -> Iterator[Serving]:
    """Serve a package within the block. One from a registry is proven first, see ``coevo.flows.packages.proof``.

    Args:
        what: ``RUN[@N]``, ``MODEL/VERSION`` or ``MODEL@ALIAS``; the prefix ``models:/`` marks the last two as models.
        address: address of the server.
        limits: largest request.
        workspace: the workspace.
        consent: called with what has to be confirmed of a registered version.

    Raises:
        CoevoError: the package does not exist, is neither proven nor confirmed, the port is in use, or the server did
            not start.
    """
    host, port = address.host, _port(address.host, address.port)
    reach_directly(host)
    with packaged(what, workspace, consent) as (name, directory):
        log = workspace.root.resolve() / f"serve-{port}.log"
        line = ["{python}", "-P", "-m", "coevo.flows.endpoint", str(directory), "--host", host, "--port", str(port)]
        line += [*(["--version", name] if "/" in name else []), *_options(address, limits)]
        process = HERE.start(Launch(line, {**telemetry.OFF, **UTF8}, log, directory=directory, guard="leash"))
        try:
            url = url_of(host, port)
            with in_stage(f"starts the server of {name}"):
                try:
                    Starting(process, log).wait(lambda: answers(f"{url}/ping"), STARTUP)
                except NotReadyError as error:
                    raise CoevoError(f"the server at {url} did not start: it {error}") from None
            yield Serving(name, url, process, log)
        finally:
            process.stop()


@contextmanager
def packaged(what: str, workspace: Workspace, consent: Consent) -> Iterator[tuple[str, Path]]:
    """Name and directory of a package within the block: from the registry, or made from a run's revision.

    Args:
        what: ``RUN[@N]``, ``MODEL/VERSION`` or ``MODEL@ALIAS``.
        workspace: the workspace.
        consent: called with what has to be confirmed of a registered version.

    Raises:
        CoevoError: the package does not exist, or is neither proven nor confirmed.
    """
    with scratch_directory(workspace.root) as scratch:
        if _is_run(what, workspace):
            with reading(what, workspace) as opened:
                workspace.trust.demand(opened.paths.name, opened.config)
                made, name = package(opened, scratch / "package"), opened.name
        else:
            store = tracking_store(workspace.root)
            with in_stage(f"looks for {what.removeprefix('models:/')} in MLflow"):
                registered = find(store, what)
            (made,), name = prove(store, [registered], scratch, workspace, consent), registered.name
        yield name, made.directory


def _is_run(what: str, workspace: Workspace) -> bool:
    if "/" in what:
        return False
    return "@" not in what or workspace.run(Reference.parse(what).run).created.is_file()


def _port(host: str, port: int | None) -> int:
    try:
        return free_port(port or 0, host)
    except OSError as error:
        raise CoevoError(f"{host}:{port}: {os.strerror(error.errno or 0)}: choose another --port or --host") from None


def _options(address: Address, limits: Limits) -> Iterator[str]:
    for name in address.allowed:
        yield f"--allow-host={name}"
    for name, most in asdict(limits).items():
        yield f"--{name}={most}"
