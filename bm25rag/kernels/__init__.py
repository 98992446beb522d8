"""The hot loops: their typed boundary, and two backends that give the same bits.

``backend`` picks one; ``boundary`` says what it takes and checks it. Importing this package
loads neither compiled code nor a compiler.
"""
