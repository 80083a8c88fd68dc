#!/bin/sh
# mypy reads the installed layout: at the root it would find only the folder `constrain/` (CONTRIBUTING.md).
set -eu
cd "$(dirname "$0")/.."
root=$PWD
target=$(mktemp -d)
trap 'rm -rf "$target"' EXIT
python=${PYTHON:-python}
# From a copy, so that no build/ folder is left in the checkout to be picked up by a later build.
mkdir "$target/source"
cp -R constrain grammars tokenizer_index backends pyproject.toml README.md LICENSE "$target/source"
"$python" -m pip install --quiet --no-deps --no-build-isolation --target "$target/installed" "$target/source"
cd "$target/installed"
# The cache outlives the copy: mypy compares contents, so a second run is quick.
export MYPY_CACHE_DIR="${MYPY_CACHE_DIR:-$root/.mypy_cache}"
"$python" -m mypy --config-file "$root/pyproject.toml" -p constrain "$@"
