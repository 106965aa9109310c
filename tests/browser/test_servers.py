"""Brokers: their settings changed while they run, and one that is gone; pipelines."""

from __future__ import annotations

from playwright.sync_api import Browser, expect
from tests.browser.serving import dashboard_of
from tests.browser.visitor import Visitor

from cometmq.testing import cluster


def test_a_setting_is_changed_while_the_broker_runs(visitor: Visitor) -> None:
    visitor.go("cluster")
    visitor.row("standalone").get_by_role("link", name="standalone", exact=True).click()
    expect(visitor.heading).to_have_text("standalone")
    visitor.page.get_by_role("searchbox", name="Filter settings").fill("fileReservedTime")
    row = visitor.row("fileReservedTime", table="Settings")
    row.get_by_role("button", name="Change: fileReservedTime").click()
    visitor.dialog.get_by_label("Value").fill("48")
    visitor.press("Change", within=visitor.dialog)
    visitor.is_told("fileReservedTime of standalone is changed")
    expect(row).to_contain_text("48")
    expect(row).to_contain_text("not default")
    visitor.press("Not default")
    expect(row).to_be_visible()


def test_run_time_figures(visitor: Visitor) -> None:
    visitor.go("cluster", "standalone", tab="runtime")
    expect(visitor.row("brokerVersionDesc", table="Run-time figures")).to_be_visible()


def test_roles_and_name_servers(visitor: Visitor) -> None:
    visitor.go("cluster")
    brokers = visitor.page.get_by_role("region", name="Brokers").locator("tbody tr")
    expect(brokers).to_have_count(4)
    expect(brokers.filter(has_text="slave")).to_have_count(2)
    expect(visitor.page.get_by_role("region", name="Name servers")).to_contain_text("answers")
    visitor.press("Name servers: Settings")
    expect(visitor.dialog.locator("tbody tr").first).to_be_visible()


def test_a_broker_takes_no_more_sends_and_takes_them_again(visitor: Visitor) -> None:
    visitor.go("cluster", "standalone-2")
    for action, told in (
        ("Stop sends", "Clients send nothing more to standalone-2"),
        ("Allow sends", "Clients send to standalone-2 again"),
    ):
        visitor.press(action)
        visitor.dialog.get_by_role("textbox").fill("standalone-2")
        visitor.press(action, within=visitor.dialog)
        visitor.is_told(told)


def test_an_election_without_a_controller_says_what_is_missing(visitor: Visitor) -> None:
    visitor.expected = {400}
    visitor.go("cluster", "standalone", id="1")
    visitor.press("Make it the master")
    visitor.dialog.get_by_role("textbox").fill("standalone")
    visitor.press("Make it the master", within=visitor.dialog)
    expect(visitor.dialog).to_contain_text("no controller is known")
    expect(visitor.dialog).to_contain_text("controllerAddr")


def test_a_pipeline_that_failed_says_why(visitor: Visitor) -> None:
    visitor.go("pipelines")
    expect(visitor.row("archive")).to_contain_text("failed")
    expect(visitor.row("archive")).to_contain_text("No space left on device")
    visitor.row("archive").get_by_role("link", name="Payments").click()
    expect(visitor.heading).to_have_text("Payments")


def test_half_of_a_cluster_that_is_gone_is_said_and_the_rest_is_shown(browser: Browser) -> None:
    with cluster(masters=2) as servers, dashboard_of(servers) as address:
        visitor = Visitor.of(browser, address)
        visitor.go("cluster")
        expect(
            visitor.page.get_by_role("region", name="Brokers").locator("tbody tr")
        ).to_have_count(2)
        servers.run(servers.kill(servers.masters[1]))
        visitor.go("overview")
        visitor.sees("Broker standalone-2 does not answer")
        expect(visitor.page.get_by_text("A server did not answer")).to_be_visible()
        visitor.page.locator("#problems li").first.get_by_role("link").click()
        visitor.settle()
        visitor.go("cluster")
        expect(visitor.row("standalone-2")).to_contain_text("does not answer")
        expect(visitor.row("standalone")).to_contain_text("master")
        visitor.context.close()
        visitor.check()
