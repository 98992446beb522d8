# The numbers of fold_bits.py, as C has them.
cdef enum:
    OTHER = 0
    WORD = 1
    CJK = 2
    MARK = 3
    CLUSTER = 4
    SYMBOL = 5

    APOSTROPHE = 1
    STOP = 2
    COMMA = 3
    PLUS = 4
    HASH = 5

    SIZE = 32
    KIND = 40
    SIGN = 48

    LETTER = 56
    DIGIT = 57
    SINGLE = 58
    ASKED_SINGLE = 59
    JOINER = 60
    MEETING = 61
    PECULIAR = 63

    FIRST = 1
    SECOND = 2
    ANY = 3
