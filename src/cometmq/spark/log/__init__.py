"""The source ``rocketmq-log``: reads the files of a store, without a broker."""
