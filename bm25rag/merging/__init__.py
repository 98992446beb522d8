"""Segments merged into fewer: how, and when it is worth its price."""
