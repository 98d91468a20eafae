# SPDX-License-Identifier: Apache-2.0
# What tests/run makes of the programs that it runs: how many passed, failed, were skipped.  To be
# sourced; $results is a directory of the run's own.
#
# Whatever ends badly without saying how many tests failed counts as one that did.  A test that failed has failed:
# none runs a second time.

passed=0 failed=0 summary=()
step_began=0 took='' # the step's seconds, where it has not gone on in the foreground

note() { summary+=("$(printf '%5d s  %-34s %s' "${took:-$((SECONDS - step_began))}" "$1" "$2")"); }
fail() { failed=$((failed + 1)); note "$1" "FAILED: $2"; }

count() {
    passed=$((passed + $2)) failed=$((failed + $3))
    note "$1" "$2 passed, $3 failed, $4 skipped"
}

# left_out NAME NUMBER REASON: tests that can't be run here
left_out() {
    note "$1" "skipped: $3"
    printf '%s\t%s\n' "$2" "$1: $3" >>"$results/left-out"
}

add_up() { local sum; read -r sum || sum=0; echo $((${sum:-0})); }

# meson_sums LOG STATUS: what `meson test` said at its end -> ok, bad, skip
meson_sums() {
    ok=$(sed -n 's/^\(Ok\|Expected Fail\): *//p' "$1" | paste -sd+ | add_up)
    bad=$(sed -n 's/^\(Fail\|Unexpected Pass\|Timeout\): *//p' "$1" | paste -sd+ | add_up)
    skip=$(sed -n 's/^Skipped: *//p' "$1" | paste -sd+ | add_up)
    [ "$2" = 0 ] || [ "$bad" -gt 0 ] || bad=1
}

# pytest_sums LOG STATUS: pytest's own last line -> ok, bad, skip
pytest_sums() {
    local line errors
    line=$(grep -E '^=+ .* in [0-9.]+s' "$1" | tail -n 1)
    ok=$(grep -oE '[0-9]+ passed' <<<"$line" | cut -d' ' -f1)
    bad=$(grep -oE '[0-9]+ failed' <<<"$line" | cut -d' ' -f1)
    errors=$(grep -oE '[0-9]+ errors?' <<<"$line" | cut -d' ' -f1)
    skip=$(grep -oE '[0-9]+ skipped' <<<"$line" | cut -d' ' -f1)
    ok=$((${ok:-0})) bad=$((${bad:-0} + ${errors:-0})) skip=$((${skip:-0}))
    # 5: nothing was selected.
    [ "$2" = 0 ] || [ "$2" = 5 ] || [ "$bad" -gt 0 ] || bad=1
}

# pytest_count NAME STATUS LOG: counts what pytest did
pytest_count() {
    local ok bad skip
    pytest_sums "$3" "$2"
    count "$1" "$ok" "$bad" "$skip"
}
