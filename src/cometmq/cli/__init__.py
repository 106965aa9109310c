"""The ``cometmq`` command and ``mqshutdown``."""
