"""Base class of the JSON bodies: a struct that can be encoded as fastjson text and decoded from it."""

from __future__ import annotations

from typing import ClassVar, Self

import msgspec

from cometmq.protocol import fastjson


class JsonBody(msgspec.Struct, kw_only=True, rename="camel"):
    """Wire keys are the attribute names in camel case unless a field says otherwise."""

    LIMITS: ClassVar[fastjson.Limits] = fastjson.BODY
    """Maximum size; a body that may be larger overrides it."""

    @classmethod
    def decode(cls, data: bytes | memoryview) -> Self:
        """Raises RemoteProtocolError if ``data`` is not such a body."""
        return fastjson.decode(data, cls, limits=cls.LIMITS)

    def encode(self) -> bytes:
        """As Java writes it: fields sorted, None left out, integer and queue keys unquoted."""
        return fastjson.dumps(self)
