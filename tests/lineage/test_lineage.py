"""Commit, read, recover, roll back, on a real repository."""

import json
import os
import shutil
import subprocess
import zlib

import pytest
from support.lineage_driver import Shelf, lineage_in, play, run_in, states

from coevo.lineage.git import Git
from coevo.lineage.objects.cache import Cache
from coevo.lineage.repository import Repository
from coevo.utilities.errors import CoevoError


def weights(directory, revision, into):
    return (lineage_in(directory).artifacts.materialise(revision, "policy", into) / "weights.bin").read_bytes()


def git(run, *arguments):
    return subprocess.run(["git", *arguments], cwd=run.lineage, capture_output=True, text=True, check=True).stdout


def test_a_new_lineage_has_no_revision(directory):
    lineage = lineage_in(directory)
    assert (lineage.history.head(), lineage.history.log()) == (None, [])
    with pytest.raises(CoevoError, match="it has none yet"):
        lineage.history.manifest(0)


def test_one_commit_and_one_tag_a_revision_and_log_and_manifest_agree(directory, run):
    assert git(run, "tag").split() == ["r0", "r1", "r2", "r3"]
    assert git(run, "rev-parse", "r0", "r1", "r2", "r3").split() == git(run, "rev-list", "--reverse", "main").split()
    assert git(run, "status", "--porcelain") == ""
    lineage = lineage_in(directory)
    assert lineage.history.commit_hash(2) == git(run, "rev-parse", "r2").strip()
    assert [manifest.revision for manifest in lineage.history.log()] == [0, 1, 2, 3]
    assert [manifest.revision for manifest in lineage.history.log(after=1)] == [2, 3]
    assert lineage.history.log()[2] == lineage.history.manifest(2)
    assert lineage.history.log()[3] == lineage.history.head()
    with pytest.raises(CoevoError, match=r"revision 4 is not in .*: it has 0 to 3"):
        lineage.history.manifest(4)


def test_what_follows_a_commit_is_the_last_revision_right_after_it_and_nothing_else(directory, run):
    with lineage_in(directory) as lineage:
        commits = lineage.history.commits()
        assert lineage.history.following(commits[2]) == (commits[3], lineage.history.head())
        assert [lineage.history.following(each) for each in (*commits[:2], commits[3], "0" * 40)] == [None] * 4
    git(run, "repack", "-a", "-d", "-q")
    git(run, "pack-refs", "--all")
    assert lineage.history.following(commits[2]) == (commits[3], lineage.history.head())
    git(run, "update-ref", "-d", "refs/heads/main")
    assert lineage.history.following(commits[2]) is None


@pytest.mark.parametrize(
    "stored",
    [b"", b"no stream", zlib.compress(b"blob 1\0x"), zlib.compress(b"commit 9\0short")],
    ids=["empty", "no stream", "another kind", "short"],
)
@pytest.mark.parametrize("damaged", ["main", "main^{tree}", "main:manifest.json"])
def test_nothing_follows_a_commit_where_an_object_is_damaged(directory, run, damaged, stored):
    commits = lineage_in(directory).history.commits()
    name = git(run, "rev-parse", damaged).strip()
    file = run.lineage / ".git" / "objects" / name[:2] / name[2:]
    file.chmod(0o600)
    file.write_bytes(stored)
    assert lineage_in(directory).history.following(commits[2]) is None


def test_what_commit_returns_is_what_is_read_back(directory, run):
    (run.staging / "notes").write_text("a single file")
    with lineage_in(directory) as lineage:
        manifest = lineage.commit(
            {"notes": run.staging / "notes"}, {**states(directory)[-1], "pair": (1, 2)}, {"tables": {}, "run": "first"}
        )
        assert lineage.history.head() == manifest
    assert manifest.state["pair"] == [1, 2]
    assert manifest.observed["timestamp"] > 1.7e12
    assert manifest.artifacts["policy"] == states(directory)[3]["artifacts"]["policy"]
    assert lineage.artifacts.materialise(4, "notes", directory / "notes").read_text() == "a single file"


