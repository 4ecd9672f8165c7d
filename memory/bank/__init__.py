"""The bank of a run on LanceDB: versioned tables, and everything that keeps them sound.

Read ``bank`` first, then ``table`` (one Lance table), ``opening`` it, ``change`` (what a revision changes).
``content_hash`` and ``diff`` tell versions apart; ``compaction`` and ``table_retention`` bound the size;
``lance_files`` lists the files of a version, and ``lance_errors`` names its errors. ``table_check`` and
``repair_tables`` are fsck's.
"""
