"""Metadata: what is stored, and the fields by which filters are evaluated."""
