"""Keeps the chatter of libraries from the terminal: warnings of ours and errors remain."""

import contextlib
import logging
import os
import sys
import tempfile
import warnings
from collections.abc import Iterator


def quiet() -> None:
    """Shows our own notes; raises the level of chatty libraries, and drops their warnings."""
    logging.basicConfig(format="%(message)s", level=logging.WARNING)
    logging.getLogger("spec_cascades").setLevel(logging.INFO)
    for library in ("absl", "jax", "orbax", "tensorflow"):
        logging.getLogger(library).setLevel(logging.ERROR)
    warnings.filterwarnings("ignore", module=r"(orbax|tensorflow|seqio|google|keras)\.?.*")


def import_tasks() -> None:
    """Imports SeqIO, and TensorFlow with it, without the notes TensorFlow's C++ prints."""
    with _silent_stderr():
        import spec_cascades.tasks  # noqa: F401


@contextlib.contextmanager
def _silent_stderr() -> Iterator[None]:
    """Holds back what is written to file descriptor 2; an exception brings it out."""
    sys.stderr.flush()
    saved = os.dup(2)
    with tempfile.TemporaryFile() as held:
        os.dup2(held.fileno(), 2)
        try:
            yield
        except BaseException:
            held.seek(0)
            os.write(saved, held.read())
            raise
        finally:
            os.dup2(saved, 2)
            os.close(saved)
