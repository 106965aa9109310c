"""The ROCKETMQ binary header.

int16 code | int8 language | int16 version | int32 opaque | int32 flag
int32 + n remark | int32 bytes of all ext entries | entries: int16 + n key, int32 + n value
"""

from __future__ import annotations

import struct

from cometmq.base.errors import LocalProtocolError, RemoteProtocolError
from cometmq.protocol.codes import LanguageCode
from cometmq.protocol.command import BINARY, Body, Command, encodable

# code, language, version, opaque, flag, remark length
_HEAD = struct.Struct(">hbhiii")
_INT = struct.Struct(">i")
_SHORT = struct.Struct(">h")

_LANGUAGE_NAMES = {member.value: member.name for member in LanguageCode}
_LANGUAGE_NUMBERS = {member.name: member.value for member in LanguageCode}


def encode_header(command: Command) -> bytes:
    """Raises LocalProtocolError for what this encoding cannot carry, such as a code above 32767 (the POP family)."""
    if not -32768 <= command.code <= 32767:
        raise LocalProtocolError(f"code {command.code} does not fit the binary header; use JSON")
    remark, ext = command.remark or "", command.ext or {}
    try:
        try:
            return _encode(command, remark, ext)
        except UnicodeEncodeError:
            pass
        cleaned = {encodable(key): encodable(value) for key, value in ext.items()}
        return _encode(command, encodable(remark), cleaned)
    except struct.error as error:
        raise LocalProtocolError(f"does not fit the binary header: {error}") from None


def _encode(command: Command, remark: str, ext: dict[str, str]) -> bytes:
    remark_bytes = remark.encode()
    parts: list[bytes] = []
    for name, value in ext.items():
        key_bytes, value_bytes = name.encode(), value.encode()
        parts += (
            _SHORT.pack(len(key_bytes)),
            key_bytes,
            _INT.pack(len(value_bytes)),
            value_bytes,
        )
    entries = b"".join(parts)
    head = _HEAD.pack(
        command.code,
        _LANGUAGE_NUMBERS.get(command.language, LanguageCode.OTHER.value),
        command.version,
        command.opaque,
        command.flag,
        len(remark_bytes),
    )
    return b"".join((head, remark_bytes, _INT.pack(len(entries)), entries))


def decode_header(header: bytes | memoryview, body: Body) -> Command:
    """Raises RemoteProtocolError if lengths do not add up or strings are not UTF-8."""
    data = bytes(header)
    end = len(data)
    try:
        code, language, version, opaque, flag, remark_bytes = _HEAD.unpack_from(data, 0)
        at = _HEAD.size
        if not 0 <= remark_bytes <= end - at - 4:
            raise RemoteProtocolError(f"remark of {remark_bytes} bytes in a header of {end}")
        remark = data[at : at + remark_bytes].decode() if remark_bytes else None
        at += remark_bytes
        (ext_bytes,) = _INT.unpack_from(data, at)
        at += 4
        if not 0 <= ext_bytes <= end - at:
            raise RemoteProtocolError(f"ext fields of {ext_bytes} bytes in a header of {end}")
        ext = _entries(data, at, at + ext_bytes) if ext_bytes else None
    except struct.error:
        raise RemoteProtocolError(f"binary header of {end} bytes is cut off") from None
    except UnicodeDecodeError as error:
        raise RemoteProtocolError(
            f"binary header holds a text that is not UTF-8: {error}"
        ) from None
    return Command(
        code,
        ext,
        body,
        flag,
        opaque,
        remark,
        _LANGUAGE_NAMES.get(language, LanguageCode.OTHER.name),
        version,
        BINARY,
    )


def _entries(data: bytes, at: int, end: int) -> dict[str, str]:
    ext: dict[str, str] = {}
    unpack_length = _INT.unpack_from
    while at < end:
        (key_bytes,) = _SHORT.unpack_from(data, at)
        key_at = at + 2
        value_at = key_at + key_bytes + 4
        if key_bytes < 0 or value_at > end:
            raise RemoteProtocolError(f"ext key of {key_bytes} bytes")
        (value_bytes,) = unpack_length(data, value_at - 4)
        at = value_at + value_bytes
        if value_bytes < 0 or at > end:
            raise RemoteProtocolError(f"ext value of {value_bytes} bytes")
        # Java reads an empty value as null; an empty string is what the JSON header would contain.
        ext[data[key_at : value_at - 4].decode()] = data[value_at:at].decode()
    return ext
