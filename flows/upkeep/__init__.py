"""Upkeep of a workspace: ``fsck`` and ``repair``, ``gc``, ``rollback``, ``branch`` and the machine's ``health``.

``by_hand`` changes a bank (``coevo bank retire`` and ``import``), and ``publishing`` publishes the revisions that
these commands commit.
"""
