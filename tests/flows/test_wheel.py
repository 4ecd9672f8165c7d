"""The wheel: it holds coevo alone, and works beside a project with packages of the same names as our folders."""

import re
import shutil
import signal
import subprocess
import sys
import zipfile
from pathlib import Path
from urllib.request import urlopen

import pytest

ROOT = Path(__file__).parents[2]
ROOMS = {"configs", "envs", "flows", "lineage", "memory", "mlflow", "models", "records", "tasks", "utilities"}
SHORT = ("warmstart=null", "iterations=1", "rollout.tasks=2", "rollout.group_size=2", "evaluation.tasks=8")
pytestmark = [pytest.mark.full, pytest.mark.timeout(1800)]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """A wheel of the files that git knows."""
    directory = tmp_path_factory.mktemp("wheel")
    for name in known():
        (directory / "source" / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, directory / "source" / name, follow_symlinks=False)
    build = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--skip-dependency-check"]
    subprocess.run([*build, "--outdir", directory, directory / "source"], check=True, capture_output=True)
    return next(directory.glob("*.whl"))


def known():
    files = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    return subprocess.run(files, cwd=ROOT, check=True, capture_output=True, text=True).stdout.splitlines()


def test_it_holds_the_house_and_nothing_else(wheel):
    shipped = set(zipfile.ZipFile(wheel).namelist())
    about = "-".join(wheel.name.split("-")[:2]) + ".dist-info"
    assert {name.split("/")[0] for name in shipped} == {"coevo", about}
    assert {name.split("/")[1] for name in shipped if name.startswith("coevo/")} == {*ROOMS, "__init__.py", "py.typed"}
    assert zipfile.ZipFile(wheel).read(f"{about}/top_level.txt").split() == [b"coevo"]
    kinds = (".py", ".yaml", ".html", ".css", ".js", ".xz")
    assert {f"coevo/{name}" for name in known() if name.split("/")[0] in ROOMS and name.endswith(kinds)} <= shipped


@pytest.fixture(scope="module")
def light(wheel, tmp_path_factory):
    """The Python of an environment with the wheel and what it needs, without extras."""
    environment = tmp_path_factory.mktemp("light") / "environment"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", environment], check=True)
    python = environment / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--no-compile", wheel]
    subprocess.run(pip, check=True, capture_output=True)
    return python


RETRIEVE = """
import sys
from pathlib import Path
from coevo.configs.bank.retrieval_config import TfidfConfig
from coevo.memory.bank.bank import Bank
from coevo.memory.bank.change import BankChange
from coevo.memory.retrieval.index import Index
from coevo.records.entry import Entry, entry_id

def entry(text):
    return Entry(entry_id("ivy", text), text, "", "", "", "ivy", "train", (), created=1, edited=1)

bank = Bank(Path(sys.argv[1]))
bank.merge(BankChange([entry("clean with sink"), entry("cool with freezer")]))
(hit,) = Index(bank.active(), TfidfConfig(k=1)).search("cool the apple", "ivy")
print(hit.entry.strategy)
assert not {"torch", "prefect", "mlflow", "transformers"} & sys.modules.keys()
"""


def test_without_extras_it_is_small_and_has_bank_environments_and_recipes(light, tmp_path):
    (packages,) = light.parents[1].glob("lib/python*/site-packages")
    assert len(list(packages.glob("*.dist-info"))) <= 60
    assert sum(path.stat().st_size for path in packages.rglob("*") if path.is_file()) <= 650 * 2**20

    def python(*arguments, **options):
        done = subprocess.run([light, *arguments], cwd=tmp_path, capture_output=True, text=True, check=False, **options)
        return done.returncode, done.stdout, done.stderr

    assert python("-c", RETRIEVE, tmp_path / "bank") == (0, "cool with freezer\n", "")
    coevo = light.with_name("coevo")
    for arguments, part in {"envs": "homerules", "recipes": "homerules-coevo-rl", "methods": "replay"}.items():
        code, said, complaint = python(coevo, arguments)
        assert (code, part in said) == (0, True), complaint
    code, said, complaint = python(coevo, "play", "homerules", input="go hall\n" * 40)
    assert code == 0, complaint
    code, said, complaint = python(coevo, "run", "homerules-coevo-rl")
    assert (code, complaint.count("\n")) == (2, 1) and "pip install 'coevo[train]'" in complaint
    code, said, complaint = python("-c", "import coevo; coevo.runs()")
    assert complaint.splitlines()[-1].startswith("coevo.utilities.errors.CoevoError: ") and "coevo[train]" in complaint


@pytest.fixture
def installed(wheel, tmp_path):
    """The ``coevo`` program of an environment with the wheel; what coevo depends on is that of this environment."""
    environment = tmp_path / "environment"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", environment], check=True)
    python = environment / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--no-deps", "--no-index", wheel]
    subprocess.run(pip, check=True, capture_output=True)
    (packages,) = environment.glob("lib/python*/site-packages")
    others = [path for path in sys.path if path.endswith("site-packages")]
    (packages / "others.pth").write_text("\n".join(others) + "\n")
    return python.with_name("coevo")


@pytest.fixture
def project(tmp_path):
    """A directory with packages that have the names of our folders."""
    for name in ROOMS - {"mlflow"}:
        (tmp_path / "project" / name).mkdir(parents=True)
        (tmp_path / "project" / name / "__init__.py").write_text("raise SystemExit('not this one')\n")
    return tmp_path / "project"


@pytest.mark.soak
def test_run_resume_package_and_serve_in_a_project_with_packages_of_these_names(installed, project, monkeypatch):
    for name in ("PYTHONPATH", "PREFECT_API_URL", "MLFLOW_TRACKING_URI", "COEVO_WORKSPACE"):
        monkeypatch.delenv(name, raising=False)

    def coevo(*arguments):
        done = subprocess.run([installed, *arguments], cwd=project, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    directory = [installed.with_name("python"), "-P", "-c", "import coevo; print(coevo.__file__)"]
    assert str(installed.parents[1]) in subprocess.check_output(directory, cwd=project, text=True)
    try:
        coevo("run", "homerules-experience-only", *SHORT, "--name", "mine")
        coevo("resume", "mine", "--iterations", "2")
        assert "household/1" in coevo("package", "mine", "household")
        serving = [installed, "serve", "household/1"]
        with subprocess.Popen(serving, cwd=project, stdout=subprocess.PIPE, text=True) as server:
            try:
                url = re.search(r"http://\S+(?=/invocations)", server.stdout.readline())[0]
                assert urlopen(f"{url}/ping", timeout=60).status == 200
            finally:
                server.send_signal(signal.SIGINT)
    finally:
        coevo("down")
