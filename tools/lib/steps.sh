# Steps of a long script: each has its output kept, its seconds measured and its outcome noted, and
# a table of all of them ends the run. What .ci/run and tools/long share.
# Sourced by bash behind tools/lib/setup.sh.
# shellcheck shell=bash

steps="$(mktemp -d)"
steps_started=$SECONDS

# Puts into `spent` the processor seconds that the ended children of this shell have taken. Of a
# subshell it would be none, so nothing is printed.
children_seconds() {
    local file="$steps/times.$BASHPID"
    times >"$file"
    spent="$(awk 'NR == 2 {
        for (i = 1; i <= 2; i++) { split($i, t, /[ms]/); total += t[1] * 60 + t[2] }
        printf "%d", total
    }' "$file")"
}

# Runs a command as a step, its output shown and kept. Its status is that of the command. Call it,
# and beside, where 'set -e' holds, not in a condition: there no command of a function would end it.
step() { # NAME COMMAND...
    local name=$1 started=$SECONDS before spent status=0 log
    shift
    log="$(mktemp "$steps/XXXXXX.log")"
    children_seconds
    before=$spent
    printf '\n### %s (after %d s)\n' "$name" "$((SECONDS - steps_started))"
    # In the background, so that 'set -e' ends a function that is run, and not the step.
    "$@" </dev/null > >(tee "$log") 2>&1 &
    wait $! || status=$?
    children_seconds
    printf '%s\t%s\t%s\t%s\t%s\t%s\n' "$((started - steps_started))" "$((SECONDS - started))" \
        "$((spent - before))" "$status" "$log" "$name" >>"$steps/rows"
    return "$status"
}

# Runs functions of steps beside each other; of each, what it printed is shown when it has ended.
# Ends with 1 if one of them failed.
beside() { # FUNCTION...
    local lane failures=0
    declare -A lanes
    for lane in "$@"; do
        "$lane" >"$steps/$lane.lane" 2>&1 &
        lanes[$lane]=$!
    done
    for lane in "$@"; do
        wait "${lanes[$lane]}" || failures=$((failures + 1))
        cat "$steps/$lane.lane"
    done
    return $((failures > 0))
}

# The end of a script's whole run: seconds of each step in the order of their starts, then what of
# the steps that failed says why, and last the seeds that they fail with. Returns 1 if one failed.
steps_end() {
    local started seconds processor status log name logs=() failed=()
    printf '\n### steps: seconds from the start, seconds, seconds of a processor\n'
    while IFS=$'\t' read -r started seconds processor status log name; do
        printf '%6d %6d %6d  %-7s %s\n' "$started" "$seconds" "$processor" \
            "$([[ $status == 0 ]] && echo passed || echo FAILED)" "$name"
        logs+=("$log")
        [[ $status == 0 ]] || failed+=("$log" "$name")
    done < <(sort -n "$steps/rows" || true)
    printf '%6s %6d         in all\n' '' "$((SECONDS - steps_started))"
    local index
    for ((index = 0; index < ${#failed[@]}; index += 2)); do
        printf '\n### %s failed; the end of its output:\n' "${failed[index + 1]}"
        { grep -F '✘' "${failed[index]}" || tail -n 25 "${failed[index]}"; } | tail -n 40
    done
    for ((index = 0; index < ${#failed[@]}; index += 2)); do
        grep -ohE '(TIDEMARK_SEED|again: |seed )[^,]*0x[0-9a-f]+.*' "${failed[index]}" | sort -u \
            | tail -n 5 | sed "s|^|${failed[index + 1]}: |" || true
    done
    # What the test runner said, once more at the very end.
    ((${#failed[@]})) || grep -haE 'Test run with [0-9]+ tests? ' "${logs[@]}" | tail -n 2 || true
    rm -rf "$steps"
    return $((${#failed[@]} > 0))
}
