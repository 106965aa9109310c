"""A client that signs what a test asks for, as an account does."""

from __future__ import annotations

import json

from tests.integration.raw_client import RawClient

from cometmq.protocol.command import Command
from cometmq.protocol.request_signature import sign


class SigningClient(RawClient):
    def __init__(self, address: str, name: str, secret: str) -> None:
        super().__init__(address)
        self.name, self.secret = name, secret

    async def ask(
        self, code: int, ext: dict[str, str] | None = None, body: object = b""
    ) -> Command:
        request = Command(code, ext, body if isinstance(body, bytes) else json.dumps(body).encode())
        sign(request, self.name, self.secret)
        return await self.remoting.call(self.address, request, 10.0)
