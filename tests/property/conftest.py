"""One profile for all property tests: a busy machine is no failure, and a failing example can be replayed."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("cometmq", deadline=None, print_blob=True)
settings.load_profile("cometmq")
