"""Regular expressions."""
