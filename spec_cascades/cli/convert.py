"""`spec-cascades convert`: a checkpoint in another format."""

import argparse

from spec_cascades.cli import arguments

_DESCRIPTION = """\
Reads a checkpoint of any known format (ours, T5X, Orbax, Hugging Face) and writes it in another.
With --to=t5x and --drafter, one file holds both models, for T5X's InteractiveModel.
"""


def add(commands) -> None:
    """Adds the command."""
    parser = arguments.add_command(
        commands,
        "convert",
        run,
        summary="write a checkpoint in another format",
        description=_DESCRIPTION,
        gin=False,
    )
    parser.add_argument("src", metavar="SRC", help="the checkpoint to read")
    parser.add_argument("dst", metavar="DST", help="the folder to write; must not exist yet")
    parser.add_argument(
        "--to",
        metavar="FORMAT",
        required=True,
        help="model (our model folder), huggingface, orbax (the tree alone) or t5x",
    )
    parser.add_argument("--dtype", metavar="NAME", help="float32, bfloat16 or float16")
    parser.add_argument(
        "--drafter", metavar="DIR", help="for t5x: a second model for the same file"
    )
    add_model_flags(parser)


def add_model_flags(parser: argparse.ArgumentParser) -> None:
    """Adds the flags for checkpoints that do not tell everything."""
    parser.add_argument(
        "--model", metavar="NAME", help="public size, such as flan_t5_base (default: by the shapes)"
    )
    parser.add_argument(
        "--vocabulary",
        metavar="NAME",
        help="of a checkpoint that carries none: 'demo', 'byte', a SentencePiece file, or a folder "
        "that has one",
    )


def run(options: argparse.Namespace) -> int:
    """Converts."""
    from spec_cascades.cli import quiet

    quiet.import_tasks()
    from spec_cascades import checkpoints

    path = checkpoints.convert(
        options.src,
        options.dst,
        to=options.to,
        dtype=options.dtype,
        drafter=options.drafter,
        model=options.model,
        vocabulary=options.vocabulary,
    )
    print(f"written: {path}")
    return 0
