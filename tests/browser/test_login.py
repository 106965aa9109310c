"""Login with an account of the cluster: roles, accounts, a login that expires, read-only."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, expect
from tests.browser.pictures import check_look
from tests.browser.serving import dashboard_of
from tests.browser.test_every_page import LOOKS
from tests.browser.visitor import Visitor

from cometmq.access.access_config import LOCAL_ACLS, LOCAL_USERS
from cometmq.client import ClientConfig, Credentials
from cometmq.testing import cluster

ADMIN, ADMIN_PASSWORD = "ada", "ada-password-1"
VIEWER, VIEWER_PASSWORD = "bob", "bob-password-1"
INNER = {"accessKey": "inner", "secretKey": "inner-password-1"}
SETTINGS = {
    "authenticationEnabled": "true",
    "authorizationEnabled": "true",
    "authenticationMetadataProvider": LOCAL_USERS,
    "authorizationMetadataProvider": LOCAL_ACLS,
    "initAuthenticationUser": json.dumps({"username": ADMIN, "password": ADMIN_PASSWORD}),
    "innerClientAuthenticationCredentials": json.dumps(INNER),
}
ACCOUNT = ClientConfig(credentials=Credentials(access_key=ADMIN, secret_key=ADMIN_PASSWORD))


@pytest.fixture(scope="module")
def closed() -> Iterator[str]:
    """The address of a dashboard whose cluster checks accounts."""
    with (
        cluster(settings=SETTINGS) as servers,
        dashboard_of(servers, account=ACCOUNT, viewers="*") as address,
    ):
        yield address


@pytest.fixture
def guest(browser: Browser, closed: str) -> Iterator[Visitor]:
    visitor = Visitor.of(browser, closed)
    yield visitor
    visitor.context.close()
    visitor.check()


def log_in(visitor: Visitor, name: str, password: str) -> None:
    visitor.page.locator("input[autocomplete=username]").fill(name)
    visitor.page.locator("input[autocomplete=current-password]").fill(password)
    visitor.page.locator("button[type=submit]").click()


@pytest.mark.parametrize(("theme", "language"), LOOKS)
def test_how_login_and_accounts_look(
    browser: Browser, closed: str, theme: str, language: str, writes_pictures: bool
) -> None:
    visitor = Visitor.of(browser, closed, theme=theme, language=language)
    visitor.go("accounts")
    check_look(visitor, "login", theme, language, writes=writes_pictures)
    log_in(visitor, ADMIN, ADMIN_PASSWORD)
    expect(visitor.row(ADMIN)).to_be_visible()
    check_look(visitor, "accounts", theme, language, writes=writes_pictures)
    visitor.context.close()
    visitor.check()


def test_a_wrong_password_and_then_the_right_one(guest: Visitor) -> None:
    guest.expected = {401}
    guest.go("topics")
    expect(guest.heading).to_have_text("CometMQ")
    log_in(guest, ADMIN, "wrong")
    guest.sees("the name or the password is wrong")
    log_in(guest, ADMIN, ADMIN_PASSWORD)
    expect(guest.heading).to_have_text("Topics")
    expect(guest.page.get_by_role("button", name="New topic")).to_be_enabled()
    guest.press("Log out")
    expect(guest.page.get_by_label("Password")).to_be_visible()


def test_a_viewer_only_looks(guest: Visitor) -> None:
    guest.expected = {401}  # what was under way when somebody logged out
    guest.go("accounts")
    log_in(guest, ADMIN, ADMIN_PASSWORD)
    guest.press("New account")
    guest.dialog.get_by_label("Account").fill(VIEWER)
    guest.dialog.get_by_label("Password").fill(VIEWER_PASSWORD)
    guest.press("Create", within=guest.dialog)
    guest.is_told(f"Account {VIEWER} is saved")
    guest.press(f"What {VIEWER} may do")
    guest.dialog.get_by_label("Resource").fill("Cluster:*")
    guest.dialog.get_by_label("Get").check()
    guest.dialog.get_by_label("List").check()
    guest.press("Set rule", within=guest.dialog)
    expect(guest.row(VIEWER)).to_contain_text("Cluster:*")
    guest.press("Log out")

    log_in(guest, VIEWER, VIEWER_PASSWORD)
    expect(guest.page.get_by_text("Only administrators see this page.")).to_be_visible()
    guest.page.locator("nav").get_by_role("link", name="Topics").click()
    expect(guest.heading).to_have_text("Topics")
    expect(guest.page.get_by_role("button", name="New topic")).to_be_disabled()
    guest.press("Log out")

    log_in(guest, ADMIN, ADMIN_PASSWORD)
    guest.page.locator("nav").get_by_role("link", name="Accounts").click()
    guest.press(f"Delete: {VIEWER}")
    guest.dialog.get_by_role("textbox").fill(VIEWER)
    guest.press("Delete", within=guest.dialog)
    expect(guest.row(VIEWER)).to_have_count(0)


def test_a_login_that_expired_comes_back_to_the_same_page(guest: Visitor) -> None:
    guest.expected = {401}
    guest.go("cluster")
    log_in(guest, ADMIN, ADMIN_PASSWORD)
    expect(guest.heading).to_have_text("Cluster")
    guest.context.clear_cookies()
    guest.page.locator("nav").get_by_role("link", name="Groups").click()
    expect(guest.page.get_by_label("Password")).to_be_visible()
    log_in(guest, ADMIN, ADMIN_PASSWORD)
    expect(guest.heading).to_have_text("Groups")


def test_read_only_offers_no_changes(browser: Browser) -> None:
    with cluster() as servers, dashboard_of(servers, is_read_only=True) as address:
        visitor = Visitor.of(browser, address)
        visitor.go("topics")
        expect(visitor.page.get_by_text("read-only")).to_be_visible()
        expect(visitor.page.get_by_role("button", name="New topic")).to_be_disabled()
        visitor.context.close()
        visitor.check()
