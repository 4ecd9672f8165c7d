"""Kills a process with the git child that it waits for, while that git is really at work.

    coevo("resume", "first", workspace=w, kill="git:commit/refs locked@2")

``git:command/point@n`` dies in the n-th git of that command at one of the ``POINTS``. A ``git`` that is first on PATH
starts the real one with what makes it stop there: a filter or a hook of its own. That one kills the victim's process
group, then its own, which is that of git: start the victim as the leader of a group, so that nothing outlives it.
"""

import os
import re
import shutil
from pathlib import Path

PLACE = re.compile(r"git:(?P<command>[\w-]+)/(?P<point>[^@]+)@(?P<count>\d+)")
KILL = 'kill -KILL "-$VICTIM"; kill -KILL 0'
"""Everything in the victim's process group, then in git's, itself included."""
WRAPPER = """export VICTIM=$PPID
here='{here}' real='{real}' command='{command}' found=
for argument do [ "$argument" != "$command" ] || found=yes; done
[ "$found" ] || exec "$real" "$@"
echo >> "$here/count"
[ "$(wc -l < "$here/count")" -eq {count} ] || exec "$real" "$@"
left=$#
while [ "$left" -gt 0 ]; do
    [ "$1" != "$command" ] || set -- "$@" {options}
    set -- "$@" "$1"
    shift
    left=$((left - 1))
done
{start}"""
HOOKS = "-c 'core.hooksPath={here}/scripts'"
FILTER = """-c 'core.attributesFile={here}/attributes' -c 'filter.kill.clean="{here}/scripts/filter"'"""
PATIENCE = "-c core.filesRefLockTimeout=-1"
START = 'exec "$real" "$@"'
START_TOUCHED = f'touch -d 2001-01-01 "$GIT_WORK_TREE/manifest.json"\n{START}'
START_WAITING = f"""lock="$GIT_DIR/refs/heads/main.lock"
touch "$lock"
"$real" "$@" &
while [ ! -e "$GIT_DIR/HEAD.lock" ]; do sleep 0.01; done
kill -KILL $!
wait
rm "$lock"
{KILL}"""
"""Git dies before the victim does: a stopped git in an orphaned group would get SIGHUP, and remove its own locks."""
POINTS = {
    # Git compares the content of a file that was touched while it has the index locked, through the filter.
    "index locked": (FILTER, "filter", KILL, START_TOUCHED),
    "index written": (HOOKS, "post-index-change", KILL, START),
    "message written": (HOOKS, "commit-msg", KILL, START),
    "objects written": (PATIENCE, "none", KILL, START_WAITING),
    "refs locked": (HOOKS, "reference-transaction", f'[ "$1" != prepared ] || {{ {KILL}; }}', START),
    "refs updated": (HOOKS, "reference-transaction", f'[ "$1" != committed ] || {{ {KILL}; }}', START),
    "about to end": (HOOKS, "post-commit", KILL, START),
}
"""By name: git's options, the name of a script that it starts at that point, the script, and how git is started."""


def is_inside_git(kill):
    """Whether a place is one of those here."""
    return bool(kill) and PLACE.fullmatch(kill) is not None


def path_with(kill, directory):
    """PATH on which the git that kills comes first; it is made in a directory."""
    found = PLACE.fullmatch(kill)
    options, name, script, start = POINTS[found["point"]]
    fill = {"here": directory, "options": options.format(here=directory), "start": start, "real": shutil.which("git")}
    directory.mkdir(exist_ok=True)
    (directory / "attributes").write_text("manifest.json filter=kill\n")
    _script(directory / "scripts" / name, script)
    _script(directory / "bin" / "git", WRAPPER.format(**fill, **found.groupdict()))
    return f"{directory / 'bin'}{os.pathsep}{os.environ['PATH']}"


def _script(path: Path, text):
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
