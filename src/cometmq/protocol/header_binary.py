"""The ROCKETMQ binary header.

int16 code | int8 language | int16 version | int32 opaque | int32 flag
int32 + n remark | int32 bytes of all ext entries | entries: int16 + n key, int32 + n value
"""

from __future__ import annotations

import struct

from cometmq.base.errors import LocalProtocolError, RemoteProtocolError
from cometmq.protocol.codes import LanguageCode
from cometmq.protocol.command import BINARY, Body, Command

# code, language, version, opaque, flag, remark length
_HEAD = struct.Struct(">hbhiii")
_INT = struct.Struct(">i")
_SHORT = struct.Struct(">h")

_LANGUAGE_NAMES = {member.value: member.name for member in LanguageCode}
_LANGUAGE_NUMBERS = {member.name: member.value for member in LanguageCode}


def encode_header(command: Command) -> bytes:
    """Raises LocalProtocolError for a code above 32767 (the POP family), which this encoding cannot carry."""
    if not -32768 <= command.code <= 32767:
        raise LocalProtocolError(f"code {command.code} does not fit the binary header; use JSON")
    remark = command.remark.encode() if command.remark else b""
    parts: list[bytes] = []
    for name, value in (command.ext or {}).items():
        key_bytes, value_bytes = name.encode(), value.encode()
        parts += (
            _SHORT.pack(len(key_bytes)),
            key_bytes,
            _INT.pack(len(value_bytes)),
            value_bytes,
        )
    ext = b"".join(parts)
    head = _HEAD.pack(
        command.code,
        _LANGUAGE_NUMBERS.get(command.language, LanguageCode.OTHER.value),
        command.version,
        command.opaque,
        command.flag,
        len(remark),
    )
    return b"".join((head, remark, _INT.pack(len(ext)), ext))


def decode_header(header: bytes | memoryview, body: Body) -> Command:
    """Raises RemoteProtocolError when lengths do not add up or texts are not UTF-8."""
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
        ext: dict[str, str] | None = {} if ext_bytes else None
        ext_end = at + ext_bytes
        while at < ext_end:
            (key_bytes,) = _SHORT.unpack_from(data, at)
            at += 2
            if not 0 <= key_bytes <= ext_end - at - 4:
                raise RemoteProtocolError(f"ext key of {key_bytes} bytes")
            key = data[at : at + key_bytes].decode()
            at += key_bytes
            (value_bytes,) = _INT.unpack_from(data, at)
            at += 4
            if not 0 <= value_bytes <= ext_end - at:
                raise RemoteProtocolError(f"ext value of {value_bytes} bytes")
            # Java reads an empty value back as null, which no handler can tell from an absent key.
            if value_bytes:
                assert ext is not None
                ext[key] = data[at : at + value_bytes].decode()
            at += value_bytes
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
