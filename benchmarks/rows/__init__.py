"""The groups of rows, in the order in which they are measured."""
