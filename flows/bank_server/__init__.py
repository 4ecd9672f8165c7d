"""The server of a bank that stands alone: HTTP and MCP, behind tokens that may be limited to names.

Read ``bank_app`` first: who asks is known before a body is read, and a refusal is one line of JSON. ``bank_tokens`` are
the tokens, ``bank_service`` checks requests and carries them out, and ``bank_app`` offers two of them as MCP tools as
well.
"""
