"""What every package may use: array types, argument checks, strings, the interpreter's lock."""
