"""Alerts, and the record of changes."""

from __future__ import annotations

from playwright.sync_api import expect
from tests.browser.visitor import Visitor


def test_a_rule_fires_is_silenced_and_deleted(visitor: Visitor) -> None:
    visitor.go("alerts", tab="rules")
    visitor.press("New rule")
    dialog = visitor.dialog
    dialog.get_by_label("Name", exact=True).fill("bills wait")
    dialog.get_by_label("What it watches").select_option("lag")
    dialog.get_by_label("Above").fill("10")
    dialog.get_by_label("Names").fill("billing")
    dialog.get_by_label("For, seconds").fill("0")
    visitor.press("Create", within=dialog)
    visitor.is_told("Rule bills wait is saved")
    expect(visitor.row("bills wait", table="Rules")).to_be_visible()

    visitor.choose_tab("Firing")
    alert = visitor.row("bills wait", table="Firing")
    expect(alert).to_contain_text("billing", timeout=30_000)
    alert.get_by_role("button").click()
    visitor.press("Silence", within=visitor.dialog)
    expect(alert).to_contain_text("silent until")
    visitor.press("Speak again")
    expect(alert.get_by_role("button", name="Silence")).to_be_visible()

    visitor.choose_tab("Rules")
    visitor.row("bills wait", table="Rules").get_by_role("button", name="Delete").click()
    visitor.press("Delete", within=visitor.dialog)
    expect(visitor.row("bills wait", table="Rules")).to_have_count(0)


def test_what_was_changed_is_in_the_audit_log(visitor: Visitor) -> None:
    visitor.go("topics")
    visitor.press("New topic")
    visitor.dialog.get_by_label("Name").fill("Audited")
    visitor.press("Create", within=visitor.dialog)
    visitor.is_told("Topic Audited is created")
    visitor.go("audit")
    row = visitor.row("Audited")
    expect(row).to_contain_text("create_topic")
    expect(row).to_contain_text("done")
