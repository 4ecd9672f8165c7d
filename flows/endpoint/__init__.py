"""HTTP of agents. A packaged one is a program of its own, which ``coevo.flows.packages.serving`` starts.

Read ``endpoint_app`` first: a request is validated in full before any of it is tokenised, within ``request_limits``,
and a refusal is one line of JSON. ``request_body`` reads bodies, ``model`` loads the agent, ``origin_guard`` refuses
requests of other web pages. ``chat_routes`` answers clients of chats, for the gateway as well: a dialect
(``openai_dialect``, ``anthropic_dialect``) turns a body into a ``ChatRequest`` and answers back, within the terms of
``dialect``.
"""
