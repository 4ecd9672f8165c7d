"""The experience bank: storage, retrieval, writers, admission.

In the order of an entry's life: ``evidence`` in episodes, ``writers`` propose, ``admission`` decides
(``edit_operations`` are JERP's), ``bank`` stores, ``retrieval`` finds; ``exchange`` reads and writes banks as files.
"""
