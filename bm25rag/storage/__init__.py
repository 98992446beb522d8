"""A saved index: a folder of files that are written once, and a manifest replaced last."""
