# SPDX-License-Identifier: Apache-2.0
# The steps that tests/run and tests/cross/run are made of.  To be sourced after sums.sh; $results is
# a directory of the run's own.

cross=() slower=1 # meson's cross file, and how much longer its tests may take

targets=() # of ninja; all when there is none

heading() { printf '\n=== %d:%02d %s\n' $((SECONDS / 60)) $((SECONDS % 60)) "$*"; step_began=$SECONDS; }

# build DIRECTORY OPTION...: configure (once) and build; output only when it fails
build() {
    local dir=$1 log=$results/build.log
    shift
    heading "build $dir ($*)"
    if [ -e "$dir/build.ninja" ]; then
        meson configure "$dir" "$@" >"$log" 2>&1
    else
        meson setup "$dir" "$@" "${cross[@]}" >"$log" 2>&1
    fi && ninja -k 0 -C "$dir" "${targets[@]}" >"$log" 2>&1 && {
        passed=$((passed + 1)); note "build $dir" ok
        return 0
    }
    grep -E -A 8 'FAILED|error:|ERROR' "$log" || tail -n 40 "$log"
    fail "build $dir" "see above"
    return 1
}

# meson_test DIRECTORY [TEST...] -> ok, bad, skip
meson_test() {
    local log=$results/meson.log
    meson test -C "$1" --no-rebuild --print-errorlogs -t "$slower" "${@:2}" 2>&1 | tee "$log"
    meson_sums "$log" "${PIPESTATUS[0]}"
}

# c_tests DIRECTORY [TEST...]: the cmocka programs, the golden files, the fuzzers' corpora
c_tests() {
    heading "meson test in $1"
    local ok bad skip
    meson_test "$1" "${@:2}"
    cp "$1/meson-logs/testlog.txt" "$results/testlog-$1.txt"
    count "meson test $1" "$ok" "$bad" "$skip"
}

# finish [LINE...]: what could not be tested, after the LINEs; the sums
finish() {
    heading 'Not tested here, and why'
    [ $# = 0 ] || printf '      %s\n' "$@"
    /usr/bin/python3 tests/support/untested.py "$results"
    skipped=$(cat "$results/untested")
    heading Summary
    printf '%s\n' "${summary[@]}"
    echo "$passed passed, $failed failed, $skipped skipped"
    [ "$failed" = 0 ]
}
