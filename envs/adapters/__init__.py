"""Environments of other libraries, as stateful environments: an episode is its task and its actions.

``adapter_environment`` is what a run sees: tasks by seed or by row, panels, limits. Everything else happens in worker
processes, which may belong to another interpreter. Each adapter has a simulator there: ``gymnasium_games`` plays
Gymnasium, ``factory_episodes`` classes with TRL's protocol, ``openenv_sessions`` servers of OpenEnv, and ``mcp_tools``
tools of MCP servers, which ``mcp_client`` calls. ``verifiers_tasks`` plays tasksets of verifiers. They share
``episode_parts``.

Nothing is imported here: workers need a small part of it.
"""
