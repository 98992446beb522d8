"""Text to terms: one analyzer for documents and questions."""
