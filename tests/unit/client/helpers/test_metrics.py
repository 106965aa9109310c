"""Metrics of clients: what the hooks count, and the page."""

from __future__ import annotations

import threading
import urllib.error
import urllib.request

import pytest

from cometmq.base.errors import RemotingError
from cometmq.client.helpers import metrics as module
from cometmq.client.helpers.metrics import OTHERS, ClientMetrics
from cometmq.monitor.family import Family, Histogram
from cometmq.monitor.page_thread import PageThread


def counts(metrics: ClientMetrics, name: str) -> dict[tuple[str, ...], int]:
    [family] = [one for one in metrics.families if one.name == name]
    return {labels: one.count for labels, one in family.read() if isinstance(one, Histogram)}


def test_sends_and_listeners_are_counted_by_topic_and_outcome() -> None:
    metrics = ClientMetrics("me")
    metrics.sent("T", 3.0, is_failure=False)
    metrics.sent("T", 900.0, is_failure=True)
    metrics.delivered("T", "g", 12.0, 32)
    metrics.processed("T", "g", 5.0, is_failure=False)
    assert counts(metrics, "rocketmq_send_cost_time") == {
        ("me", "success", "T"): 1,
        ("me", "failure", "T"): 1,
    }
    assert counts(metrics, "rocketmq_delivery_latency") == {("me", "g", "T"): 32}
    assert counts(metrics, "rocketmq_process_time") == {("me", "g", "success", "T"): 1}


def test_topics_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "TOPICS_MAX", 2)
    metrics = ClientMetrics("me")
    for number in range(5):
        metrics.sent(f"T{number}", 1.0, is_failure=False)
    assert counts(metrics, "rocketmq_send_cost_time")["me", "success", OTHERS] == 3


def test_threads_may_count_together() -> None:
    metrics = ClientMetrics("me")

    def work() -> None:
        for _ in range(2000):
            metrics.sent("T", 1.0, is_failure=False)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert counts(metrics, "rocketmq_send_cost_time") == {("me", "success", "T"): 8000}


def test_a_page_is_served_by_a_thread_and_ends() -> None:
    metrics = ClientMetrics("me")
    metrics.sent("T", 1.0, is_failure=False)
    with metrics.page() as page:
        with urllib.request.urlopen(f"http://{page.address}/metrics", timeout=10) as answer:
            text = answer.read().decode()
        with pytest.raises(urllib.error.HTTPError, match="404"):
            urllib.request.urlopen(f"http://{page.address}/", timeout=10)
        with pytest.raises(RemotingError, match="cannot listen"):
            metrics.page(port=int(page.address.split(":")[1])).__enter__()
    assert 'rocketmq_send_cost_time_count{client_id="me"' in text
    assert not [one for one in threading.enumerate() if one.name == "cometmq-metrics"]


def test_a_page_can_have_labels_of_its_own() -> None:
    families: list[Family] = list(ClientMetrics("me").families)
    with (
        PageThread(families, common={"app": "shop"}) as page,
        urllib.request.urlopen(f"http://{page.address}/metrics", timeout=10) as answer,
    ):
        assert answer.read() == b"# TYPE target_info gauge\ntarget_info 1\n"
