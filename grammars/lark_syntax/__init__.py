"""Lark's grammar language to the intermediate representation."""
