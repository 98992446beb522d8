"""Segments merged into fewer: how, and when that pays."""
