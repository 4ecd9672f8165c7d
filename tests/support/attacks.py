"""Attacks by whoever owns a remote: each is given a forged history, and changes it; the words that the refusal has."""

import subprocess

MD5 = "0" * 32


def pointed(path="policy", also=()):
    """Attack by a pointer to the policy at another path, ``{outside}`` included, or with further lines."""
    return lambda it: it.point(
        "policy", it.manifest()["state"]["artifacts"]["policy"], 11, 1, path=path.format(outside=it.outside), also=also
    )


def edited(change, **where):
    """Attack by a change of the state and the observations of a manifest."""
    return lambda it: it.edit(change, **where)


def link_and_pointer_through_it(it):
    it.replace({"way": ("120000", str(it.outside))})
    it.point("policy", it.manifest()["state"]["artifacts"]["policy"], 11, 1, path="way/precious")


def pointer_of_another_content(it):
    it.point("policy", f"{MD5}.dir", 11, 1)
    it.edit(lambda state, _: state["artifacts"].update(policy=f"{'1' * 32}.dir"))


def configuration_of_dvc(it):
    files = "".join(f"100644 blob {it.blob(text)}\t{name}\n" for name, text in _dvc(it))
    it.replace({".dvc": ("40000", it.git("mktree", stdin=files.encode()))})


def _dvc(it):
    yield ".gitignore", it.show(".dvc/.gitignore")
    yield "config", it.show(".dvc/config").replace("../../../../cache", str(it.outside))


def folder_of_hooks(it):
    hook = it.git("mktree", stdin=f"100755 blob {it.blob('#!/bin/sh')}\tpost-checkout\n".encode())
    it.replace({"hooks": ("40000", hook)})


def repository_in_the_tree(it):
    config = it.git("mktree", stdin=f"100644 blob {it.blob('[core]')}\tconfig\n".encode())
    it.replace({".git": ("40000", config)})


def name_twice(it):
    blob = it.blob(it.show("manifest.json"))
    it.raw([("100644", "manifest.json", blob), ("100644", "manifest.json", blob)])


def merge(it):
    other = it.git("commit-tree", f"{it.commits[0]}^{{tree}}", "-m", "other")
    made = it.git("commit-tree", f"{it.commits[-1]}^{{tree}}", "-p", it.commits[-2], "-p", other, "-m", "merge")
    it.git("update-ref", "refs/heads/main", made)
    it.git("update-ref", f"refs/tags/r{it.last}", made)


def manifest_of_600_megabytes(it):
    size = "core.bigFileThreshold=1m"
    it.git("config", *size.split("="))
    zeros = subprocess.Popen(["head", "-c", "600000000", "/dev/zero"], stdout=subprocess.PIPE)
    command = ["git", "hash-object", "-w", "--stdin"]
    blob = subprocess.run(command, cwd=it.root, stdin=zeros.stdout, capture_output=True, text=True, check=True)
    zeros.stdout.close()
    zeros.wait()
    it.replace({"manifest.json": ("100644", blob.stdout.strip())})


def no_bundle(it):
    it.push = lambda: it.remote.write("runs/first/lineage.bundle", b"# v3 git bundle\n@filter=blob:none\n\nPACK")


def bundle_with_a_reference_upwards(it):
    def push():
        real = it.git("bundle", "create", "--quiet", "made", "--all") or (it.root / "made").read_bytes()
        it.remote.write("runs/first/lineage.bundle", real.replace(b"refs/tags/r0", b"refs/../../r", 1))

    it.push = push


def bundle_of_too_many_objects(it):
    def push():
        head = f"# v2 git bundle\n{it.commits[-1]} refs/heads/main\n{it.commits[-1]} refs/coevo/run\n\n".encode()
        it.remote.write("runs/first/lineage.bundle", head + b"PACK\0\0\0\x02\xff\xff\xff\xff" + b"x" * 100)

    it.push = push