def test_state_is_equal_in_another_run_of_another_name(directory, run):
    play(directory / "elsewhere", 4)
    assert states(directory / "elsewhere") == states(directory)


def test_a_number_that_is_not_finite_is_named_and_nothing_changes(directory, run):
    staged = run.staging / "policy"
    staged.mkdir()
    with lineage_in(directory) as lineage:
        with pytest.raises(CoevoError, match=r"state\.metrics\.kl = nan"):
            lineage.commit({"policy": staged}, {"metrics": {"kl": float("nan")}}, {})
        assert staged.is_dir()
        assert not lineage.recover(Shelf(run.bank))


def test_old_revisions_keep_their_bytes_and_a_workspace_can_be_moved(directory, run, tmp_path):
    expected = states(directory)
    kept = [weights(directory, revision, directory / f"before {revision}") for revision in range(4)]
    play(directory, 6)
    assert [weights(directory, revision, directory / f"after {revision}") for revision in range(4)] == kept
    assert len(set(kept)) == 4
    directory.rename(tmp_path / "moved")
    play(tmp_path / "moved", 7)
    assert states(tmp_path / "moved")[:4] == expected
    assert weights(tmp_path / "moved", 3, tmp_path / "now") == kept[3]


def test_materialise_needs_no_work_tree_and_leaves_it_alone(directory, run):
    before = git(run, "status", "--porcelain", "--ignored")
    lineage = lineage_in(directory)
    (run.lineage / "policy" / "weights.bin").rename(run.root / "moved away")
    into = lineage.artifacts.materialise(3, "policy", directory / "out")
    assert sorted(path.relative_to(into).as_posix() for path in into.rglob("*")) == [
        "größe", "größe/config 1.json", "weights.bin"
    ]  # fmt: skip
    assert git(run, "status", "--porcelain", "--ignored") == before
    assert not (run.lineage / "policy" / "weights.bin").exists()
    with pytest.raises(CoevoError, match="already exists"):
        lineage.artifacts.materialise(2, "policy", directory / "out")
    with pytest.raises(CoevoError, match="no artifact 'critic': it has episodes, optimizer, policy"):
        lineage.artifacts.materialise(3, "critic", directory / "critic")


def test_an_artifact_that_the_cache_lost_is_one_line(directory, run):
    content = lineage_in(directory).history.head().artifacts["policy"]
    (directory / "cache" / "files" / "md5" / content[:2] / content[2:]).unlink()
    with pytest.raises(CoevoError, match=r"run 'first', revision 3: artifact 'policy': .* is missing") as caught:
        lineage_in(directory).artifacts.materialise(3, "policy", directory / "policy")
    assert "\n" not in str(caught.value)


def test_a_damaged_object_is_replaced_by_the_sound_file_that_is_committed_over_it(directory, run):
    """Another run damaged what this one is about to commit: a file of one artifact, the list of another."""
    made = states(directory)[3]["artifacts"]
    kept = {name: shutil.copytree(run.lineage / name, run.staging / name) for name in ("policy", "optimizer")}
    sound = weights(directory, 3, directory / "before")
    cache = Cache(directory / "cache")
    for stored in (cache.path(cache.files(made["policy"])["weights.bin"]), cache.path(made["optimizer"])):
        half = stored.read_bytes()[:-10]
        stored.unlink()
        stored.write_bytes(half)
        stored.chmod(0o444)
    with lineage_in(directory) as lineage:
        assert lineage.commit(kept, states(directory)[3], {"tables": Shelf(run.bank).versions()}).artifacts == made
        assert not lineage.recover(Shelf(run.bank))
    assert all(cache.problem(oid) is None for oid in cache.objects())
    assert weights(directory, 4, directory / "after") == weights(directory, 3, directory / "again") == sound


