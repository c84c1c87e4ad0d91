#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# run.sh BUILD_DIR [--keep]: boots the tiny guest through the whole chain, and shows how its start went.
set -euo pipefail
here=$(dirname "$(readlink -f "$0")")
build=$(readlink -f "$1")
keep=${2:-}
[[ -z $keep || $keep == --keep ]] || {
    printf 'run: unexpected argument %s (--keep is the only one)\n' "$keep" >&2
    exit 1
}
chandler=$build/src/chandler
CHANDLER_STATE=$(mktemp -d /var/tmp/chandler-run.XXXXXX)
export CHANDLER_STATE

# The kept guest image makes the second run quick.
say() { printf '\033[1m== %s\033[0m\n' "$*" >&2; }

clean_up() {
    local status=$?
    trap - EXIT INT TERM
    if ((status != 0)) && [[ -d $CHANDLER_STATE/log ]]; then
        say "it failed; the last lines of the logs in $CHANDLER_STATE/log:"
        tail -n 5 "$CHANDLER_STATE"/log/*.log >&2 || true
    fi
    "$chandler" down >&2 || "$chandler" down --keep-vms >&2 || true
    rm -rf "$CHANDLER_STATE"
    exit "$status"
}
trap clean_up EXIT
trap 'exit 130' INT TERM

say "building the tiny guest, unless it is there"
"$here/guest/build.sh" "$build/guest/images" "$build/guest/cache"
mkdir -p "$CHANDLER_STATE"
ln -s "$build/guest/images" "$CHANDLER_STATE/images"

say "chandler run examples/tiny.yaml"
"$chandler" run "$here/../examples/tiny.yaml"

say "what the guest says on its serial console"
"$chandler" console tiny --log | tail -n 3
printf '\n'

if [[ $keep == --keep ]]; then
    trap - EXIT INT TERM
    cat <<END

It is left running. Try, as root:
  export CHANDLER_STATE=$CHANDLER_STATE PATH=$build/src:\$PATH
  chandler get                      chandler console tiny     (log in as root; Ctrl-] leaves)
  chandler timeline tiny            chandler delete tiny      (the guest shuts down)
  KUBECONFIG=$CHANDLER_STATE/kubeconfig kubectl get vmi,pods,events
  chandler down                     (ends everything); rm -r $CHANDLER_STATE
END
    exit 0
fi
say "shutting the guest down, cleaning up"
