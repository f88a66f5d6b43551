#!/bin/sh
# From a fresh clone to the main job's table and page: makes .venv, installs jaxpu into it, runs the experiment "quick".
# Arguments are handed on to `jaxpu run`.
set -eu
cd "$(dirname "$0")/.."
. scripts/environment.sh
install_into_venv .
exec .venv/bin/jaxpu run quick "$@"