def test_an_artifact_is_committed_where_a_clock_set_back_repeats_its_time(directory):
    """As git sees it: size and times of the ``.dvc`` file are what they were, and they are not recent."""
    play(directory, 4)
    run = run_in(directory)
    git(run, "config", "core.trustctime", "false")
    pointer, index = run.lineage / "policy.dvc", run.lineage / ".git" / "index"
    before = pointer.stat()
    os.utime(index, (before.st_mtime + 60, before.st_mtime + 60))
    repository = Repository(run.lineage, directory / "cache")
    weights = run.staging / "policy" / "weights.bin"
    shutil.copytree(run.lineage / "policy", weights.parent)
    content = weights.read_bytes()
    weights.unlink()
    weights.write_bytes(content[::-1])
    made = repository.artifacts.add({"policy": weights.parent})
    os.utime(pointer, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert pointer.stat().st_size == before.st_size
    repository.commit(lineage_in(directory).history.head())
    assert f"md5: {made['policy']}\n" in git(run, "show", "HEAD:policy.dvc")


def test_recovery_says_what_it_mended(directory, run):
    (run.lineage / "manifest.json").write_text("half")
    (run.lineage / "stranger").write_text("x")
    (run.lineage / "policy" / "weights.bin").unlink()
    Shelf(run.bank).write("stats", {"visits": -1})
    git(run, "tag", "--delete", "r1")
    git(run, "tag", "--force", "r2", "r0")
    for lock in ("index.lock", "HEAD.lock", "refs/heads/main.lock"):
        (run.lineage / ".git" / lock).touch()
    (run.lineage / ".dvc" / "tmp").mkdir(exist_ok=True)
    (run.lineage / ".dvc" / "tmp" / "rwlock").write_text(
        f'{{"write": {{"{run.lineage}/policy": {{"pid": {os.getppid()}, "cmd": "dvc add"}}}}, "read": {{}}}}'
    )
    with lineage_in(directory) as lineage:
        recovery = lineage.recover(Shelf(run.bank))
        assert recovery.locks == (".git/HEAD.lock", ".git/index.lock", ".git/refs/heads/main.lock", ".dvc/tmp/rwlock")
        assert recovery.files == ("manifest.json", "stranger")
        assert recovery.tables == ("stats",)
        assert recovery.artifacts == ("policy",)
        assert recovery.tags == ("r1", "r2")
        assert not lineage.recover(Shelf(run.bank))
    play(directory, 5)
    assert lineage_in(directory).history.head().revision == 4


def test_a_table_that_cannot_be_brought_back_is_named(directory, run):
    shelf = Shelf(run.bank)
    version = lineage_in(directory).history.head().versions["stats"]
    shelf.write("stats", {"visits": -1})
    (run.bank / "stats" / f"{version}.json").write_text("{}")
    with (
        lineage_in(directory) as lineage,
        pytest.raises(CoevoError, match="run 'first', revision 3: table stats cannot be"),
    ):
        lineage.recover(shelf)


def test_rollback_is_a_new_revision_with_all_state_of_the_old(directory, run):
    bank = Shelf(run.bank)
    with lineage_in(directory) as lineage:
        back = lineage.rollback(1, bank)
        assert (back.revision, back.parent, back.restored_from, back.iteration) == (4, 3, 1, 1)
        assert bank.hashes() == back.tables == lineage.history.manifest(1).tables
        assert bank.versions() == back.versions
        assert back.artifacts == lineage.history.manifest(1).artifacts
        assert (lineage.artifacts.path("policy") / "weights.bin").read_bytes() == weights(
            directory, 1, directory / "one"
        )
        assert not lineage.recover(bank)
        forward = lineage.rollback(3, bank)
        assert (forward.revision, forward.restored_from, forward.iteration) == (5, 3, 3)
        assert forward.artifacts == lineage.history.manifest(3).artifacts
        assert [manifest.revision for manifest in lineage.history.log()] == list(range(6))
        with pytest.raises(CoevoError, match="revision 9 is not in"):
            lineage.rollback(9, bank)


def test_a_rollback_drops_artifacts_that_came_later(directory, run):
    (run.staging / "critic").mkdir()
    (run.staging / "critic" / "w").write_text("w")
    bank = Shelf(run.bank)
    with lineage_in(directory) as lineage:
        lineage.commit({"critic": run.staging / "critic"}, states(directory)[-1], {"tables": bank.versions()})
        lineage.rollback(3, bank)
        assert not lineage.artifacts.path("critic").exists()
        assert not lineage.recover(bank)
        lineage.rollback(4, bank)
        assert (lineage.artifacts.path("critic") / "w").read_text() == "w"


def test_a_rollback_that_was_not_committed_is_undone(directory, run, monkeypatch):
    before = states(directory)
    with monkeypatch.context() as patch, lineage_in(directory) as lineage:
        patch.setattr("coevo.lineage.lineage.write_manifest", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            lineage.rollback(0, Shelf(run.bank))
    recovery = play(directory, 4)
    assert set(recovery.tables) == {"entries", "stats"}
    assert "policy" in recovery.artifacts
    play(directory, 5)
    assert states(directory)[:4] == before
    assert states(directory)[4]["parent"] == 3


def test_the_surroundings_do_not_matter(directory, tmp_path, monkeypatch):
    hooks = tmp_path / "hooks"
    hooks.mkdir()
    for hook in ("pre-commit", "commit-msg", "reference-transaction", "post-checkout"):
        (hooks / hook).write_text("#!/bin/sh\nexit 1\n")
        (hooks / hook).chmod(0o755)
    home = tmp_path / "home"
    (home / ".config" / "git").mkdir(parents=True)
    (home / ".config" / "git" / "ignore").write_text("*\n")
    (home / ".gitconfig").write_text(
        f"[core]\n\thooksPath = {hooks}\n\tautocrlf = true\n[commit]\n\tgpgSign = true\n[tag]\n\tgpgSign = true\n"
        f"[gpg]\n\tprogram = false\n[init]\n\tdefaultBranch = trunk\n\ttemplateDir = {hooks}\n"
        "[user]\n\tuseConfigOnly = true\n[status]\n\tshowUntrackedFiles = no\n"
    )
    (home / ".config" / "dvc").mkdir(parents=True)
    (home / ".config" / "dvc" / "config").write_text("[core]\n    autostage = true\n[cache]\n    type = symlink\n")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home / ".config"))
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "nowhere"))
    monkeypatch.setenv("GIT_INDEX_FILE", str(tmp_path / "index"))
    monkeypatch.setenv("GIT_AUTHOR_NAME", "")
    play(directory, 2)
    with (run_in(directory).lineage / ".git" / "config").open("a") as own:
        own.write((home / ".gitconfig").read_text())
    play(directory, 3)
    for name in ("GIT_DIR", "GIT_INDEX_FILE"):
        monkeypatch.delenv(name)
    assert git(run_in(directory), "status", "--porcelain") == ""
    assert git(run_in(directory), "log", "--format=%an %ae %D", "-1") == "coevo coevo@localhost HEAD -> main, tag: r2\n"
    assert not (run_in(directory).lineage / "policy" / "weights.bin").is_symlink()


