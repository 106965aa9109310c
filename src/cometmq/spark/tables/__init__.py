"""Delta and Iceberg tables without a Java library."""
