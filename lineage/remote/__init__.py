"""Runs at a remote: a directory or an S3 prefix that several machines push to and pull from.

<remote>/coevo.json                  marks a remote and holds its format
<remote>/cache/files/md5/…           content-addressed objects of all runs: artifacts, files of banks, lists of files
<remote>/runs/<run>/lineage.bundle   a git bundle: revisions, tags, and a record that names the bank's list of files
<remote>/locks/<run>.json            who continues the run, see ``remote_lock``

A push adds objects and replaces the bundle last, in one step and only if it has not changed since the push began.
So a remote has the old revision of a run or the new one, never a state in between, and no other file there but the lock
is ever overwritten.
"""
