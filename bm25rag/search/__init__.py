"""From a question to hits: snapshot, term cache, ranking, filters, explanations."""
