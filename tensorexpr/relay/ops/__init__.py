"""The operators, a row for each, a file for each family: see `row`."""
