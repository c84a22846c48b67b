"""T5X runs: its scripts in processes of their own, checkpoints written by T5X itself."""

import json
import os
import pathlib
import subprocess
import sys

import pytest

HERE = pathlib.Path(__file__).parent
ROOT = HERE.parent.parent
GIN = ROOT / "gin" / "t5x"


def pytest_collection_modifyitems(items):
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.t5x)


@pytest.fixture(scope="session", autouse=True)
def t5x():
    """T5X, without which all tests of this folder are skipped."""
    reason = "T5X does not import here (docs/t5x.md says how to install it)"
    pytest.importorskip("t5x.utils", reason=reason, exc_type=ImportError)
    return pytest.importorskip("t5x.interactive_model", reason=reason, exc_type=ImportError)


class Scripts:
    """Runs scripts by the process of `script_server.py`, which has imported T5X already."""

    def __init__(self, logs: pathlib.Path):
        self._logs, self._count = logs, 0
        paths = [str(ROOT), str(HERE), os.environ.get("PYTHONPATH", "")]
        self._server = subprocess.Popen(
            [sys.executable, str(HERE / "script_server.py")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            cwd=logs,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(paths), "JAX_PLATFORMS": "cpu"},
        )

    def run(self, *argv: str, devices: int = 1, fails: bool = False) -> str:
        """Runs a script to its end, on virtual devices; returns what it wrote."""
        self._count += 1
        log = self._logs / f"{self._count}.log"
        job = {"argv": list(map(str, argv)), "devices": devices, "log": str(log)}
        self._server.stdin.write(json.dumps(job) + "\n")
        self._server.stdin.flush()
        status = int(self._server.stdout.readline())
        text = log.read_text()
        assert (status != 0) == fails, f"{argv}\n{text[-5000:]}"
        return text

    def close(self):
        self._server.stdin.close()
        self._server.wait()


@pytest.fixture(scope="session")
def scripts(tmp_path_factory):
    scripts = Scripts(tmp_path_factory.mktemp("logs"))
    yield scripts
    scripts.close()


@pytest.fixture(scope="session")
def stored(tmp_path_factory, scripts):
    """Paths of checkpoints that T5X wrote: stored('target', 'scalable', 'orbax')."""
    folder = tmp_path_factory.mktemp("checkpoints")
    scripts.run(HERE / "make_checkpoints.py", folder)

    def path(which, network="t5", kind="legacy"):
        return str(folder / f"{which}_{network}_{kind}" / "checkpoint_7")

    return path
