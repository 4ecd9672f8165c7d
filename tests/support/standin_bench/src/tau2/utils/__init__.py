import json
from pathlib import Path


def load_file(path):
    return json.loads(Path(path).read_text())
