"""The live page of a run, ``coevo watch``: read from the lineage, by way of an index that can be deleted at any time.

``bank_walk`` finds what changed in the bank, ``index_build`` keeps the index, ``index_queries`` reads it, ``run_views``
makes the pages, ``watch_app`` answers requests, ``watch_server`` listens.
"""
