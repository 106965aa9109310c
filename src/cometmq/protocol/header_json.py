"""The JSON header: ``{"code":..,"extFields":{..},"flag":..,"language":..,"opaque":..,"remark":..,"version":..}``.

Well-formed headers decode straight into a typed struct. Deviations that some clients send (numbers as ext values, a
language by number) take a second, tolerant pass.
"""

from __future__ import annotations

from typing import Any

import msgspec

from cometmq.base.errors import RemoteProtocolError
from cometmq.model.ids import Int32
from cometmq.protocol.codes import LanguageCode
from cometmq.protocol.command import JSON, Body, Command, encodable


class _Header(msgspec.Struct, omit_defaults=True):
    # Alphabetical, as Java writes them. Defaults may only be omitted for fields that Java omits, too.
    code: int = msgspec.UNSET  # type: ignore[assignment]
    extFields: dict[str, str] | None = None
    flag: int = msgspec.UNSET  # type: ignore[assignment]
    language: str = msgspec.UNSET  # type: ignore[assignment]
    opaque: int = msgspec.UNSET  # type: ignore[assignment]
    remark: str | None = None
    serializeTypeCurrentRPC: str = msgspec.UNSET  # type: ignore[assignment]
    version: int = msgspec.UNSET  # type: ignore[assignment]


class _Incoming(msgspec.Struct):
    code: Int32 = 0
    extFields: dict[str, str] | None = None
    flag: Int32 = 0
    language: str = "JAVA"
    opaque: Int32 = 0
    remark: str | None = None
    version: Int32 = 0


_decode = msgspec.json.Decoder(_Incoming).decode
_encode = msgspec.json.Encoder().encode


def encode_header(command: Command) -> bytes:
    header = _Header(
        command.code,
        command.ext,
        command.flag,
        command.language,
        command.opaque,
        command.remark,
        "JSON",
        command.version,
    )
    try:
        return _encode(header)
    except UnicodeEncodeError:
        # A lone surrogate, as in a file name that is not UTF-8. Java writes a question mark for it.
        header.remark = header.remark and encodable(header.remark)
        header.extFields = header.extFields and {
            encodable(key): encodable(value) for key, value in header.extFields.items()
        }
        return _encode(header)


def decode_header(header: bytes | memoryview, body: Body) -> Command:
    """Raises RemoteProtocolError if the header is not a JSON object or holds values that cannot be a header's."""
    try:
        incoming = _decode(header)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        incoming = _tolerant(header)
    return Command(
        incoming.code,
        incoming.extFields,
        body,
        incoming.flag,
        incoming.opaque,
        incoming.remark,
        incoming.language,
        incoming.version,
        JSON,
    )


def _tolerant(header: bytes | memoryview) -> _Incoming:
    try:
        raw = msgspec.json.decode(header)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise RemoteProtocolError(f"header is not JSON: {error}") from None
    if not isinstance(raw, dict):
        raise RemoteProtocolError("header is no JSON object")
    ext = raw.get("extFields")
    if ext is not None and not isinstance(ext, dict):
        raise RemoteProtocolError(f"extFields must be an object, not {type(ext).__name__}")
    try:
        return _Incoming(
            code=_integer(raw.get("code")),
            extFields=None
            if ext is None
            else {key: _text(value) for key, value in ext.items() if value is not None},
            flag=_integer(raw.get("flag")),
            language=_language(raw.get("language")),
            opaque=_integer(raw.get("opaque")),
            remark=None if raw.get("remark") is None else _text(raw["remark"]),
            version=_integer(raw.get("version")),
        )
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise RemoteProtocolError(f"header field is not what it must be: {error}") from None


def _integer(value: Any) -> int:
    if value is None:
        return 0
    number = int(value)
    if not -(1 << 31) <= number < 1 << 31:
        raise ValueError(f"{number} does not fit into 32 bits")
    return number


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return str(value)
    return msgspec.json.encode(value).decode()


def _language(value: Any) -> str:
    if value is None:
        return "JAVA"
    if isinstance(value, str):
        return value
    try:
        return LanguageCode(int(value)).name
    except ValueError:
        return LanguageCode.OTHER.name
