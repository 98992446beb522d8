"""``mcp``: an index served to agents by the Model Context Protocol."""
