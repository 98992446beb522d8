"""The immutable parts of an index: postings, documents, and changes to them."""
