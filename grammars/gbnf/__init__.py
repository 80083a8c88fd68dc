"""Grammars in the notation of llama.cpp (GBNF), and in the spelling of it that xgrammar takes."""