def test_a_repository_around_the_workspace_is_never_touched(directory, monkeypatch):
    subprocess.run(["git", "init", "--quiet", directory], check=True)
    (directory / "mine").write_text("work in progress")
    play(directory, 2)
    (run_in(directory).lineage / ".git").rename(directory / "taken away")
    with pytest.raises(CoevoError, match="not a lineage, or a damaged one"):
        lineage_in(directory)
    assert (directory / "mine").read_text() == "work in progress"
    listed = subprocess.run(["git", "log"], cwd=directory, capture_output=True, text=True, check=False)
    assert "does not have any commits" in listed.stderr


def test_another_branch_adds_no_revision(directory, run):
    git(run, "-c", "user.name=me", "-c", "user.email=me@localhost", "commit", "--allow-empty", "--message", "mine")
    git(run, "branch", "main-2")
    git(run, "reset", "--hard", "r3")
    assert [manifest.revision for manifest in lineage_in(directory).history.log()] == [0, 1, 2, 3]


def test_a_damaged_history_is_an_error_and_nothing_is_removed(directory, run):
    """Without its branch, which is not taken for a new run, and then without its last commit."""
    commit = lineage_in(directory).history.commit_hash(3)
    git(run, "update-ref", "-d", "refs/heads/main")
    with pytest.raises(CoevoError, match="the branch main is lost"):
        lineage_in(directory).recover(Shelf(run.bank))
    git(run, "update-ref", "refs/heads/main", commit)
    (run.lineage / ".git" / "objects" / commit[:2] / commit[2:]).unlink()
    with lineage_in(directory) as lineage, pytest.raises(CoevoError, match="git rev-list failed"):
        lineage.recover(Shelf(run.bank))
    assert (run.lineage / "policy" / "weights.bin").exists()


