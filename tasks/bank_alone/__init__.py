"""The bank alone, for an agent of any kind: ``coevo.open_bank``.

It stands in this room since it needs both the bank of ``coevo.memory`` and the locks of ``coevo.lineage``. Read
``standalone_bank`` first; ``bank_reader`` is what it shares with its old revisions, and ``scoped_index`` finds entries.
``bank_store`` is the directory, ``bank_revisions`` are its commits. ``new_lesson`` reads lessons from outside,
``chat_trajectory`` keeps conversations from which ``bank_growth`` makes lessons, on which it decides by
replays.
"""