HISTORY = {
    "link in the tree": (
        lambda it: it.replace({"evil.dvc": ("120000", f"{it.outside}/precious")}),
        "'evil.dvc' with mode 120000",
    ),
    "link and pointer through it": (link_and_pointer_through_it, "'way' with mode 120000"),
    "link in an old revision": (
        lambda it: it.replace({"way": ("120000", str(it.outside))}, revision=1),
        "revision 1: its tree holds 'way'",
    ),
    "pointer to an absolute path": (pointed(path="{outside}/precious"), "policy.dvc is not as coevo writes it"),
    "pointer upwards": (pointed(path="../../../../outside/precious"), "policy.dvc is not as coevo writes it"),
    "pointer to another artifact": (pointed(path="episodes"), "policy.dvc names the path 'episodes'"),
    "pointer with one more field": (pointed(also=["remote: elsewhere"]), "policy.dvc is not as coevo writes it"),
    "pointer of another content": (pointer_of_another_content, "policy.dvc does not name the policy of its manifest"),
    "pointer without an artifact": (
        lambda it: it.replace({"more.dvc": ("100644", it.show("policy.dvc").replace("path: policy", "path: more"))}),
        "the artifact 'more'",
    ),
    "artifact with an absolute name": (
        lambda it: it.edit(lambda state, _: state["artifacts"].__setitem__(str(it.outside), f"{MD5}.dir")),
        "outside'",
    ),
    "artifact upwards": (
        edited(lambda state, _: state["artifacts"].__setitem__("../../../../outside", f"{MD5}.dir")),
        "the artifact '../../../../outside'",
    ),
    "artifact that is a number": (
        edited(lambda state, _: state["artifacts"].update(policy=7)),
        "policy.dvc does not name the policy",
    ),
    "artifacts that are a list": (edited(lambda state, _: state.update(artifacts=["policy"])), "names no artifacts"),
    "executable": (
        lambda it: it.replace({"policy.dvc": ("100755", it.show("policy.dvc"))}),
        "'policy.dvc' with mode 100755",
    ),
    "attributes": (lambda it: it.replace({".gitattributes": ("100644", "* filter=evil\n")}), "'.gitattributes'"),
    "submodule": (lambda it: it.replace({"policy": ("160000", it.commits[0])}), "'policy' with mode 160000"),
    "stage of dvc": (
        lambda it: it.replace(
            {"dvc.yaml": ("100644", f"stages:\n  a:\n    cmd: touch {it.outside}/run\n    outs: [{it.outside}]\n")}
        ),
        "'dvc.yaml'",
    ),
    "configuration of dvc": (configuration_of_dvc, ".dvc is not as coevo writes it"),
    "rules of what git tracks": (
        lambda it: it.replace({".gitignore": ("100644", it.show(".gitignore") + "!/*\n")}),
        ".gitignore is not as coevo writes it",
    ),
    "folder of hooks": (folder_of_hooks, "'hooks' with mode 40000"),
    "repository in the tree": (repository_in_the_tree, "'.git' with mode 40000"),
    "name upwards": (
        lambda it: it.replace({"..": ("40000", it.git("rev-parse", f"{it.commits[0]}^{{tree}}"))}),
        "'..' with mode 40000",
    ),
    "name twice": (name_twice, "is refused"),
    "manifest that is not a number": (
        edited(lambda state, _: state["metrics"].update(x=float("nan"))),
        "its manifest is not as coevo writes it",
    ),
    "manifest with a key twice": (
        lambda it: it.put(
            **{"manifest.json": it.show("manifest.json").replace('"state": {', '"state": {\n  "revision": 1,', 1)}
        ),
        "its manifest is not as coevo writes it",
    ),
    "manifest nested without end": (
        lambda it: it.put(**{"manifest.json": "[" * 100_000 + "]" * 100_000}),
        "its manifest is not as coevo writes it",
    ),
    "manifest with an unknown field": (edited(lambda state, _: state.update(evil=1)), "'state.evil'"),
    "revision of another number": (edited(lambda state, _: state.update(revision=7)), "its manifest says revision 7"),
    "restored from the future": (edited(lambda state, _: state.update(restored_from=99)), "restored from revision 99"),
    "table upwards": (
        lambda it: it.edit(
            lambda state, seen: (state["tables"].update({"../x": "0"}), seen["tables"].update({"../x": 1}))
        ),
        "'state.tables",
    ),
    "table without a version": (edited(lambda _, seen: seen["tables"].pop("entries")), "names no version of entries"),
    "configuration that is none": (edited(lambda state, _: state.update(config={})), "its configuration"),
    "old configuration that is none": (
        edited(lambda state, _: state["config"].update(seed="x"), revision=1),
        "revision 1: its configuration",
    ),
    "merge": (merge, "does not have the one before it as its only parent"),
    "another branch": (lambda it: it.git("update-ref", "refs/heads/evil", it.commits[0]), "'refs/heads/evil'"),
    "replacement of a commit": (
        lambda it: it.git("update-ref", f"refs/replace/{it.commits[1]}", it.commits[0]),
        "'refs/replace/",
    ),
    "tag with a message": (
        lambda it: it.git("tag", "-a", "-m", "x", "best", it.commits[0]),
        "an object of the kind tag",
    ),
    "tag on a blob": (
        lambda it: it.git("update-ref", "refs/tags/best", it.blob("x")),
        "refs/tags/best is on no revision",
    ),
    "tag off the line": (
        lambda it: it.git(
            "update-ref", "refs/tags/best", it.git("commit-tree", f"{it.commits[0]}^{{tree}}", "-m", "other")
        ),
        "refs/tags/best is on no revision",
    ),
    "tag of an odd name": (lambda it: it.git("update-ref", "refs/tags/a/b", it.commits[0]), "'refs/tags/a/b'"),
    "tag on another revision": (
        lambda it: it.git("update-ref", "refs/tags/r1", it.commits[0]),
        "refs/tags/r1 is on another commit",
    ),
    "kept and dropped": (
        lambda it: it.git("update-ref", "refs/dropped/r1", it.commits[1]),
        "r1 is on another commit than revision 1, or there twice",
    ),
    "created that is no number": (lambda it: it.record(created="soon"), "its record is not as coevo writes it"),
    "created with more lines": (lambda it: it.record(created="1\n2\n"), "its record is not as coevo writes it"),
    "record with one more field": (lambda it: it.record(hook="x"), "its record is not as coevo writes it"),
    "record without a configuration": (lambda it: it.record(config={}), "the configuration of its record"),
    "bank elsewhere": (lambda it: it.record(bank="../../../../outside"), "its record is not as coevo writes it"),
    "no bundle": (no_bundle, "not a git bundle of version 2"),
    "bundle with a reference upwards": (bundle_with_a_reference_upwards, "'refs/../../r'"),
    "bundle of too many objects": (bundle_of_too_many_objects, "objects"),
}
"""Attacks by name, with the words of the refusal; nothing but the bundle is read."""
