"""What the API takes and gives, as typed values; the OpenAPI file is made from them. Times: milliseconds since 1970."""
