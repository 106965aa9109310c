"""A command: one request or reply, in memory. ``frame`` cuts and joins bytes, ``header_*`` encode the header.

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
"""What we claim to be: RocketMQ 4.9.8. Clients ask for SQL filters (232) and standard JSON routes (401) by it."""

Body = bytes | memoryview


def encodable(text: str) -> str:
    """The text with a question mark for each half character, which UTF-8 cannot carry."""
    return text.encode("utf-8", "replace").decode()


class Command(msgspec.Struct):
    """One frame's content. ``ext`` holds the custom header as texts by wire name.

    ``body`` of a command to be sent may be given in parts (``body_parts``), which are written without joining them.
    ``language`` is the enum name; ``encoding`` the header encoding it came in or is to leave in.
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
