"""The live page of a run, ``coevo watch``: read from the lineage, by way of an index that can be deleted at any time.

``bank_walk`` finds what changed in the bank, ``index_build`` keeps the index, ``index_queries`` and
``entry_queries`` read it, ``run_views``, ``bank_views`` and ``episode_views`` make the pages, ``watch_app``
answers requests, ``watch_server`` listens.
"""
