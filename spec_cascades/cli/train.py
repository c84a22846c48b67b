"""`spec-cascades train` and `spec-cascades distill`."""

import argparse

from spec_cascades.cli import arguments

_TARGET = arguments.Flag("target", "DIR", str, "checkpoint of the model to imitate")
_SHARED = (
    arguments.Flag("output_dir", "DIR", str, "the run's folder"),
    arguments.Flag("task", "NAME", str, "SeqIO task or mixture"),
    arguments.Flag("steps", "N", int, "optimizer steps"),
    arguments.Flag("batch_size", "N", int, "examples a step (default: 128)"),
    arguments.Flag("seed", "N", int, "of initialisation and data order (default: 0)"),
)
_FLAGS = {"train": _SHARED, "distill": (_TARGET, *_SHARED)}
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
        arguments.add_flags(parser, _FLAGS[name])
        arguments.add_file_task(parser)


def run(options: argparse.Namespace) -> int:
    """Trains, and prints where the model is."""
    from spec_cascades import training
    from spec_cascades.cli import gin_utils
    from spec_cascades.training import distillation

    flags = _FLAGS[options.command]
    lines = arguments.bindings(options, options.command, flags)
    arguments.prepare(options, options.gin_file, lines, flags)
    job = {"train": training.train, "distill": distillation.distill}[options.command]
    path = job(gin_utils.call(options.command))
    print(f"model: {path}")
    return 0
