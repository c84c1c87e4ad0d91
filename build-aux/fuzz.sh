#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# fuzz.sh BUILD_DIR SECONDS [JUNIT_XML]: every fuzzer for some seconds, from its committed corpus, as many at a time
# as there are processors.
# What it finds stays in BUILD_DIR/findings.
set -uo pipefail
build=$1 seconds=$2 junit=${3:-/dev/null} cases='' status=0

# shellcheck disable=SC2317 # called by the shells of xargs
fuzz_one() { # FUZZER SECONDS WORK_DIR CORPUS
    mkdir -p "$3/corpus"
    "$1" -max_total_time="$2" -timeout=60 -rss_limit_mb=1024 -artifact_prefix="$3/" "$3/corpus" "$4" >"$3/log" 2>&1 && touch "$3/passed"
}
export -f fuzz_one

names=$(cd "$build/tests/fuzz" && find . -maxdepth 1 -type f -executable -name 'fuzz-*' -printf '%f\n' | sort)
for name in $names; do
    rm -f "$build/findings/$name/passed"
    printf '%s\0' "$build/tests/fuzz/$name" "$seconds" "$build/findings/$name" "tests/fuzz/corpus/${name#fuzz-}"
done | xargs -0 -P "$(nproc)" -n 4 bash -c 'fuzz_one "$@"' fuzz_one

for name in $names; do
    if [[ -f $build/findings/$name/passed ]]; then
        cases+="<testcase classname='fuzz' name='$name'/>"
    else
        status=1
        printf '%s failed:\n' "$name"
        tail -n 30 "$build/findings/$name/log"
        cases+="<testcase classname='fuzz' name='$name'><failure/></testcase>"
    fi
done
[[ -n $cases ]] || status=1
[[ $junit == /dev/null ]] ||
    printf '<testsuites><testsuite name="fuzz">%s</testsuite></testsuites>\n' "$cases" >"$junit"
exit $status
