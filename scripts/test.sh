#!/bin/sh
# Sets up, then runs the tests; arguments go to pytest.
set -eu
extra=dev
. "$(dirname "$0")/setup.sh"
# One thread a process: two compute threads on two busy cores wait for each other (measured: 6 times slower).
export OMP_NUM_THREADS="${OMP_NUM_THREADS:-1}" NUMBA_NUM_THREADS="${NUMBA_NUM_THREADS:-1}"
exec "$venv/bin/python" -m pytest "$@"
