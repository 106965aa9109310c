"""Somebody with a browser: goes to pages, and notes everything that the browser complains of."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import quote, urlencode, urlsplit

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Locator,
    Page,
    expect,
)

DESKTOP: Final = (1280, 800)
PHONE: Final = (390, 844)
STEP_MS: Final = 15_000
"""A page and what it asks for may take so long on a busy machine."""
LOADS_MAX: Final = 3
NETWORK_CHANGED: Final = "ERR_NETWORK_CHANGED"
_AXE_OPTIONS: Final = {
    "runOnly": {
        "type": "tag",
        "values": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"],
    }
}
ASKED: Final[set[tuple[str, str]]] = set()
"""Methods and paths of all requests of all visitors."""


@dataclass
class Visitor:
    """``complaints`` are console errors and exceptions; a test that ends with any fails."""

    address: str
    context: BrowserContext
    page: Page
    complaints: list[str] = field(default_factory=list)
    is_cut_off: bool = False
    """Whether requests were lost because the machine got another network interface, which says nothing about a page."""
    expected: set[int] = field(default_factory=set)
    """HTTP statuses that the test provokes; the browser reports each as an error."""

    @classmethod
    def of(
        cls,
        browser: Browser,
        address: str,
        *,
        theme: str = "light",
        language: str = "en",
        size: tuple[int, int] = DESKTOP,
    ) -> Visitor:
        context = browser.new_context(
            viewport={"width": size[0], "height": size[1]},
            locale="en-GB",
            timezone_id="Europe/Berlin",
            reduced_motion="reduce",
            accept_downloads=True,
        )
        context.set_default_timeout(STEP_MS)
        context.add_init_script(
            f"localStorage.getItem('cometmq.theme') ?? localStorage.setItem('cometmq.theme', '{theme}');"
            f"localStorage.getItem('cometmq.language') ?? localStorage.setItem('cometmq.language', '{language}');"
        )
        page = context.new_page()
        visitor = cls(address, context, page)
        page.on("console", visitor._on_console)
        page.on("request", lambda request: visitor._on_request(request.method, request.url))
        page.on("download", lambda download: visitor._on_request("GET", download.url))
        page.on("pageerror", lambda error: visitor.complaints.append(f"exception: {error}"))
        return visitor

    def go(self, *parts: str, **params: str) -> None:
        """To a page, such as ``go("groups", "billing")``, until it has shown what it asked for."""
        path = "/".join(quote(part, safe="") for part in parts)
        query = f"?{urlencode(params)}" if params else ""
        for _ in range(LOADS_MAX):
            self.is_cut_off = False
            self.page.goto(f"{self.address}/#/{path}{query}")
            if self._is_settled():
                return
            self.page.goto("about:blank")
        self.settle()

    def _is_settled(self) -> bool:
        """False if the machine's network changed meanwhile."""
        try:
            self.settle()
        except AssertionError:
            if not self.is_cut_off:
                raise
            return False
        return True

    def settle(self) -> None:
        """The page is no longer busy, and has a heading."""
        expect(self.page.locator("main h1").first).to_be_visible(timeout=STEP_MS)
        expect(self.page.locator("main[aria-busy]")).to_have_count(0, timeout=STEP_MS)

    def row(self, text: str, *, table: str | None = None) -> Locator:
        """The row of a table that has a text."""
        where: Page | Locator = self.page
        if table is not None:
            where = self.page.get_by_role("region", name=table, exact=True)
        return where.locator("tbody tr").filter(has_text=text).first

    def press(self, name: str, *, within: Locator | None = None, exact: bool = True) -> None:
        (within or self.page).get_by_role("button", name=name, exact=exact).first.click()

    def choose_tab(self, name: str) -> None:
        self.page.get_by_role("tab", name=name, exact=True).click()

    @property
    def dialog(self) -> Locator:
        return self.page.get_by_role("dialog")

    @property
    def heading(self) -> Locator:
        return self.page.get_by_role("heading", level=1)

    def sees(self, *texts: str) -> None:
        """On the page itself."""
        for text in texts:
            expect(self.page.locator("main").get_by_text(text).first).to_be_visible(timeout=STEP_MS)

    def is_told(self, text: str) -> None:
        """A notice at the edge of the page."""
        expect(self.page.locator(".toasts").get_by_text(text).first).to_be_visible(timeout=STEP_MS)

    def violations(self) -> list[str]:
        """What is not accessible, by level A and AA."""
        result: dict[str, Any] = Axe().run(self.page, options=_AXE_OPTIONS).response
        return [_story(one) for one in result["violations"]]

    def check(self) -> None:
        """Raises AssertionError: the browser complained."""
        assert not self.complaints, "\n".join(self.complaints)

    def _on_request(self, method: str, url: str) -> None:
        """The page asks nobody but the dashboard."""
        parts = urlsplit(url)
        ASKED.add((method, parts.path))
        if parts.scheme in ("http", "https") and not url.startswith(f"{self.address}/"):
            self.complaints.append(f"asked somebody else: {url}")

    def _on_console(self, message: ConsoleMessage) -> None:
        if message.type not in {"error", "warning"}:
            return
        if NETWORK_CHANGED in message.text:
            self.is_cut_off = True
            return
        if any(f"status of {status} " in message.text for status in self.expected):
            return
        self.complaints.append(f"{message.type}: {message.text} {message.location.get('url', '')}")


def _story(violation: dict[str, Any]) -> str:
    nodes: Iterable[dict[str, Any]] = violation["nodes"]
    places = "; ".join(f"{node['html'][:160]} ({node.get('failureSummary', '')})" for node in nodes)
    return f"{violation['id']}: {violation['help']}: {places[:900]}"
