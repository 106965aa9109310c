"""A command: one request or reply, in memory. ``frame`` splits and joins bytes, ``header_*`` encode the header.

int32 length of the rest | int8 header encoding, int24 header length | header | body
"""

from __future__ import annotations

from typing import Final

import msgspec

from cometmq.protocol.codes import ResponseCode

FLAG_RESPONSE: Final = 1
FLAG_ONEWAY: Final = 2

JSON: Final = 0
BINARY: Final = 1

VERSION: Final = 409
"""What we claim to be: RocketMQ 4.9.8. Clients look at it before they use SQL filters (232) and JSON routes (401)."""

VERSION_NAME: Final = "V4_9_8"
"""The same, as RocketMQ's tools show it."""

Body = bytes | memoryview


def encodable(text: str) -> str:
    """The text with a question mark for each lone surrogate, which UTF-8 cannot encode."""
    return text.encode("utf-8", "replace").decode()


class Command(msgspec.Struct):
    """The content of one frame. ``ext`` holds the custom header as strings by wire name.

    The ``body`` of a command to send may be given in parts (``body_parts``), which are written without joining them.
    ``language`` is the enum name; ``encoding`` is the header encoding that it was received in or will be sent in.
    """

    code: int
    ext: dict[str, str] | None = None
    body: Body = b""
    flag: int = 0
    opaque: int = 0
    remark: str | None = None
    language: str = "PYTHON"
    version: int = VERSION
    encoding: int = JSON
    body_parts: list[Body] | None = None

    @property
    def is_response(self) -> bool:
        return self.flag & FLAG_RESPONSE != 0

    @property
    def is_oneway(self) -> bool:
        return self.flag & FLAG_ONEWAY != 0

    def reply(
        self,
        code: int = ResponseCode.SUCCESS,
        remark: str | None = None,
        *,
        ext: dict[str, str] | None = None,
        body: Body = b"",
    ) -> Command:
        """A reply to this request: same opaque, same header encoding."""
        return Command(
            code=code,
            ext=ext,
            body=body,
            flag=FLAG_RESPONSE,
            opaque=self.opaque,
            remark=remark,
            encoding=self.encoding,
        )

    def __repr__(self) -> str:
        """Without values: fields and bodies of some requests hold secrets."""
        parts = [self.body] if self.body_parts is None else self.body_parts
        remark = "" if self.remark is None else f", remark={self.remark!r}"
        return (
            f"Command(code={self.code}, ext=[{' '.join(self.ext or ())}], body={sum(map(len, parts))} bytes, "
            f"flag={self.flag}, opaque={self.opaque}{remark})"
        )
