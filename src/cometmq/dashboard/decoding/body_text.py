"""A body as text: JSON, MessagePack, Avro, plain text or hex, whichever it is."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from cometmq.dashboard.bodies.messages import BodyView
from cometmq.dashboard.decoding.masks import MASK, Masks
from cometmq.dashboard.decoding.schemas import AVRO, PROTOBUF, Decode, NotThat
from cometmq.dashboard.problems import bad_request

TEXT_CHARS_MAX: Final = 64 * 1024
"""Shown; the rest is behind `…/body`."""
DECODED_BYTES_MAX: Final = 1024 * 1024
"""Larger bodies are shown as the beginning of their text or bytes."""
PREVIEW_CHARS: Final = 120
HEX_BYTES: Final = 4096
_AVRO_FILE: Final = b"Obj\x01"
_MESSAGEPACK_FIRST: Final = frozenset(range(0x80, 0xA0)) | {0xDC, 0xDD, 0xDE, 0xDF}
"""Of a map or an array. What begins otherwise is more likely something else."""

EMPTY, JSON, MESSAGEPACK, TEXT, HEX = "empty", "json", "messagepack", "text", "hex"


class Bodies:
    """``view`` shows a body. With masks, only what can be decoded is shown, so that nothing slips through as hex."""

    def __init__(
        self, masks: Masks, schemas: Mapping[str, tuple[str, Decode]] | None = None
    ) -> None:
        self.masks = masks
        self._schemas = schemas or {}

    def view(self, body: bytes, wanted: str = "", topic: str = "") -> BodyView:
        """Raises Problem: it is not in the format that is wanted."""
        if not body:
            return _plain(EMPTY, "", 0)
        if wanted in (TEXT, HEX) and self.masks:
            wanted = ""
        if wanted in (TEXT, HEX):
            return _text(body) or _hex(body) if wanted == TEXT else _hex(body)
        if wanted:
            try:
                return self._structured(wanted, body, topic)
            except NotThat as error:
                raise bad_request(f"the body is no {wanted}: {error}", field="format") from None
        for name in self._likely(body, topic):
            try:
                return self._structured(name, body, topic)
            except NotThat:
                continue
        if self.masks and (topic in self._schemas or _may_hold_fields(body)):
            return _plain(HEX, MASK, len(body), masked=["*"])
        return _text(body) or _hex(body)

    def preview(self, body: bytes, topic: str = "") -> str:
        """The beginning, on one line."""
        is_json = not body[:1].strip(b"{[ \t\r\n")
        if is_json and not self.masks and topic not in self._schemas:
            start = body[: PREVIEW_CHARS * 4].decode("utf-8", "ignore")
            return " ".join(start.split())[:PREVIEW_CHARS]
        view = self.view(body, "", topic)
        return " ".join(view.text[: PREVIEW_CHARS * 4].split())[:PREVIEW_CHARS]

    def is_hidden(self, body: bytes, topic: str = "") -> bool:
        """Whether a rule masks a part of it, or may: then the raw bytes are not given."""
        return bool(self.masks) and bool(body) and bool(self.view(body, "", topic).masked)

    def masked(self, body: bytes, topic: str = "") -> bytes:
        """The body itself if no rule hides a part of it, else what may be shown, as text."""
        if not self.masks or not body:
            return body
        view = self.view(body, "", topic)
        return view.text.encode() if view.masked else body

    def _likely(self, body: bytes, topic: str) -> list[str]:
        """A schema of the topic says more than the looks of a body."""
        known = self._schemas.get(topic)
        return [*([known[0]] if known else []), *_likely(body)]

    def _decode(self, name: str, body: bytes, topic: str) -> Any:
        known = self._schemas.get(topic)
        if known is not None and known[0] == name and not body.startswith(_AVRO_FILE):
            return known[1](body)
        return _DECODERS[name](body)

    def _structured(self, name: str, body: bytes, topic: str) -> BodyView:
        if len(body) > DECODED_BYTES_MAX:
            raise NotThat(f"it has {len(body)} bytes, and {DECODED_BYTES_MAX} at most are decoded")
        value = self._decode(name, body, topic)
        masked, hidden = self.masks.apply(value)
        try:
            text = json.dumps(masked, ensure_ascii=False, indent=2, default=_odd)
        except (RecursionError, ValueError) as error:
            raise NotThat(str(error)) from None
        return _plain(name, text, len(body), masked=hidden)


def _plain(name: str, text: str, size: int, masked: list[str] | None = None) -> BodyView:
    return BodyView(
        format=name,
        text=text[:TEXT_CHARS_MAX],
        bytes=size,
        is_cut=len(text) > TEXT_CHARS_MAX,
        masked=masked or [],
        problem="",
    )


def _text(body: bytes) -> BodyView | None:
    """None if it is no text."""
    start = body[: TEXT_CHARS_MAX * 4]
    try:
        text = start.decode("utf-8")
    except UnicodeDecodeError as error:
        if len(body) <= len(start) or error.start < len(start) - 4:
            return None
        text = start[: error.start].decode("utf-8")
    if "\x00" in text:
        return None
    view = _plain(TEXT, text, len(body))
    view.is_cut = view.is_cut or len(body) > len(start)
    return view


def _hex(body: bytes) -> BodyView:
    lines = []
    for at in range(0, min(len(body), HEX_BYTES), 16):
        part = body[at : at + 16]
        shown = "".join(chr(byte) if 32 <= byte < 127 else "." for byte in part)
        lines.append(f"{at:08x}  {part.hex(' '):<47}  {shown}")
    view = _plain(HEX, "\n".join(lines), len(body))
    view.is_cut = len(body) > HEX_BYTES
    return view


def _likely(body: bytes) -> list[str]:
    names = []
    if body.lstrip()[:1] in (b"{", b"["):
        names.append(JSON)
    if body.startswith(_AVRO_FILE):
        names.append(AVRO)
    if body[0] in _MESSAGEPACK_FIRST:
        names.append(MESSAGEPACK)
    return names


def _may_hold_fields(body: bytes) -> bool:
    """What looks like JSON that is cut off or too large, or is binary: fields could be in it."""
    return bool(_likely(body)) or len(body) > DECODED_BYTES_MAX or _text(body) is None


def _json(body: bytes) -> Any:
    try:
        return msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise NotThat(str(error)) from None


def _messagepack(body: bytes) -> Any:
    try:
        return _with_text_keys(msgspec.msgpack.decode(body))
    except (
        msgspec.DecodeError,
        RecursionError,
        UnicodeDecodeError,
        TypeError,
        ValueError,
    ) as error:
        raise NotThat(str(error)) from None


def _avro(body: bytes) -> Any:
    """An Avro file: its schema is in it."""
    try:
        import fastavro
    except ImportError:
        raise NotThat("fastavro is not installed: pip install 'cometmq[avro]'") from None
    try:
        rows = []
        for row in fastavro.reader(io.BytesIO(body)):
            rows.append(row)
            if len(rows) >= _AVRO_ROWS_MAX:
                break
    except Exception as error:  # noqa: BLE001 - fastavro raises whatever its parts raise for bytes that are damaged
        raise NotThat(f"{type(error).__name__}: {error}") from None
    return rows


_AVRO_ROWS_MAX: Final = 1000


def _protobuf(body: bytes) -> Any:
    raise NotThat("no descriptor is known for its topic; name one in bodySchemas")


def _with_text_keys(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            key if isinstance(key, str) else repr(key): _with_text_keys(item)
            for key, item in value.items()
        }
    return [_with_text_keys(item) for item in value] if isinstance(value, list) else value


def _odd(value: Any) -> str:
    """What JSON has no form for."""
    return value.hex(" ") if isinstance(value, bytes) else str(value)


_DECODERS: Final = {JSON: _json, MESSAGEPACK: _messagepack, AVRO: _avro, PROTOBUF: _protobuf}
