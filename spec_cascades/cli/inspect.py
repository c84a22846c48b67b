"""`spec-cascades inspect`: what a checkpoint is."""

import argparse

from spec_cascades.cli import arguments, convert

_DESCRIPTION = """\
Says what a checkpoint is: format, family, sizes, vocabulary, parameters, and what it pairs with.
Only descriptions are read, no arrays.
"""


def add(commands) -> None:
    """Adds the command."""
    parser = arguments.add_command(
        commands,
        "inspect",
        run,
        summary="say what a checkpoint is and what it pairs with",
        description=_DESCRIPTION,
        gin=False,
    )
    parser.add_argument("path", metavar="PATH", help="the checkpoint")
    parser.add_argument("--pair", metavar="OTHER", help="could the two be target and drafter?")
    convert.add_model_flags(parser)


def run(options: argparse.Namespace) -> int:
    """Prints the description."""
    from spec_cascades.cli import quiet

    quiet.import_tasks()
    from spec_cascades import checkpoints

    print(
        checkpoints.inspect(
            options.path,
            pair=options.pair,
            model=options.model,
            vocabulary=options.vocabulary,
        )
    )
    return 0
