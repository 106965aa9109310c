"""Every Python example of the README runs against a real cluster."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

from cometmq.testing import cluster

README = (Path(__file__).parents[2] / "README.md").read_text()
EXAMPLES = re.findall(r"```python\n(.*?)```", README, re.DOTALL)


def test_the_taste_of_the_client_sends_and_reads() -> None:
    [example] = [text for text in EXAMPLES if "Producer(" in text]
    printed = io.StringIO()
    with cluster() as servers, contextlib.redirect_stdout(printed):
        exec(example.replace("127.0.0.1:9876", servers.name_servers), {"__name__": "example"})
    assert "SEND_OK" in printed.getvalue()
    assert "['order-17'] b'{\"order\":17}'" in printed.getvalue()


def test_the_broker_inside_a_test_gives_an_address() -> None:
    [example] = [text for text in EXAMPLES if "cluster()" in text]
    given: list[str] = []
    scope = {"run_my_service": lambda *, name_servers: given.append(name_servers)}
    exec(example + "\ntest_orders_arrive()\n", scope)
    assert re.fullmatch(r"127\.0\.0\.1:\d+", given[0])
