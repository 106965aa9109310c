"""Which messages a consumer wants: by tag, SQL92 or a Python function."""
