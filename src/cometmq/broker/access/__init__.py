"""The room of accounts: stands before all processors, answers requests about accounts, and keeps the audit log."""
