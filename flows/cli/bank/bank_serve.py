"""``coevo bank serve`` and ``coevo bank token``: a bank that stands alone, for agents of any kind and language."""

from pathlib import Path
from typing import Annotated, Any

import typer

from coevo.flows.console import output
from coevo.flows.console.options import JsonOption
from coevo.utilities.errors import CoevoError
from coevo.utilities.extras import lacks
from coevo.utilities.local_http import LOOPBACK

CONNECTIONS = 256
"""Most concurrent connections; further ones get 503."""
BankDirectory = Annotated[Path, typer.Argument(metavar="DIR", help="Directory of a bank, see `coevo.open_bank`.")]


def serve(
    directory: BankDirectory,
    host: Annotated[str, typer.Option(help="Address to listen on.")] = LOOPBACK,
    port: Annotated[int, typer.Option(min=0, max=65_535, help="Port to listen on; 0 takes a free one.")] = 0,
    allow_host: Annotated[
        list[str] | None, typer.Option("--allow-host", help="Another name that clients may use for the server.")
    ] = None,
    retrieval: Annotated[str, typer.Option(help="tfidf, bm25, embedding or tfidf+embedding.")] = "tfidf",
    k: Annotated[int, typer.Option(min=0, max=1000, help="Lessons that a query returns.")] = 8,
    as_json: JsonOption = False,
) -> None:
    """Serve a bank that stands alone, over HTTP and MCP, until Ctrl-C.

    Every request needs a token, see `coevo bank token`. POST /retrieve finds lessons, /outcomes counts episodes,
    /propose puts lessons forward and /record keeps trajectories; /mcp has the tools recall and report_outcome. Lessons
    are judged by a program with `coevo.open_bank`, which may run at the same time.

    Example: coevo bank serve memory --port 8800
    """
    if lacks("mcp"):
        raise CoevoError("the server of a bank needs the extra mcp: pip install 'coevo[mcp]'")
    import uvicorn

    from coevo.flows.bank_server.bank_app import bank_app
    from coevo.flows.bank_server.bank_service import BankService
    from coevo.flows.bank_server.bank_tokens import BankTokens
    from coevo.flows.endpoint.listening import listening, url_of
    from coevo.flows.endpoint.origin_guard import hosts_of

    with listening(host, port) as listener:
        service = BankService(directory, retrieval, k)
        app = bank_app(service, BankTokens(directory), hosts_of(host, allow_host or []))
        quiet: dict[str, Any] = {"log_level": "warning", "access_log": False, "server_header": False, "lifespan": "on"}
        config = uvicorn.Config(app, http="h11", ws="none", limit_concurrency=CONNECTIONS, **quiet)
        url = url_of(host, listener.getsockname()[1])
        output.result(
            as_json,
            {"bank": str(directory), "url": url, "mcp": f"{url}/mcp"},
            f"Bank {directory}: {url}, with MCP at /mcp",
            f"Tokens: coevo bank token {directory}; Ctrl-C stops the server.",
        )
        uvicorn.Server(config).run(sockets=[listener])


def token(
    directory: BankDirectory,
    user: Annotated[str | None, typer.Option(help="Limit the token to this user.")] = None,
    agent: Annotated[str | None, typer.Option(help="Limit the token to this agent.")] = None,
    task: Annotated[str | None, typer.Option(help="Limit the token to this task.")] = None,
    renew: Annotated[
        bool, typer.Option("--renew", help="Make all earlier tokens of the bank invalid, at once.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Print a token for the server of a bank.

    Without a name it opens all scopes. With names it opens the scopes that have them, and lessons without scope can be
    read, and are not counted; nothing else can be read, written or counted.

    Example: coevo bank token memory --user ann
    """
    from coevo.flows.bank_server.bank_tokens import BankTokens
    from coevo.tasks.bank_alone.standalone_bank import open_bank

    if not directory.is_dir():
        raise CoevoError(f"{directory}: there is no such directory: `coevo bank serve` makes a bank")
    open_bank(directory)  # a directory that holds something else is refused
    tokens = BankTokens(directory)
    if renew:
        tokens.renew()
    names = {"user": user, "agent": agent, "task": task}
    opens = {name: value for name, value in names.items() if value is not None}
    made = tokens.token(opens)
    output.result(as_json, {"bank": str(directory), "token": made, "opens": opens}, made)
