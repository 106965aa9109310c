"""``python -m cometmq.cli.mqadmin``"""

from __future__ import annotations

from cometmq.cli.mqadmin.main import main

main()
