"""Processes that may end while a test looks at them or kills them, as a child ends with its parent."""

from contextlib import suppress

import psutil


def command_of(process):
    """Command line of a process; empty if it has ended meanwhile, which its parent may not know yet."""
    try:
        return process.cmdline()
    except (psutil.NoSuchProcess, psutil.AccessDenied):
        return []


def connections_of(processes):
    """TCP sockets of those of the processes that have not ended meanwhile."""
    found = []
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            found += process.net_connections("tcp")
    return found


def kill_all(processes):
    """Kill processes of which some may have ended meanwhile, perhaps as children of one that was killed before."""
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            process.kill()
