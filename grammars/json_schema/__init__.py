"""JSON Schema to the intermediate representation."""
