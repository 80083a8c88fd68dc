"""Free text with tagged regions in it: tool calls, reasoning sections, structural tags."""
