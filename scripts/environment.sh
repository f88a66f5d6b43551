# Sourced by the other scripts: the one way in which the virtual environment .venv is made and filled.

# A Python of at least 3.11: $PYTHON if set, else the first of the usual names that is one. Debian splits venv off its
# python3 package; as root it is installed, otherwise the command to run is printed.
find_python() {
    for name in ${PYTHON:-python3 python3.13 python3.12 python3.11}; do
        if "$name" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
            if ! "$name" -c 'import ensurepip, venv' 2>/dev/null; then
                version=$("$name" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
                if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
                    { apt-get update -qq && apt-get install -y -qq "python$version-venv"; } >/dev/null
                else
                    echo "this Python has no venv module; run: sudo apt-get install python$version-venv" >&2
                    exit 1
                fi
            fi
            echo "$name"
            return
        fi
    done
    echo "no Python 3.11 or newer was found; set PYTHON to one" >&2
    exit 1
}

# install_into_venv REQUIREMENT: make .venv if it is not there, and install this checkout into it, editable.
# uv takes seconds where pip takes more than a minute; where uv is not to be had, or fails, pip does it.
install_into_venv() {
    if [ ! -x .venv/bin/python ]; then
        python=$(find_python)
        "$python" -m venv .venv
    fi
    if .venv/bin/python -m pip install --quiet --disable-pip-version-check uv; then
        .venv/bin/uv pip install --quiet --python .venv/bin/python --editable "$1" && return
    fi
    .venv/bin/python -m pip install --quiet --disable-pip-version-check --editable "$1"
}
