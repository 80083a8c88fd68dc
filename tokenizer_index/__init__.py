"""Vocabulary index, compiled tables and kernels."""