def test_git_waits_until_all_that_it_wrote_is_on_the_disk(directory, tmp_path, monkeypatch):
    """Objects, index and references, as git counts it itself; whether the disk keeps its word cannot be seen here."""
    told, program = tmp_path / "told", tmp_path / "bin" / "git"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nGIT_TRACE2_EVENT="{told}" exec "{shutil.which("git")}" "$@"\n')
    program.chmod(0o755)
    play(directory, 1)
    monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")
    play(directory, 2)
    events = [json.loads(line) for line in told.read_text().splitlines()]
    command = {event["sid"]: event["name"] for event in events if event["event"] == "cmd_name"}
    flushed = {command[event["sid"]] for event in events if event.get("key") == "fsync/hardware-flush"}
    assert flushed >= {"add", "commit", "update-ref"}


def test_git_that_is_missing_or_fails_is_one_line_that_says_why(directory, run, monkeypatch):
    with monkeypatch.context() as patch, pytest.raises(CoevoError, match="git is not on PATH"):
        patch.setenv("PATH", str(directory))
        lineage_in(directory / "new")
    (run.lineage / ".git" / "index.lock").touch()
    with (
        lineage_in(directory) as lineage,
        pytest.raises(CoevoError, match=r"git add failed in .*index\.lock") as caught,
    ):
        lineage.commit({}, states(directory)[-1], {"tables": {}})
    assert "\n" not in str(caught.value)


def test_artifacts_are_links_that_nobody_can_write_through(directory):
    play(directory, 1)
    stored = run_in(directory).lineage / "policy" / "weights.bin"
    assert stored.stat().st_mode & 0o222 == 0
    content = (directory / "cache").rglob("*")
    assert any(path.is_file() and path.samefile(stored) for path in content)


@pytest.mark.parametrize("after", ["commit", "update-ref"])
def test_an_error_after_the_commit_says_that_the_revision_exists_and_what_completes_it(
    directory, run, monkeypatch, after
):
    """``git commit`` fails after it has moved the branch where the disk has no room for its index."""
    real = Git.__call__

    def fail(git, *arguments, stdin=""):
        if arguments[0] == after == "update-ref":
            raise CoevoError("git update-ref failed: No space left on device: make room")
        done = real(git, *arguments, stdin=stdin)
        if arguments[0] == after:
            raise CoevoError("git commit failed: unable to write new index file: No space left on device: make room")
        return done

    with monkeypatch.context() as patch, lineage_in(directory) as lineage:
        patch.setattr(Git, "__call__", fail)
        with pytest.raises(CoevoError) as caught:
            lineage.commit({}, states(directory)[-1], {"tables": {}})
    assert str(caught.value).startswith("run 'first', revision 4 is committed, but its commit did not end: git ")
    assert str(caught.value).endswith(": make room: then `coevo resume first` completes it")
    with lineage_in(directory) as lineage:
        assert lineage.history.head().revision == 4
        assert lineage.recover(Shelf(run.bank)).tags == ("r4",)


def test_an_error_before_the_commit_says_nothing_of_a_revision(directory, run, monkeypatch):
    with monkeypatch.context() as patch, lineage_in(directory) as lineage:
        patch.setattr("coevo.lineage.git.IDENTITY", {"GIT_AUTHOR_NAME": "", "GIT_COMMITTER_NAME": ""})
        with pytest.raises(CoevoError, match="git commit failed") as caught:
            lineage.commit({}, states(directory)[-1], {"tables": {}})
    assert "is committed" not in str(caught.value)
    assert lineage_in(directory).history.head().revision == 3
