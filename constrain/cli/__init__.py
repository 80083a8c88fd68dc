"""Command line, one file per command; ``docs/cli.md`` lists exit codes and the keys of ``--json``.

Nothing heavy is imported here: ``constrain --help`` and shell completion answer without NumPy, Numba
or torch. A command imports what it needs when it runs.
"""

from __future__ import annotations


def main() -> None:
    """Run the command line and exit the process with its status."""
    from constrain.cli.app import app

    app(prog_name="constrain")
