"""A pushed run whose history is rewritten by whoever owns the remote, with git's own plumbing."""

import hashlib
import json
import os
import re
import subprocess

BUNDLE = "runs/first/lineage.bundle"
PERSON = {f"GIT_{role}_{field}": "x@y" for role in ("AUTHOR", "COMMITTER") for field in ("NAME", "EMAIL")}


class Directory:
    """A remote in a directory."""

    def __init__(self, root):
        self.root = root
        self.address = str(root)

    def read(self, key):
        return (self.root / key).read_bytes()

    def write(self, key, content):
        path = self.root / key
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


class Bucket:
    """A remote in S3."""

    def __init__(self, server, bucket, prefix):
        self._client, self._bucket, self._prefix = server.client(), bucket, prefix
        self.address = f"s3://{bucket}/{prefix}"

    def read(self, key):
        return self._client.get_object(Bucket=self._bucket, Key=f"{self._prefix}/{key}")["Body"].read()

    def write(self, key, content):
        self._client.put_object(Bucket=self._bucket, Key=f"{self._prefix}/{key}", Body=content)


class Forged:
    """The history of the run ``first`` at a remote, to be changed; nothing may touch the directory ``outside``."""

    def __init__(self, remote, scratch, outside):
        self.remote, self.outside, self.root = remote, outside, scratch / "forged"
        self.root.mkdir()
        self.git("init", "--quiet", "--bare", ".")
        (self.root / "bundle").write_bytes(remote.read(BUNDLE))
        self.git("fetch", "--quiet", "bundle", "+refs/*:refs/*")
        self.commits = self.git("rev-list", "--reverse", "refs/heads/main").split()
        self.last = len(self.commits) - 1

    def git(self, *arguments, stdin=b""):
        environment = {**os.environ, **PERSON, "GIT_CONFIG_GLOBAL": os.devnull, "LC_ALL": "C"}
        done = subprocess.run(
            ["git", *arguments], cwd=self.root, env=environment, input=stdin, capture_output=True, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.decode(errors="replace").strip()

    def blob(self, content, kind="blob"):
        content = content.encode() if isinstance(content, str) else content
        return self.git("hash-object", "-w", "--literally", "-t", kind, "--stdin", stdin=content)

    def show(self, path, revision=None):
        commit = self.commits[self.last if revision is None else revision]
        return self.git("cat-file", "blob", f"{commit}:{path}") + "\n"

    def manifest(self, revision=None):
        return json.loads(self.show("manifest.json", revision))

    def put(self, revision=None, mode="100644", **files):
        """Replace or add (``name=text``), or remove (``name=None``), entries of a revision's tree."""
        self.replace({name: None if text is None else (mode, text) for name, text in files.items()}, revision)

    def replace(self, entries, revision=None):
        """The same for {name: (mode, text or hash)}; commits after it get new parents."""
        revision = self.last if revision is None else revision
        rows = self.git("ls-tree", self.commits[revision]).splitlines()
        tree = {row.partition("\t")[2]: (row.split()[0], row.split()[2]) for row in rows}
        for name, entry in entries.items():
            tree.pop(name, None)
            if entry is not None:
                mode, text = entry
                tree[name] = (mode, text if re.fullmatch("[0-9a-f]{40}", text) else self.blob(text))
        self.raw([(mode.lstrip("0"), name, sha) for name, (mode, sha) in sorted(tree.items())], revision)

    def raw(self, rows, revision=None):
        """Give a revision a tree of these rows, as they are."""
        data = b"".join(f"{mode} {name}\0".encode() + bytes.fromhex(sha) for mode, name, sha in rows)
        self.chain(self.blob(data, "tree"), self.last if revision is None else revision)

    def chain(self, tree, revision):
        for number in range(revision, len(self.commits)):
            of = tree if number == revision else f"{self.commits[number]}^{{tree}}"
            parent = [] if number == 0 else ["-p", self.commits[number - 1]]
            self.commits[number] = self.git("commit-tree", self.git("rev-parse", of), *parent, "-m", f"r{number}")
            self.git("update-ref", f"refs/tags/r{number}", self.commits[number])
        self.git("update-ref", "refs/heads/main", self.commits[-1])

    def edit(self, change, revision=None):
        """Change a manifest in place, and write it as coevo does."""
        manifest = self.manifest(revision)
        change(manifest["state"], manifest["observed"])
        text = json.dumps(manifest, sort_keys=True, indent=1, ensure_ascii=False) + "\n"
        self.replace({"manifest.json": ("100644", text)}, revision)

    def point(self, name, content, size, files, **more):
        """Give the last revision an artifact of this content, in manifest and ``.dvc`` file."""
        self.edit(lambda state, _: state["artifacts"].__setitem__(name, content))
        lines = [f"md5: {content}", f"size: {size}", f"nfiles: {files}", "hash: md5", f"path: {more.get('path', name)}"]
        self.replace({f"{name}.dvc": ("100644", "outs:\n- " + "\n  ".join([*lines, *more.get("also", ())]) + "\n")})

    def object(self, content, suffix=""):
        """Put an object into the remote's cache; its name."""
        content = content if isinstance(content, bytes) else json.dumps(content, sort_keys=True).encode()
        oid = hashlib.md5(content).hexdigest() + suffix
        self.remote.write(f"cache/files/md5/{oid[:2]}/{oid[2:]}", content)
        return oid

    def record(self, **fields):
        held = json.loads(self.git("cat-file", "blob", "refs/coevo/run"))
        blob = self.blob(json.dumps(held | fields, sort_keys=True))
        self.git("update-ref", "refs/coevo/run", blob)

    def push(self):
        self.git("bundle", "create", "--quiet", "made", "--all")
        self.remote.write(BUNDLE, (self.root / "made").read_bytes())
