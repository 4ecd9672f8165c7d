"""Debian's Postgres on a free loopback port, with the files of ``infra/postgres`` and a password of its own."""

import os
import pwd
import secrets
import shutil
import subprocess
import tempfile
from pathlib import Path

from support.runs import ROOT

from coevo.utilities.local_http import free_port

FILES = ROOT / "infra" / "postgres"
DEBIAN = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
SECONDS = "120"
"""For a start or an end; the machine may be busy with other tests."""


class Postgres:
    """Started at once; ``environment`` leads Prefect's and MLflow's servers to it."""

    def __init__(self):
        self._pg_ctl, initdb = (program(name) for name in ("pg_ctl", "initdb"))
        self.folder = Path(tempfile.mkdtemp(prefix="postgres-", dir="/tmp"))  # pytest's own is closed to other users
        self.password, self.port, self.log = secrets.token_hex(12), free_port(), self.folder / "log"
        file = self.folder / "password"
        file.write_text(self.password)
        for path in (self.folder, file) if os.geteuid() == 0 else ():
            owner = pwd.getpwnam("postgres")
            os.chown(path, owner.pw_uid, owner.pw_gid)
        self._run(initdb, "-D", self._data, "-U", "coevo", f"--pwfile={file}", "-A", "scram-sha-256", "--no-sync")
        options = f"-p {self.port} -k '' -c config_file={self._readable('postgresql.conf')}"
        self._options = f"{options} -c hba_file={self._readable('pg_hba.conf')} -c fsync=off"
        self.start()
        for line in (FILES / "databases.sql").read_text().splitlines():
            if not line.startswith("--"):
                self.execute(line, "postgres")

    def start(self):
        self._run(self._pg_ctl, "start", "-w", "-t", SECONDS, "-D", self._data, "-l", self.log, "-o", self._options)

    def stop(self):
        self._run(self._pg_ctl, "stop", "-w", "-t", SECONDS, "-m", "immediate", "-D", self._data)

    def remove(self):
        self.stop()
        shutil.rmtree(self.folder)

    def url(self, database, driver="postgresql"):
        return f"{driver}://coevo:{self.password}@127.0.0.1:{self.port}/{database}"

    @property
    def environment(self):
        return {
            "PREFECT_API_DATABASE_CONNECTION_URL": self.url("prefect", "postgresql+asyncpg"),
            "MLFLOW_TRACKING_URI": self.url("mlflow"),
        }

    def execute(self, statement, database):
        """Rows of a statement; none where it has none."""
        import psycopg2

        connection = psycopg2.connect(self.url(database))
        connection.autocommit = True
        try:
            cursor = connection.cursor()
            cursor.execute(statement)
            return cursor.fetchall() if cursor.description else []
        finally:
            connection.close()

    @property
    def _data(self):
        return self.folder / "data"

    def _readable(self, name):
        """A copy of a file of the project that Postgres' user may read."""
        copy = self.folder / name
        shutil.copyfile(FILES / name, copy)
        copy.chmod(0o644)
        return copy

    def _run(self, *command):
        user = ["runuser", "-u", "postgres", "--"] if os.geteuid() == 0 else []
        done = subprocess.run(
            [*user, *map(str, command)],
            cwd=self.folder, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr


def program(name):
    """A program of Postgres, which Debian keeps off the path."""
    found = shutil.which(name, path=os.pathsep.join([os.environ["PATH"], *map(str, DEBIAN)]))
    assert found is not None, f"no {name} of Postgres: make postgres"
    return found
