"""Upkeep of a workspace: checks and repair, ``gc``, ``branch`` (rollback too) and the machine's ``health``.

``workspace_check`` finds damage and mends it. ``change_by_hand`` changes a bank, and
``publishing`` publishes the revisions that these commands commit.
"""
