"""A pipeline file into a checked ``Pipeline``. What stands in which key: docs/howto/pipelines.md.

Mistakes are told all at once, each with its line. Nothing is started and nobody is asked: what only Spark or a broker
can know is checked by ``validate``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from cometmq.base.errors import ConfigError, UsageError
from cometmq.spark.pipeline.definition import (
    OUTPUT_MODES,
    SAVE_MODES,
    SINK_FORMATS,
    SOURCE_FORMATS,
    Pipeline,
    Sink,
    Source,
    Transform,
    Trigger,
    Watermark,
)
from cometmq.spark.pipeline.document import Fields, Node, Reader, Text, replace_placeholders
from cometmq.spark.pipeline.file_body import read_body

_ROOT_KEYS: Final = (
    "name",
    "description",
    "parameters",
    "master",
    "spark",
    "pyFiles",
    "checkpoint",
    "trigger",
    "sources",
    "transforms",
    "sinks",
)
_SOURCE_KEYS: Final = ("format", "stream", "options", "schema", "body", "watermark")
_TRANSFORM_KEYS: Final = ("sql", "python", "inputs", "arguments")
_SINK_KEYS: Final = ("from", "format", "mode", "options", "partitionBy", "body")

_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_FUNCTION: Final = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*")
_SPAN: Final = re.compile(r"\d+ (millisecond|second|minute|hour|day)s?")

_NEEDED_OPTIONS: Final = {
    "parquet": "path",
    "delta": "path",
    "iceberg": "table",
    "json": "path",
    "csv": "path",
    "text": "path",
    "orc": "path",
    "rocketmq-log": "path",
}
_FILE_FORMATS: Final = ("parquet", "json", "csv", "text", "orc")
_AS_SOON_AS_POSSIBLE: Final = "0 seconds"


def load(
    path: Path,
    *,
    given: Mapping[str, str] | None = None,
    environment: Mapping[str, str] | None = None,
) -> Pipeline:
    """The pipeline of a file, its parameters filled in with ``given``.

    Raises:
        UsageError: the file cannot be read.
        PipelineFileError: what stands in it cannot be used; all mistakes with their lines.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise UsageError(f"cannot read the pipeline file {path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise UsageError(f"the pipeline file {path} is not UTF-8 text") from None
    return parse(text, file=str(path), given=given or {}, environment=environment or {})


def parse(
    text: str,
    *,
    file: str,
    given: Mapping[str, str] | None = None,
    environment: Mapping[str, str] | None = None,
) -> Pipeline:
    """Like ``load``, of a text; ``file`` is the name that mistakes carry."""
    reader = Reader(file)
    root = reader.fields(reader.parse(text), "the file", _ROOT_KEYS)
    values = _parameters(reader, root, given or {}, environment or {})
    rest = Fields(
        {key: each for key, each in root.values.items() if key != "parameters"},
        root.lines,
        root.line,
    )
    filled = replace_placeholders(rest, _lookup(values, environment or {}), reader.mistake)
    assert isinstance(filled, Fields)
    pipeline = _pipeline(reader, filled)
    reader.finish()
    return pipeline


def _parameters(
    reader: Reader, root: Fields, given: Mapping[str, str], environment: Mapping[str, str]
) -> dict[str, str]:
    """What was given, else the default of the file. One with neither is a mistake."""
    section = reader.fields(root.values.get("parameters"), "parameters")
    values: dict[str, str] = {}
    for name, node in section.values.items():
        default = reader.text(node, f"the default of parameter {name}")
        value = given.get(name, default)
        if name not in given and default is not None:
            # A default may be made of the environment, and of parameters above it.
            filled = replace_placeholders(node, _lookup(values, environment), reader.mistake)
            value = reader.text(filled, name)
        if value is None:
            reader.mistake(
                section.line_of(name),
                f"parameter {name} has no default: give it with --set {name}=VALUE",
            )
        values[name] = value or ""
    for name in given:
        if name not in section.values:
            known = ", ".join(section.values) or "none"
            reader.mistake(
                root.line_of("parameters"),
                f"--set {name}: the file has no such parameter; known: {known}",
            )
    return values


def _lookup(values: Mapping[str, str], environment: Mapping[str, str]) -> Callable[[str], str]:
    def value_of(name: str) -> str:
        if name.startswith("env:"):
            variable, has_default, default = name.removeprefix("env:").partition(":-")
            if variable not in environment:
                if has_default:
                    return default
                raise ConfigError(
                    f"${{{name}}}: the environment has no variable {variable}; set it"
                )
            return environment[variable]
        if name not in values:
            known = ", ".join(values) or "none"
            raise ConfigError(
                f"${{{name}}}: no such parameter; known: {known}. "
                "Add it under parameters, or write $${ for the plain characters"
            )
        return values[name]

    return value_of


def _pipeline(reader: Reader, root: Fields) -> Pipeline:
    sources = {
        name: _source(reader, name, node) for name, node in _named(reader, root, "sources").items()
    }
    transforms: dict[str, Transform] = {}
    for name, node in _named(reader, root, "transforms").items():
        if name in sources:
            reader.mistake(node.line, f"transform {name} has the name of a source; choose another")
        transforms[name] = _transform(reader, name, node, [*sources, *transforms])
    is_stream = any(source.is_stream for source in sources.values())
    sinks = {
        name: _sink(reader, name, node, [*sources, *transforms], is_stream)
        for name, node in _named(reader, root, "sinks").items()
    }
    for section, found in (("sources", sources), ("sinks", sinks)):
        if not found:
            reader.mistake(root.line_of(section), f"the file needs at least one entry in {section}")
    checkpoint = reader.text(root.values.get("checkpoint"), "checkpoint") or None
    lasting = [sink.name for sink in sinks.values() if sink.format != "console"]
    if is_stream and lasting and checkpoint is None:
        reader.mistake(
            root.line_of("checkpoint"),
            f"a stream into {lasting[0]} needs checkpoint: a directory that remembers how far it is",
        )
    return Pipeline(
        file=reader.file,
        name=_name(reader, root),
        description=(reader.text(root.values.get("description"), "description") or "").strip(),
        master=reader.text(root.values.get("master"), "master") or "local[*]",
        settings=_settings(reader, root),
        python_files=reader.texts(root.values.get("pyFiles"), "pyFiles"),
        checkpoint=checkpoint,
        trigger=_trigger(reader, root.values.get("trigger")),
        sources=sources,
        transforms=transforms,
        sinks=sinks,
    )


def _name(reader: Reader, root: Fields) -> str:
    name = reader.required(root, "name", "the file", "it names queries, groups and sinks")
    if name and not re.fullmatch(r"[A-Za-z0-9_-]+", name):
        reader.mistake(
            root.line_of("name"), f"name takes letters, digits, '_' and '-', not {name!r}"
        )
    return name


def _settings(reader: Reader, root: Fields) -> dict[str, str]:
    settings = reader.pairs(root.values.get("spark"), "spark")
    for key in settings:
        if not key.startswith("spark."):
            section = root.values["spark"]
            assert isinstance(section, Fields)
            reader.mistake(
                section.line_of(key), f"settings of Spark begin with 'spark.', not {key!r}"
            )
    return settings


def _named(reader: Reader, root: Fields, section: str) -> dict[str, Node]:
    """The entries of a section, without those whose name Spark could not take for a view."""
    fields = reader.fields(root.values.get(section), section)
    for name in fields.values:
        if not _NAME.fullmatch(name):
            reader.mistake(
                fields.line_of(name),
                f"a name in {section} takes letters, digits and '_', and begins with no digit, not {name!r}",
            )
    return {
        # The line of its name is what a reader looks for, not that of its first key.
        name: _at(node, fields.line_of(name))
        for name, node in fields.values.items()
    }


def _at(node: Node, line: int) -> Node:
    return Fields(node.values, node.lines, line) if isinstance(node, Fields) else node


def _source(reader: Reader, name: str, node: Node) -> Source:
    what = f"source {name}"
    fields = reader.fields(node, what, _SOURCE_KEYS)
    format_name = reader.needed_choice(fields, "format", what, SOURCE_FORMATS)
    options = _options(reader, fields, what, format_name)
    stream = reader.flag(fields.values.get("stream"), f"stream of {what}")
    is_stream = format_name in ("rocketmq", "rate") if stream is None else stream
    if is_stream and format_name in ("delta", "iceberg"):
        reader.mistake(
            fields.line_of("stream"), f"{format_name} cannot be read as a stream; set stream: false"
        )
    schema = reader.text(fields.values.get("schema"), f"schema of {what}")
    if is_stream and format_name in _FILE_FORMATS and format_name != "text" and not schema:
        reader.mistake(
            fields.line, f"{what} needs schema: a stream of files cannot look into files to come"
        )
    body_node = fields.values.get("body")
    if body_node is not None:
        body_node = _at(body_node, fields.line_of("body"))
    body = read_body(reader, body_node, what, format_name, options)
    return Source(
        line=fields.line,
        name=name,
        format=format_name,
        is_stream=is_stream,
        options=options,
        schema=schema,
        body=body,
        watermark=_watermark(reader, fields, what, is_stream),
    )


def _options(reader: Reader, fields: Fields, what: str, format_name: str) -> dict[str, str]:
    options = reader.pairs(fields.values.get("options"), f"options of {what}")
    needed = _NEEDED_OPTIONS.get(format_name)
    if needed and needed not in options:
        reader.mistake(
            fields.line_of("options"), f"{what} of format {format_name} needs options: {needed}"
        )
    return options


def _watermark(reader: Reader, fields: Fields, what: str, is_stream: bool) -> Watermark | None:
    node = fields.values.get("watermark")
    if node is None:
        return None
    owner = f"watermark of {what}"
    part = reader.fields(node, owner, ("column", "delay"))
    column = reader.required(part, "column", owner, "the column with the time of the event")
    delay = reader.required(part, "delay", owner, "how late a row may be, such as 10 minutes")
    if delay and not _SPAN.fullmatch(delay):
        reader.mistake(
            part.line_of("delay"), f"delay is a span such as '10 minutes', not {delay!r}"
        )
    if not is_stream:
        reader.mistake(
            fields.line_of("watermark"), f"{what} is no stream and takes no watermark; remove it"
        )
    return Watermark(line=fields.line_of("watermark"), column=column, delay=delay)


def _transform(reader: Reader, name: str, node: Node, views: list[str]) -> Transform:
    what = f"transform {name}"
    fields = reader.fields(node, what, _TRANSFORM_KEYS)
    sql_node = fields.values.get("sql")
    sql = reader.text(sql_node, f"sql of {what}")
    function = reader.text(fields.values.get("python"), f"python of {what}")
    if bool(sql) == bool(function):
        reader.mistake(
            fields.line, f"{what} needs either sql: a SELECT, or python: package.module:function"
        )
    if function and not _FUNCTION.fullmatch(function):
        reader.mistake(
            fields.line_of("python"),
            f"python of {what} must be package.module:function, not {function!r}",
        )
    inputs = reader.texts(fields.values.get("inputs"), f"inputs of {what}")
    for each in inputs:
        if each not in views:
            reader.mistake(
                fields.line_of("inputs"),
                f"{what} takes {each!r}, which is no source and no transform above it; "
                f"known: {', '.join(views)}",
            )
    if sql and (inputs or "arguments" in fields.values):
        reader.mistake(
            fields.line, f"{what}: inputs and arguments are for python; SQL names its views"
        )
    return Transform(
        line=fields.line,
        name=name,
        sql=sql,
        sql_line=sql_node.text_line if isinstance(sql_node, Text) else fields.line,
        function=function,
        inputs=inputs or tuple(views[-1:]),
        arguments=reader.values(fields.values.get("arguments"), f"arguments of {what}"),
    )


def _sink(reader: Reader, name: str, node: Node, views: list[str], is_stream: bool) -> Sink:
    what = f"sink {name}"
    fields = reader.fields(node, what, _SINK_KEYS)
    format_name = reader.needed_choice(fields, "format", what, SINK_FORMATS)
    view = reader.text(fields.values.get("from"), f"from of {what}") or (views[-1] if views else "")
    if view and view not in views:
        reader.mistake(
            fields.line_of("from"),
            f"{what} takes {view!r}, which is no source and no transform; known: {', '.join(views)}",
        )
    modes = OUTPUT_MODES if is_stream else SAVE_MODES
    mode = reader.choice(fields.values.get("mode"), f"mode of {what}", modes) or "append"
    if is_stream and mode != "append" and format_name in _FILE_FORMATS:
        reader.mistake(
            fields.line_of("mode"),
            f"a stream into {format_name} takes mode append only: rows once written stay. "
            "Use delta with mode complete, or a watermark so that windows close",
        )
    body = reader.choice(fields.values.get("body"), f"body of {what}", ("json",))
    if body and format_name not in ("rocketmq", ""):
        reader.mistake(fields.line_of("body"), "body is for sinks of format rocketmq; remove it")
    partition_by = reader.texts(fields.values.get("partitionBy"), f"partitionBy of {what}")
    if partition_by and format_name in ("rocketmq", "console"):
        reader.mistake(
            fields.line_of("partitionBy"), f"{format_name} takes no partitionBy; remove it"
        )
    return Sink(
        line=fields.line,
        name=name,
        view=view,
        format=format_name,
        mode=mode,
        options=_options(reader, fields, what, format_name),
        partition_by=partition_by,
        is_body_json=body == "json",
    )


def _trigger(reader: Reader, node: Node | None) -> Trigger:
    value = reader.text(node, "trigger")
    if value is None or value == "asap":
        return Trigger(interval=_AS_SOON_AS_POSSIBLE)
    if value == "once":
        return Trigger(interval=None)
    if not _SPAN.fullmatch(value):
        assert node is not None
        reader.mistake(
            node.line, f"trigger is asap, once, or a span such as '10 seconds', not {value!r}"
        )
    return Trigger(interval=value)
