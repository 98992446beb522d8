"""The inspector: an index looked at in a browser, on this machine and read-only.

``cli/inspect.py`` starts it. A page is a view (``views/``): a function from what an address asks
for (``asked.py``) to JSON values, which ``pages/`` shows. It needs the extra ``inspect``.
"""
