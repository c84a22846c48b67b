"""`spec-cascades train` and `spec-cascades distill`."""

import argparse

from spec_cascades.cli import arguments

_FLAGS = ("output_dir", "task", "target", "steps", "batch_size", "seed")
_DESCRIPTIONS = {
    "train": "Trains a T5 on a SeqIO task, and writes a model folder, OUTPUT_DIR/model.",
    "distill": "Trains a T5 drafter to imitate a target, and writes a model folder, "
    "OUTPUT_DIR/model.",
}


def add(commands) -> None:
    """Adds both commands."""
    for name, description in _DESCRIPTIONS.items():
        parser = arguments.add_command(
            commands,
            name,
            run,
            summary=description.split(",")[0],
            description=description
            + "\nSizes, schedule and everything else are gin bindings of "
            + f"`{name}`.\nKilled and started again, it resumes from its last checkpoint.",
            gin=True,
        )
        parser.add_argument("--output_dir", metavar="DIR", help="the run's folder")
        parser.add_argument("--task", metavar="NAME", help="SeqIO task or mixture")
        if name == "distill":
            parser.add_argument("--target", metavar="DIR", help="folder of the model to imitate")
        parser.add_argument("--steps", metavar="N", type=int, help="optimizer steps")
        parser.add_argument("--batch_size", metavar="N", type=int, help="examples a step")
        parser.add_argument(
            "--seed", metavar="N", type=int, help="of initialisation and data order"
        )
        arguments.add_file_task(parser)


def run(options: argparse.Namespace) -> int:
    """Trains, and prints where the model is."""
    from spec_cascades import distillation, gin_utils, training

    flags = [flag for flag in _FLAGS if hasattr(options, flag)]
    lines = arguments.bindings(options, options.command, flags)
    arguments.parse_gin(options, options.gin_file, lines)
    job = {"train": training.train, "distill": distillation.distill}[options.command]
    path = job(gin_utils.call(options.command, flags=flags))
    print(f"model: {path}")
    return 0
