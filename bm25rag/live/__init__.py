"""What is beneath the face of an index: its state, and how that changes.

A ``LiveIndex`` has one immutable state, which each write replaces as a whole, under one lock, and
an attachment: nothing, or the folder that is open for reading or writing.
"""
