"""Runs scripts as `python SCRIPT ARGUMENTS` would, without importing T5X anew for each.

Reads one job a line from stdin, {"argv": [...], "devices": 4, "log": PATH}, forks, runs the script
as `__main__` on that many virtual CPU devices, and writes its exit status.
"""

import json
import os
import runpy
import sys
import traceback

import t5x_tiny  # noqa: F401 (with it most of what the scripts import)
from t5x import eval, infer, interactive_model  # noqa: A004, F401


def run(argv: list[str], devices: int, log: str) -> int:
    """Runs a script in this process."""
    os.environ["XLA_FLAGS"] = f"--xla_force_host_platform_device_count={devices}"
    output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(output, 1)
    os.dup2(output, 2)
    sys.argv = argv
    try:
        runpy.run_path(argv[0], run_name="__main__")
    except SystemExit as end:
        if isinstance(end.code, str):
            print(end.code, file=sys.stderr)
        return 0 if end.code in (None, 0) else 1
    except BaseException:
        traceback.print_exc()
        return 1
    return 0


for line in sys.stdin:
    job = json.loads(line)
    child = os.fork()
    if not child:
        status = run(**job)
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
