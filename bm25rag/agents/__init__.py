"""What agents are given: tools whose answers keep to a budget, say what they leave out, and go on.

``bm25rag mcp`` and the adapters' tools are made of the same functions. Each returns an ``Answer``:
JSON values, and text for models. Neither is longer than the budget; values are counted as compact
JSON. A cursor goes on where an answer ended: through commits too, as long as what was returned
before would be returned again; otherwise it says that it is stale.
"""

from __future__ import annotations

from bm25rag.agents.answers import Answer
from bm25rag.agents.grepping import grep
from bm25rag.agents.reading import read
from bm25rag.agents.searching import search
from bm25rag.agents.tool import Doing, IndexTool, check_searched

__all__ = ["Answer", "Doing", "IndexTool", "check_searched", "grep", "read", "search"]
