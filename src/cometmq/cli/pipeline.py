"""``cometmq pipeline``: topics through Spark into tables and topics, as described by a small YAML file.

Spark is imported inside the commands: the import takes a second, and it is only installed where pipelines run.
"""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from cometmq.base.errors import UsageError
from cometmq.cli.client_command import Command, exit_codes

if TYPE_CHECKING:
    from cometmq.spark.pipeline.definition import Pipeline


@click.group()
def pipeline() -> None:
    """Run data pipelines on Spark, between topics and tables.

    FILE is a YAML file (docs/howto/pipelines.md), or the name of an included pipeline: see `cometmq pipeline list`.
    """


def _file_options(command: Command) -> Command:
    options = [
        click.argument("file"),
        click.option(
            "--set",
            "given",
            multiple=True,
            metavar="NAME=VALUE",
            help="A parameter of the file; may be repeated.",
        ),
        click.option("--master", help="Where Spark runs; overrides the file."),
    ]
    for option in reversed(options):
        command = option(command)
    return command


@pipeline.command("list")
def list_pipelines() -> None:
    """List the included pipelines.

    \b
    Exit code: 0 listed; 2 the packages of cometmq[spark] are missing.

    \b
    Example:
      cometmq pipeline list
    """
    with exit_codes("cometmq pipeline list"):
        _need_spark()
        from cometmq.spark.pipeline.shipped import description_of, shipped

        for name, path in shipped().items():
            click.echo(f"{name:18} {description_of(path)}")


@pipeline.command()
@click.argument("file")
def show(file: str) -> None:
    """Print the file of an included pipeline, to copy and change.

    \b
    Exit code: 0 printed; 2 there is no such pipeline.

    \b
    Example:
      cometmq pipeline show archive > my-pipeline.yaml
    """
    with exit_codes("cometmq pipeline show"):
        _need_spark()
        from cometmq.spark.pipeline.shipped import find

        click.echo(find(file).read_text(encoding="utf-8"), nl=False)


@pipeline.command()
@_file_options
@click.option(
    "--no-spark", is_flag=True, help="Check only what does not need Spark; saves seconds."
)
def validate(*, file: str, given: tuple[str, ...], master: str | None, no_spark: bool) -> None:
    """Check a file: keys, options, schemas, SQL and functions. No data is read or written.

    \b
    Exit code: 0 it can be run; 2 it cannot, each mistake is printed with its line.

    \b
    Example:
      cometmq pipeline validate my-pipeline.yaml
    """
    with exit_codes("cometmq pipeline validate"):
        definition = load_pipeline(file, given, master)
        if not no_spark:
            _analyse(definition)
        click.echo(f"{definition.file}: good")


@pipeline.command()
@_file_options
@click.option("--plan", "has_plan", is_flag=True, help="Also show Spark's plan of each query.")
def explain(*, file: str, given: tuple[str, ...], master: str | None, has_plan: bool) -> None:
    """Show what a pipeline reads, does, writes and guarantees. Secrets are not shown.

    \b
    Exit code: 0 shown; 2 a mistake in the file.

    \b
    Example:
      cometmq pipeline explain archive --set topic=Orders
    """
    with exit_codes("cometmq pipeline explain"):
        definition = load_pipeline(file, given, master)
        from cometmq.spark.pipeline.explain import explain as explain_pipeline

        click.echo(explain_pipeline(definition))
        if has_plan:
            for name, plan in _analyse(definition).items():
                click.echo(f"\nplan of {name}\n{plan}")


@pipeline.command()
@_file_options
@click.option("--once", "is_once", is_flag=True, help="Process what is there now, then exit.")
@click.option(
    "-q", "--quiet", "is_quiet", is_flag=True, help="Print nothing but errors and results."
)
@click.option(
    "--metrics-port",
    type=click.IntRange(0, 65535),
    help="Serve metrics for Prometheus at this port; 0 takes any free one.",
)
@click.option(
    "--metrics-host",
    default="127.0.0.1",
    show_default=True,
    help="Where that port listens. Whoever reaches it may read names and figures.",
)
def run(
    *,
    file: str,
    given: tuple[str, ...],
    master: str | None,
    is_once: bool,
    is_quiet: bool,
    metrics_port: int | None,
    metrics_host: str,
) -> None:
    """Run a pipeline until it is done, or until Ctrl-C.

    The next run continues where this one ended, whatever ended it: the file's checkpoint remembers the progress.

    \b
    Exit code: 0 done, or stopped by Ctrl-C; 1 a query failed; 2 a mistake in the file.

    \b
    Examples:
      cometmq pipeline run archive --once --set topic=Orders
      cometmq pipeline run my-pipeline.yaml
    """
    with exit_codes("cometmq pipeline run", when_interrupted=0):
        definition = load_pipeline(file, given, master)
        from cometmq.spark.pipeline.progress import Terminal
        from cometmq.spark.pipeline.run import run as run_pipeline

        terminal = Terminal(sys.stderr, is_quiet=is_quiet)
        lines = run_pipeline(
            definition,
            is_once=is_once,
            terminal=terminal,
            metrics_port=metrics_port,
            metrics_host=metrics_host,
        )
        for line in lines:
            click.echo(line)


def _need_spark() -> None:
    """Raises a UsageError that names the packages to install."""
    from cometmq.spark.pipeline.session import check_installed

    check_installed()


def load_pipeline(file: str, given: tuple[str, ...], master: str | None) -> Pipeline:
    """A pipeline file, or an included one, with parameters as ``NAME=VALUE``.

    Raises:
        UsageError: the packages that pipelines need are not installed, or something in the file or ``given`` is wrong.
    """
    _need_spark()
    from cometmq.spark.pipeline.file import load
    from cometmq.spark.pipeline.shipped import find

    values: dict[str, str] = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not equals:
            raise UsageError(f"--set takes NAME=VALUE, not {text!r}")
        values[name] = value
    path: Path = find(file)
    definition = load(path, given=values, environment=os.environ)
    return replace(definition, master=master) if master else definition


def _analyse(definition: Pipeline) -> dict[str, str]:
    """Spark's plans by query. Raises an error for what does not fit together."""
    from cometmq.spark.pipeline.explain import plan_of
    from cometmq.spark.pipeline.run import analysed
    from cometmq.spark.pipeline.session import spark_session

    with spark_session(
        definition.name,
        master=definition.master,
        settings=definition.settings,
        python_files=definition.python_files,
    ) as spark:
        return {name: plan_of(frame) for name, frame in analysed(spark, definition).items()}
