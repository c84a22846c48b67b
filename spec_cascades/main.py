"""The command line, `spec-cascades COMMAND`; `spec-cascades --help` lists the commands.

Also `python -m spec_cascades.main`. Errors are one line, `error: ...`, with exit code 2.
"""

import os
import sys
from collections.abc import Sequence

# TensorFlow, which SeqIO reads data with, greets users with pages of notes otherwise.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("GRPC_VERBOSITY", "ERROR")


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command.

    Args:
        argv: arguments without the program's name; those of the process if None.

    Returns:
        exit code: 0, 2 for what the user can put right, 130 if interrupted.
    """
    from spec_cascades.cli import arguments, quiet

    try:
        options = arguments.parse(sys.argv[1:] if argv is None else argv)
        quiet.quiet()
        return options.run(options) or 0
    except (ValueError, OSError) as error:
        if os.environ.get("SPEC_CASCADES_TRACEBACK"):
            raise
        print(f"error: {_one_line(error)}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("interrupted; start the same command again to go on", file=sys.stderr)
        return 130


def _one_line(error: Exception) -> str:
    if isinstance(error, OSError) and error.filename and error.strerror:
        return f"{error.filename}: {error.strerror}"
    return " ".join(str(error).split()) or type(error).__name__


if __name__ == "__main__":
    sys.exit(main())
