"""Columns of byte strings, and tables that find a string in one."""
