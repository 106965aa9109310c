"""Every example of the API's description, as printed, on the cluster that it speaks of."""

from __future__ import annotations

import msgspec
from tests.integration.dashboard.shop import open_shop
from tests.integration.dashboard.visitor import BY_NAME, dashboard

from cometmq.dashboard.contract.examples import EXAMPLES, MESSAGE_ID
from cometmq.dashboard.contract.table import ROUTES
from cometmq.testing import cluster

WITHOUT = {
    *("log_in", "log_out", "put_account", "delete_account", "put_account_rule"),
    *("elect", "client", "events", "recall"),
}
"""Their tests are elsewhere."""


def test_every_route_has_an_example_or_a_test_of_its_own() -> None:
    assert set(EXAMPLES) == {route.name for route in ROUTES} - WITHOUT
    for name, example in EXAMPLES.items():
        route = BY_NAME[name]
        assert (example.body is None) == (route.body is None), name


async def test_the_examples_run() -> None:
    async with cluster() as servers:
        message_id = await open_shop(servers.name_servers)
        async with dashboard(servers.name_servers) as (server, visitor):
            await server.desk.site("").refresh()
            for name, example in EXAMPLES.items():
                names = {
                    key: message_id if value == MESSAGE_ID else value
                    for key, value in example.names.items()
                }
                body = None if example.body is None else dict(example.body)
                answer = await visitor.ask(name, names, example.query, body)
                assert answer.status == 200, (name, answer.body[:1000])
                if BY_NAME[name].is_change:
                    told = msgspec.json.decode(answer.body)
                    assert not told.get("failed"), (name, told)
