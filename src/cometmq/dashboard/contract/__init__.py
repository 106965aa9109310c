"""The API as a table: what each address takes, gives and needs. Server, OpenAPI file and reference are made from it."""
