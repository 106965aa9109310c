"""``python -m cometmq.cli`` is ``cometmq``."""

from cometmq.cli.main import main

main()
