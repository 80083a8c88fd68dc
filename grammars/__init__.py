"""Front ends: what users write, turned into one intermediate representation."""
