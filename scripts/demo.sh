#!/bin/sh
# Sets up, then shows a real language model writing typed records, a choice and a pattern.
set -eu
extra=demo
. "$(dirname "$0")/setup.sh"
exec "$venv/bin/python" examples/demo.py "$@"
