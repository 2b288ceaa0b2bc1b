# What tools/demo, tools/test and .ci/run share: finding or installing what they need.
# Sourced by bash, from the top of the repository.
# shellcheck shell=bash

# Prints a line to standard error and ends the script.
fail() {
    printf '%s: %s\n' "${0##*/}" "$1" >&2
    exit 1
}

# Debug builds have the store optimised, with its assertions (see Package.swift): tests then take
# less than half the time. TIDEMARK_OPTIMISED= in front of a script leaves it out.
export TIDEMARK_OPTIMISED="${TIDEMARK_OPTIMISED-1}"

# Builds as `swift build` does, and in the same way each time: the package manager hands a package's
# traits to the compiler in the order of a set, and whenever that is another one than at the build
# before, all of the package is compiled anew.
swift_build() { # ARGUMENTS...
    SWIFT_DETERMINISTIC_HASHING=1 swift build "$@" </dev/null
}

# A seed of 48 random bits: the two highest bytes of a simulated seed say its traits.
random_seed() { printf '0x%s' "$(od -An -N6 -tx1 /dev/urandom | tr -d ' \n')"; }

# Ends the script unless a Swift toolchain is on the path.
require_swift() {
    command -v swift >/dev/null \
        || fail "no 'swift' on the path; install the toolchain from https://swift.org/install"
}

# Installs those of the named Debian packages that are missing. Without root it prints the exact
# command instead and ends the script.
require_packages() {
    command -v dpkg-query >/dev/null \
        || fail "this is no Debian system; install by hand what these packages hold: $*"
    local package missing=()
    for package in "$@"; do
        [[ "$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null)" == installed ]] \
            || missing+=("$package")
    done
    ((${#missing[@]})) || return 0

    if ((EUID != 0)); then
        local command="sudo apt-get update && sudo apt-get install -y ${missing[*]}"
        fail "packages are missing; run: $command"
    fi
    echo "installing ${missing[*]}"
    export DEBIAN_FRONTEND=noninteractive
    # The lists of a fresh machine are empty or old; they are fetched only if it turns out so.
    apt-get install -y -qq "${missing[@]}" </dev/null >/dev/null 2>&1 && return 0
    apt-get update -qq </dev/null >/dev/null || fail "'apt-get update' failed; is there a network?"
    apt-get install -y -qq "${missing[@]}" </dev/null >/dev/null \
        || fail "cannot install ${missing[*]}; see the message above"
}

# The packages that the build needs, and the records that demo and tests work on.
require_everything() {
    require_swift
    require_packages git pkg-config liblz4-dev libxxhash-dev unicode-data
}

# Python with the packages that a file names, in an environment of its own below a directory; made
# anew only if what is wanted has changed. Prints the interpreter's path.
python_environment() { # DIRECTORY REQUIREMENTS
    local python="$1/python/bin/python3"
    if ! cmp -s "$2" "$1/requirements.txt" || [[ ! -x "$python" ]]; then
        rm -rf "$1/python"
        mkdir -p "$1"
        python3 -m venv "$1/python"
        # Compiled as they are imported: most of the modules never are.
        "$python" -m pip install --quiet --disable-pip-version-check --no-compile -r "$2" >&2
        cp "$2" "$1/requirements.txt"
    fi
    printf '%s\n' "$python"
}
