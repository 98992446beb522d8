"""The order in which NumPy sorted equal numbers in 2022, which a published table depends on."""

from __future__ import annotations

from collections.abc import Sequence


def quicksort_order(values: Sequence[float]) -> list[int]:
    """Return the indices that sort values, as ``numpy.argsort(values)`` did before 1.25.

    Quicksort with the median of three down to 16 values, insertion sort below: equal values do
    not keep their order. Later versions use other instructions where a processor has them, and
    so give another order.
    """
    order, waiting = list(range(len(values))), [(0, len(values) - 1)]

    def swap(i: int, j: int) -> None:
        order[i], order[j] = order[j], order[i]

    def below(i: int, j: int) -> bool:
        return values[order[i]] < values[order[j]]

    while waiting:
        left, right = waiting.pop()
        while right - left > 16:
            middle = left + (right - left) // 2
            for i, j in ((middle, left), (right, middle), (middle, left)):
                if below(i, j):
                    swap(i, j)
            pivot, i, j = values[order[middle]], left, right - 1
            swap(middle, j)
            while True:
                i, j = i + 1, j - 1
                while values[order[i]] < pivot:
                    i += 1
                while pivot < values[order[j]]:
                    j -= 1
                if i >= j:
                    break
                swap(i, j)
            swap(i, right - 1)
            if i - left < right - i:
                waiting.append((i + 1, right))
                right = i - 1
            else:
                waiting.append((left, i - 1))
                left = i + 1
        order[left : right + 1] = sorted(order[left : right + 1], key=values.__getitem__)
    return order
