"""A sweep that is really killed, and started again."""

import os
import signal
import subprocess
import sys
import time

import pytest
import tiny


def command(home, output):
    flags = {
        "target": home / "target",
        "drafter": home / "drafter",
        "output_dir": output,
        "task": "mine",
        "test_file": home / "data.jsonl",
        "methods": "target,token_v3",
        "alphas": "0.1,0.3,0.5,0.7,0.9",
        "gammas": 2,
        "batch_size": 5,
        "max_decode_length": tiny.LENGTH,
    }
    return [sys.executable, "-m", "spec_cascades.main", "evaluate"] + [
        f"--{name}={value}" for name, value in flags.items()
    ]


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    home = tmp_path_factory.mktemp("kill")
    tiny.make_pair(home)
    tiny.make_data(home / "data.jsonl")
    return home


def test_killed_and_started_again(home, tmp_path):
    environment = os.environ | {"XLA_FLAGS": "", "JAX_COMPILATION_CACHE_DIR": str(home / "cache")}
    results = tmp_path / "results.jsonl"
    process = subprocess.Popen(
        command(home, tmp_path), env=environment, stderr=subprocess.PIPE, text=True
    )
    while process.poll() is None and not (results.exists() and results.stat().st_size):
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    first = results.read_bytes()
    assert first and process.returncode == -signal.SIGKILL, "finished before it could be killed"

    again = subprocess.run(command(home, tmp_path), env=environment, capture_output=True, text=True)
    assert again.returncode == 0, again.stderr
    whole = results.read_bytes()
    kept = first[: first.rfind(b"\n") + 1]
    assert whole.startswith(kept) and len(whole.splitlines()) == 6
    for name in ("summary.csv", "tradeoff.png", "tradeoff.svg", "report.html", "config.gin"):
        assert (tmp_path / name).stat().st_size > 0
    assert "evaluate.max_decode_length = 12" in (tmp_path / "config.gin").read_text()
    assert "token_v3  alpha 0.9" in again.stdout and "tradeoff.png" in again.stdout
    assert "Traceback" not in again.stderr and "TensorFlow" not in again.stderr
