# What the scripts around the hub share: the command under test and Python with its clients.
# Sourced by bash behind tools/lib/setup.sh, from the top of the repository.
# shellcheck shell=bash
# shellcheck disable=SC2034 # Used by those who source it.

require_everything
require_packages python3-venv openssl curl

python="$(python_environment "$PWD/.build-cognito" tools/cognito/requirements.txt)"
# Nothing is left in the repository, and a module is compiled once.
export PYTHONPYCACHEPREFIX="$PWD/.build-cognito/compiled"

tidemark="${TIDEMARK:-}"
if [[ -z "$tidemark" ]]; then
    tidemark="$(swift_build --show-bin-path)/tidemark"
    [[ -x "$tidemark" ]] || swift_build --product tidemark
fi
