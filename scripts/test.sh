#!/bin/sh
# From a fresh clone to the passing tests: makes .venv, installs jaxpu and the developers' tools, runs pytest.
# Arguments are handed on to pytest; tests marked slow are left out unless asked for with: -m slow
set -eu
cd "$(dirname "$0")/.."
. scripts/environment.sh
install_into_venv '.[dev]'
exec .venv/bin/pytest -m "not slow" "$@"
