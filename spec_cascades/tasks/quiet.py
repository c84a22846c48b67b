"""Keeps TensorFlow's start-up messages off the terminal."""

import contextlib
import os
import sys
from collections.abc import Iterator


@contextlib.contextmanager
def native_messages() -> Iterator[None]:
    """Drops what native code writes to standard error.

    TensorFlow announces the processor's features and missing GPUs there while it is imported,
    before any setting of its log level counts. Python's own errors are not affected: they propagate
    as exceptions.
    """
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")  # for what comes after the import
    sys.stderr.flush()
    try:
        saved = os.dup(2)
    except OSError:  # no standard error to keep clean
        yield
        return
    try:
        with open(os.devnull, "wb") as sink:
            os.dup2(sink.fileno(), 2)
        yield
    finally:
        os.dup2(saved, 2)
        os.close(saved)
