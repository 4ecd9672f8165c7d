"""The gateway's sessions: an agent with its own loop asks the policy, and every drawn token is kept.

Read ``session_tree`` first: the answers of a session with their tokens. ``chat_agent`` turns a client's messages into
a prompt with lessons and draws from the engine through ``draw_queue``; ``session_store`` keeps sessions that ended.
"""
