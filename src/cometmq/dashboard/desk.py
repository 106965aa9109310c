"""What all handlers share: settings, sites, the record of changes, alerts, open streams."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from cometmq.base.ports import Clock
from cometmq.dashboard.alerts.book import AlertBook
from cometmq.dashboard.audit import Audit
from cometmq.dashboard.dashboard_config import DashboardConfig
from cometmq.dashboard.decoding.body_text import Bodies
from cometmq.dashboard.door.guard import Guard
from cometmq.dashboard.problems import not_found
from cometmq.dashboard.watch.history import History
from cometmq.dashboard.watch.hub import Hub
from cometmq.dashboard.watch.site import Site


@dataclass(frozen=True, slots=True, kw_only=True)
class Desk:
    config: DashboardConfig
    clock: Clock
    guard: Guard
    audit: Audit
    hub: Hub
    history: History
    bodies: Bodies
    alerts: AlertBook
    sites: Mapping[str, Site]

    def site(self, name: str) -> Site:
        """The one of a name, or the first. Raises Problem."""
        if not name:
            return next(iter(self.sites.values()))
        found = self.sites.get(name)
        if found is None:
            raise not_found("site", name, hint=f"there are: {', '.join(self.sites)}")
        return found
