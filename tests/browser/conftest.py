"""One shop, one dashboard and one browser for all tests; a visitor of their own for each.

The dashboard is the real one, on a real cluster. Where the machine has no Chromium, everything
here is skipped, and says so.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect, sync_playwright
from tests.browser.past import write_past
from tests.browser.serving import change, dashboard_of
from tests.browser.shop import CLUSTER, Shop, shop
from tests.browser.visitor import STEP_MS, Visitor

CHROMIUM = shutil.which("chromium")
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--pictures", action="store_true", help="write the pictures of the documentation anew"
    )


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if CHROMIUM is None:
        reason = "no Chromium on this machine: tools/setup_chromium.sh installs one"
        for item in items:
            if Path(__file__).parent in item.path.parents:
                item.add_marker(pytest.mark.skip(reason=reason))


@pytest.fixture(scope="session")
def writes_pictures(request: pytest.FixtureRequest) -> bool:
    return bool(request.config.getoption("--pictures", default=False))


@pytest.fixture(scope="session")
def aside() -> Iterator[ThreadPoolExecutor]:
    """A thread for blocking clients: Playwright runs an event loop in the one of the tests."""
    with ThreadPoolExecutor(1) as thread:
        yield thread


@pytest.fixture(scope="session")
def the_shop(aside: ThreadPoolExecutor) -> Iterator[Shop]:
    running = shop()
    yield aside.submit(running.__enter__).result()
    aside.submit(running.__exit__, None, None, None).result()


@pytest.fixture(scope="session")
def address(
    the_shop: Shop, tmp_path_factory: pytest.TempPathFactory, writes_pictures: bool
) -> Iterator[str]:
    """Of the dashboard."""
    data = tmp_path_factory.mktemp("dashboard")
    if writes_pictures:
        write_past(data)
    with dashboard_of(the_shop.servers, data_path=str(data), masked_fields="card") as running:
        change(running, "POST", "topics", {"name": "Returns", "cluster": CLUSTER})
        watched = {"kind": "lag", "threshold": 100, "pattern": "billing", "for_seconds": 0}
        change(running, "PUT", "alerts/rules", {"name": "bills", **watched})
        yield running


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    expect.set_options(timeout=STEP_MS)
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=list(FLAGS))
        yield chromium
        chromium.close()


@pytest.fixture
def visitor(browser: Browser, address: str) -> Iterator[Visitor]:
    """English, light, at a desk. The test fails if the browser complains."""
    someone = Visitor.of(browser, address)
    yield someone
    someone.context.close()
    someone.check()
