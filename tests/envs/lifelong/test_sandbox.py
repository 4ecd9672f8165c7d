"""The sandbox: what scripts in it cannot do, and that nothing of it outlives its episode."""

import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest

from coevo.envs.lifelong.sandbox import LIMITS, MAX_SCRIPT_BYTES, Sandbox, SandboxError, refusal

needs_root = pytest.mark.skipif(bool(refusal()), reason=refusal() or "it can be started")
PATIENCE_S = 10.0


@pytest.fixture
def sandbox():
    with closing(Sandbox()) as started:
        yield started


def running(mark):
    """Ids of processes of this machine whose command line has a mark."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            found += [int(path.parent.name)] if mark.encode() in path.read_bytes().split(b"\0") else []
        except OSError:
            continue
    return found


def until(holds):
    """Wait for a condition, and return whether it came."""
    give_up = time.monotonic() + PATIENCE_S
    while not holds() and time.monotonic() < give_up:
        time.sleep(0.02)
    return holds()


@needs_root
def test_the_files_of_the_host_cannot_be_read(sandbox, tmp_path, monkeypatch):
    secret = tmp_path / "secret-of-the-host.txt"
    secret.write_text("told")
    listed = sandbox.run(f"cat {secret} /root/.ssh/* /etc/hostname; ls / /home /root; find / -name 'secret-of*'")
    assert "told" not in listed.output
    known = {"bin", "dev", "etc", "home", "mnt", "opt", "proc", "root", "run", "sbin", "srv", "tmp", "usr", "var"}
    assert {*sandbox.run("ls /").output.split()} - known <= {"lib", "lib64", "lib32"}
    assert sandbox.run("ls -A /home /root /srv /opt /mnt /tmp | grep -v :").output.split() == []
    for path in ("/etc/shadow", "/etc/passwd"):
        assert sandbox.run(f"cat {path}").output != Path(path).read_text()
    assert os.environ["PATH"] not in sandbox.run("env; cat /proc/*/environ").output
    assert sandbox.run("cat /proc/1/environ").code != 0
    assert "/work" not in sandbox.run("ls -l /proc/[0-9]*/cwd /proc/[0-9]*/root /proc/[0-9]*/exe /proc/1/fd").output


@needs_root
def test_the_files_of_the_host_cannot_be_changed_or_mounted(sandbox):
    before = Path("/usr/bin/ls").resolve().read_bytes()
    sandbox.run(
        "echo x > /usr/bin/ls; chmod 777 /usr/bin/ls; mv /usr/bin/ls /tmp; rm -f /usr/bin/ls; ln /usr/bin/ls /x"
    )
    assert Path("/usr/bin/ls").resolve().read_bytes() == before
    assert sandbox.run("ls -d /tmp").output == "/tmp\n"
    capabilities = sandbox.run("grep CapEff /proc/self/status").output.split()[1]
    assert int(capabilities, 16) & ~0b111011 == 0
    assert sandbox.run("cat /proc/sys/kernel/hostname /proc/cmdline /proc/kcore /sys/kernel").code != 0


JUDGE = """[ "$(stat -c %a /srv/f)" = 640 ] || { echo other permissions; exit 1; }
[ "$(cat <(cat /srv/f))" = pear ] && getent passwd root | grep -q root"""
LIE = "printf '#!/bin/bash\\necho 640\\n'"
FORGERIES = {
    "the shell is another program": "mv /usr/bin /usr/b; /usr/b/mkdir /usr/bin; /usr/b/cp /usr/b/true /usr/bin/bash",
    "all of /usr is another folder": "mv /usr /u; /u/bin/mkdir -p /usr/bin; /u/bin/cp /u/bin/true /usr/bin/bash",
    "a command that is found first": f"{LIE} > /usr/sbin/stat; chmod +x /usr/sbin/stat",
    "a command of the same name": f"rm -f /usr/bin/stat; {LIE} > /usr/bin/stat; chmod +x /usr/bin/stat",
    "a folder over a folder": f"mkdir /tmp/s; {LIE} > /tmp/s/stat; chmod +x /tmp/s/stat; mv -T /tmp/s /usr/sbin",
    "links of folders": "for d in bin sbin lib lib64 dev; do mv /$d /old$d; ln -s /srv /$d; done",
    "the folder of settings": "cp -r /etc /e; mv /etc /old; rm -rf /etc/pam.d; ln -s /e /etc",
    "a library that is always loaded": "echo /lib64/libevil.so > /etc/ld.so.preload; mv /tmp/p /etc/ld.so.preload",
    "another cache of libraries": "rm -f /etc/ld.so.cache; cp /usr/bin/true /etc/ld.so.cache",
    "another library of names": "echo 'passwd: ../evil' > /etc/nsswitch.conf; sed -i s/files/evil/ /etc/nsswitch.conf",
    "a library in a folder of the loader": "for d in /lib /lib64 /usr/lib; do cp /usr/bin/true $d/libc.so.6; done",
    "the environment": "export PATH=/srv:$PATH LD_PRELOAD=/srv/x.so BASH_ENV=/srv/env ENV=/srv/env HOME=/srv SHELLOPTS",
    "a function": "stat() { echo 640; }; export -f stat",
    "an alias": "shopt -s expand_aliases; alias stat='echo 640'; alias [=true",
    "files that shells read": "for f in /etc/profile /etc/bash.bashrc /root/.bashrc /root/.bash_profile; "
    "do echo 'stat() { echo 640; }; exit 0' > $f; done",
    "the shell's hash of commands": f"{LIE} > /srv/s; chmod +x /srv/s; hash -p /srv/s stat; trap 'exit 0' EXIT ERR",
    "other descriptors": "rm -rf /dev/fd; mkdir -p /dev/fd; echo pear > /dev/fd/63; rm -f /dev/null; mkdir /dev/null",
    "a mount": f"{LIE} > /srv/s; mount --bind /srv/s /usr/bin/stat; unshare -Urm true; mount -o remount,rw /usr",
    "a process that stays": "(while :; do for p in /proc/[0-9]*/fd/*; do "
    "[ $p = /proc/$BASHPID/fd/1 ] || echo 640 > $p; done; done) > /dev/null 2>&1 & disown",
    "a process that takes all others": "(trap '' TERM HUP; while :; do sleep 100 & done) > /dev/null 2>&1 &",
}  # fmt: skip
"""Scripts that would have a judge tell something else than what is there."""


@needs_root
@pytest.mark.parametrize("forgery", FORGERIES.values(), ids=FORGERIES)
def test_no_script_changes_what_a_judge_runs_or_finds(sandbox, forgery):
    assert sandbox.run("echo pear > /srv/f; chmod 604 /srv/f", alone=True).code == 0
    sandbox.run(forgery, seconds=3.0)
    judged = sandbox.run(JUDGE, alone=True)
    assert (judged.code, judged.output) == (1, "other permissions\n")
    assert sandbox.run("chmod 640 /srv/f", alone=True).code == 0
    assert sandbox.run(JUDGE, alone=True).code == 0, "nor does it keep a judge from its work"


@needs_root
def test_every_program_and_library_lies_where_nothing_can_be_added_or_renamed(sandbox):
    folders = (
        "/usr /usr/bin /usr/sbin /usr/lib /usr/libexec /bin /sbin /lib /lib64 /dev /etc/pam.d /lib/*/ /dev/.kernel"
    )
    told = sandbox.run(f"for d in {folders}; do touch $d/new && echo added to $d; mv $d /moved && echo moved $d; done")
    assert "added to" not in told.output
    assert "\nmoved " not in told.output
    mapped = sandbox.run("cat /proc/self/maps; exec 2> /dev/null; ls -d /lib /lib64").output.split()
    assert {path.split("/")[1] for path in mapped if path.startswith("/")} <= {"usr", "lib", "lib64"}
    assert (
        sandbox.run("mkdir -p /usr/local/bin /data; echo x > /usr/local/bin/x; touch /data/x /etc/x; ls /etc/x").code
        == 0
    )


@needs_root
def test_no_network_can_be_reached(sandbox):
    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        port = server.getsockname()[1]
        hosts = (f"tcp/127.0.0.1/{port}", "udp/8.8.8.8/53")
        told = sandbox.run("; ".join(f"exec 3<>/dev/{host} && echo reached" for host in hosts))
        assert "reached" not in told.output
        server.settimeout(0.2)
        with pytest.raises(TimeoutError):
            server.accept()


@needs_root
def test_a_fork_bomb_meets_a_limit_and_ends_with_its_script(sandbox):
    mark = "coevo-fork-mark"
    bomb = f"f() {{ bash -c 'sleep 100' {mark} & f & }}; for i in $(seq 500); do f; done 2>/dev/null; sleep 60"
    told = sandbox.run(bomb, seconds=2.0)
    assert (told.timed_out, told.ended, told.code) == (True, True, None)
    assert len(running(mark)) <= LIMITS["NPROC"]
    assert until(lambda: not running(mark))
    assert sandbox.run("echo again").output == "again\n"


@needs_root
def test_nothing_outlives_its_episode():
    sandbox = Sandbox()
    mark = "98711.5"
    sandbox.run(f"sleep {mark} & setsid sleep {mark} & nohup sleep {mark} > /dev/null & (sleep {mark} & disown)")
    assert until(lambda: len(running(mark)) == 4)
    sandbox.close()
    assert until(lambda: not running(mark))


@needs_root
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_sandbox_ends_with_its_owner(number):
    mark = f"98712.{number}"
    code = (
        "from coevo.envs.lifelong.sandbox import Sandbox; import time; sandbox = Sandbox();"
        f"sandbox.run('trap \"\" TERM INT HUP; sleep {mark} &'); print(1, flush=True);"
        f"sandbox.run('sleep {mark}')"
    )
    owner = subprocess.Popen([sys.executable, "-P", "-c", code], stdout=subprocess.PIPE)
    with owner:
        assert owner.stdout.readline() == b"1\n"
        assert until(lambda: running(mark))
        owner.send_signal(number)
    assert until(lambda: not running(mark))


@needs_root
def test_one_shell_stays_and_a_new_one_follows_where_it_has_ended(sandbox):
    sandbox.run("cd /srv; name=pear; greet() { echo hello $1; }")
    assert sandbox.run("pwd; greet $name").output == "/srv\nhello pear\n"
    assert sandbox.run("false").code == 1
    assert sandbox.run("cat; read x; echo $x-").output == "-\n"
    left = sandbox.run("exit 7")
    assert (left.code, left.ended) == (7, True)
    assert sandbox.run("pwd; echo $name-").output == "/root\n-\n"
    assert sandbox.run("exec 9>&-; echo on").ended
    assert sandbox.run("kill -9 $$").ended
    assert sandbox.run("kill -9 1; kill -INT 1; kill -TERM 1; echo alive").output == "alive\n"
    assert sandbox.run("if", alone=True).code != 0


@needs_root
def test_output_files_and_time_are_bounded(sandbox):
    assert len(sandbox.run("yes | head -c 1000000").output) == 1 << 16
    assert sandbox.run("yes > /srv/full; echo $?", seconds=8.0).output.splitlines()[-1] != "0"
    sandbox.run("for i in $(seq 3); do yes > /srv/full$i; done 2> /dev/null")
    assert sandbox.run("echo on").output == "on\n", "a full disk ends no episode"
    since = time.monotonic()
    assert sandbox.run("while :; do :; done", seconds=1.0).timed_out
    assert time.monotonic() - since < PATIENCE_S
    assert sandbox.run("# " + "é" * (MAX_SCRIPT_BYTES // 2) + "\necho long").output == "long\n"


REPORTS = {
    "numbers": "(while :; do sleep .05; echo 0 >&9; done) > /dev/null & sleep 100",
    "a flood": "yes 0 >&9 & sleep 100",
    "words": "(while :; do sleep .05; echo ffffffffffffffffffffffffffffffff 0 >&9; done) > /dev/null & sleep 100",
}


@needs_root
@pytest.mark.parametrize("report", REPORTS.values(), ids=REPORTS)
def test_a_script_cannot_report_for_its_shell(sandbox, report):
    long = "# " + "x" * (MAX_SCRIPT_BYTES - 2)
    assert sandbox.run(report, seconds=1.0).timed_out
    for _ in range(6):
        assert sandbox.run(long).code == 0
    assert sandbox.run("echo 0 >&9; echo x >&9; printf 7 >&9; false").code == 1


@needs_root
def test_a_shell_that_is_busy_when_a_script_comes_ends_at_the_time_limit(sandbox):
    sandbox.run("set -v; exec 2> /srv/seen")
    early = "[[ $(cat /srv/seen) =~ [0-9a-f]{32} ]]; echo $BASH_REMATCH 0 >&9; sleep 100"
    assert sandbox.run(early).code == 0, "a script that reads its own token reports too early"
    late = sandbox.run("# " + "x" * 200_000, seconds=1.0)
    assert (late.timed_out, late.ended) == (True, True)
    assert sandbox.run("echo again").output == "again\n"


IMPOSSIBLE = {"--5": "--5", "-": "-", "- 5": "- 5", "long": "9" * 4400, "0x1": "0x1", "empty": "", "raised": "\u00b2"}


@needs_root
@pytest.mark.parametrize("status", IMPOSSIBLE.values(), ids=IMPOSSIBLE)
def test_a_status_that_no_shell_reports_ends_no_sandbox(sandbox, status):
    sandbox.run("set -v; exec 2> /srv/seen")
    early = f"[[ $(cat /srv/seen) =~ [0-9a-f]{{32}} ]]; echo $BASH_REMATCH '{status}' >&9; sleep 100"
    told = sandbox.run(early, seconds=60.0)
    assert (told.code, told.timed_out) == (None, False)
    assert sandbox.run("[ $(ls -d /srv) = /srv ]", 60.0, alone=True).code == 0, "and the judge finds its answer"


@needs_root
@pytest.mark.parametrize("size", [1, 7, 33, 37, 64, 100])
@pytest.mark.parametrize(("status", "code"), [("7", 7), ("-15", -15), ("9" * 300, None)], ids=["7", "-15", "long"])
def test_a_report_is_read_in_whatever_parts_it_comes(sandbox, size, status, code):
    sandbox.run("set -v; exec 2> /srv/seen")
    early = f'[[ $(cat /srv/seen) =~ [0-9a-f]{{32}} ]]; text="$BASH_REMATCH {status}"'
    parts = f'while [ -n "$text" ]; do printf %s "${{text:0:{size}}}" >&9; text=${{text:{size}}}; sleep .01; done'
    told = sandbox.run(f"{early}; {parts}; echo >&9; sleep 100", seconds=60.0)
    assert (told.code, told.timed_out) == (code, False)


@needs_root
def test_clocks_are_shown_as_one_day(sandbox):
    assert sandbox.run("touch /srv/x; date +%F; ls -l /srv/x | cut -d' ' -f6").output == "2026-01-01\n2026-01-01\n"
    assert "Jan 01, 2026" in sandbox.run("useradd ada; chage -l ada").output


@needs_root
def test_a_sandbox_that_ended_is_named():
    with closing(Sandbox()) as sandbox:
        os.kill(sandbox.pid, signal.SIGKILL)
        os.waitid(os.P_PID, sandbox.pid, os.WEXITED | os.WNOWAIT)
        with pytest.raises(SandboxError, match="the sandbox has ended"):
            sandbox.run("echo")


def asked(*prefix, accounts=True):
    """Answer of ``refusal`` in a process that a command has changed."""
    code = f"from coevo.envs.lifelong.sandbox import refusal; print(refusal({accounts}))"
    return subprocess.run(
        [*prefix, sys.executable, "-P", "-c", code], capture_output=True, text=True, check=True
    ).stdout


@needs_root
def test_where_the_system_refuses_namespaces_one_line_says_so():
    command = 'echo 0 > /proc/sys/user/max_user_namespaces; exec "$@"'
    told = asked("unshare", "--user", "--map-root-user", "bash", "-c", command, "bash")
    assert told.startswith("the system refuses the sandbox (user namespaces: No space left on device): allow ")
    assert told.count("\n") == 1


@needs_root
def test_root_under_another_name_is_refused_since_nothing_limits_its_processes():
    told = asked("unshare", "--user", "--map-user=1000", "--map-group=1000", accounts=False)
    assert "(a limit of processes (RLIMIT_NPROC))" in told


def other_user(code):
    """Output of a program of another user, with the system's own interpreter."""
    root = Path(__file__).parents[3]
    command = [
        "setpriv",
        "--reuid=65534",
        "--regid=65534",
        "--clear-groups",
        "/usr/bin/python3",
        "-B",
        "-P",
        "-c",
        code,
    ]
    paths = {"PYTHONPATH": str(root), "PATH": os.environ["PATH"]}
    return subprocess.run(command, env=paths, cwd="/", capture_output=True, text=True, check=False)


@needs_root
def test_a_user_without_rights_gets_a_sandbox_for_files_and_none_for_accounts():
    told = other_user("from coevo.envs.lifelong.sandbox import refusal; print(refusal(True)); print(refusal(False))")
    if told.returncode:
        pytest.skip("no other interpreter, or its user cannot read this folder")
    first, second = told.stdout.splitlines()
    assert "run as root, or set env.options.kinds=[files]" in first
    assert second == ""
    script = "id -u; f() { f | f & }; f 2> /dev/null; sleep 1; echo alive"
    told = other_user(f"from coevo.envs.lifelong.sandbox import Sandbox; print(Sandbox(False).run({script!r}).output)")
    assert told.stdout.splitlines()[0] == "0"
    assert told.stdout.splitlines()[-2:] == ["alive", ""]
