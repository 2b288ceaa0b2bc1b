# What the scripts around the hub share: the command under test and Python with its clients.
# Sourced by bash behind tools/lib/setup.sh, from the top of the repository.
# shellcheck shell=bash
# shellcheck disable=SC2034 # Used by those who source it.

require_everything
require_packages python3-venv openssl curl

# Of the last run, unless what is wanted has changed.
python="$PWD/.build-cognito/python/bin/python3"
wanted=.build-cognito/requirements.txt
if ! cmp -s tools/cognito/requirements.txt "$wanted" || [[ ! -x "$python" ]]; then
    rm -rf .build-cognito/python
    mkdir -p .build-cognito
    python3 -m venv .build-cognito/python
    # Compiled as they are imported: most of the clients' modules never are.
    "$python" -m pip install --quiet --disable-pip-version-check --no-compile \
        -r tools/cognito/requirements.txt
    cp tools/cognito/requirements.txt "$wanted"
fi
# Nothing is left in the repository, and a module is compiled once.
export PYTHONPYCACHEPREFIX="$PWD/.build-cognito/compiled"

tidemark="${TIDEMARK:-}"
if [[ -z "$tidemark" ]]; then
    tidemark="$(swift build --show-bin-path)/tidemark"
    [[ -x "$tidemark" ]] || swift build --product tidemark </dev/null
fi
