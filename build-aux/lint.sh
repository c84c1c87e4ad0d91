#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# lint.sh BUILD_DIR [JUNIT_XML]: formatting, house rules, coverage list, spelling, shell scripts, clang-tidy.
# Exit status 1 when one of them complains.
set -uo pipefail
build=$1 junit=${2:-/dev/null} cases='' status=0

check() { # NAME COMMAND...
    local name=$1 output
    shift
    if output=$("$@" 2>&1); then
        cases+="<testcase classname='lint' name='$name'/>"
    else
        status=1
        printf '%s:\n%s\n' "$name" "$output"
        cases+="<testcase classname='lint' name='$name'><failure/></testcase>"
    fi
}

# shellcheck disable=SC2317 # called by check
tidy() {
    local complaints
    complaints=$(git ls-files 'src/*.c' | grep -v /test- | xargs -P 2 -n 4 clang-tidy --quiet -p "$build" 2>&1 |
        grep -E '(error|warning):' | sort -u)
    [[ -z $complaints ]] || {
        printf '%s\n' "$complaints"
        return 1
    }
}

# shellcheck disable=SC2046 # file names here have no spaces
{
    check format clang-format --dry-run -Werror $(git ls-files '*.c' '*.h')
    check house-rules /usr/bin/python3 build-aux/lint.py
    check coverage /usr/bin/python3 build-aux/coverage.py check tags page gaps
    check build-aux-tests /usr/bin/python3 -B -m unittest discover -s build-aux
    check spelling codespell --ignore-words-list=statics,te,inout,hel,passt,sharable,bridg \
        $(git ls-files | grep -vE '^tests/(data|fuzz/corpus)/|\.pem$|^LICENSE$')
    check shell shellcheck dev .ci/run tests/in-node build-aux/*.sh build-aux/guest/*.sh
    check tidy tidy
}
[[ $junit == /dev/null ]] ||
    printf '<testsuites><testsuite name="lint">%s</testsuite></testsuites>\n' "$cases" >"$junit"
exit $status
