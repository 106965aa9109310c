"""The HTTP address service: clients and brokers without a configured name server ask it for the list.

GET /rocketmq/nsaddr            -> 10.0.0.1:9876;10.0.0.2:9876
GET /rocketmq/nsaddr-UNIT?nofix=1  -> the same
"""

from __future__ import annotations

from typing import Final

from cometmq.model.address import join_address, split_addresses
from cometmq.namesrv.namesrv_config import AddressServiceConfig
from cometmq.remoting.http.exchange import HttpAnswer, HttpRequest, fault
from cometmq.remoting.http.http_port import HttpPort

PATH: Final = "/rocketmq/nsaddr"


class AddressService:
    def __init__(self, config: AddressServiceConfig, namesrv_port: int) -> None:
        self._config = config
        self._namesrv_port = namesrv_port
        self.http = HttpPort(self.answer, noun="address service", key="addressServicePort")

    @property
    def port(self) -> int:
        return self.http.port

    async def start(self, host: str) -> int:
        """Listen; the bound port. Raises RemotingError: the address cannot be had."""
        return await self.http.start(host, self._config.port)

    async def stop(self) -> None:
        await self.http.stop()

    def answer(self, request: HttpRequest) -> HttpAnswer:
        if not _is_ours(request.path):
            return fault(404)
        addresses = ";".join(split_addresses(self._config.addresses))
        # No line feed after the list: some clients use the body unchanged.
        return HttpAnswer(
            200, (addresses or join_address(request.own_ip, self._namesrv_port)).encode()
        )


def _is_ours(path: str) -> bool:
    """The path itself, the path with ``-UNIT`` appended (RocketMQ's unit name), and whatever is below it."""
    return path == PATH or path.startswith((PATH + "-", PATH + "/"))
