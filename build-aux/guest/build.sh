#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# build.sh IMAGES_DIR CACHE_DIR: makes the tiny guest, as the image chandler/tiny:latest below IMAGES_DIR.
#
# CACHE_DIR/vmlinuz and CACHE_DIR/initrd.img are its kernel and initramfs, for tests that need no image. Kernel arguments that the guest
# knows: `noagent` (do not start the agent), `shell` (a shell on the console instead of a login).
#
# Debian's cloud kernel, and an initramfs with busybox and the real qemu-guest-agent: what is needed to see a guest boot, log in, talk to
# its agent and shut down. The kernel's package is downloaded and unpacked, not installed. Quick when nothing changed.
set -euo pipefail
images=$(readlink -m "$1") cache=$(readlink -m "$2") # the steps below change directory
here=$(dirname "$(readlink -f "$0")")
layout=$images/chandler/tiny:latest

say() { printf 'guest: %s\n' "$*" >&2; }
die() {
    printf 'guest: %s\n' "$*" >&2
    exit 1
}

# What the guest is made of; a change of any makes it anew.
fingerprint() {
    dpkg-query -W -f '${Package} ${Version}\n' busybox-static qemu-guest-agent libc6
    cat "$here"/build.sh "$here"/oci-layout.py "$here"/root/*
    echo "$kernel_package"
}

find_kernel() { apt-cache depends linux-image-cloud-amd64 2>/dev/null | awk '/Depends: linux-image-/ { print $2; exit }'; }

kernel_package=$(find_kernel)
if [[ -z $kernel_package ]]; then
    say "reading Debian's package lists"
    apt-get update -qq || true
    kernel_package=$(find_kernel)
fi
[[ -n $kernel_package ]] || die "Debian's package linux-image-cloud-amd64 is not known here: is main in /etc/apt/sources.list?"
mkdir -p "$cache"
# Two runs at once would build in the same place: the second waits, and then finds what the first made.
exec 9>"$cache/lock"
flock --nonblock 9 || {
    say "waiting for another build of the guest in $cache"
    flock --timeout 900 9 || die "another build of the guest in $cache does not end"
}
fingerprint | sha256sum >"$cache/fingerprint.new"
if [[ -f $layout/index.json ]] && cmp -s "$cache/fingerprint.new" "$layout/fingerprint"; then
    exit 0
fi

# --- the kernel ------------------------------------------------------------------------------------

unpacked=$cache/$kernel_package
if [[ ! -d $unpacked/boot ]]; then
    say "downloading $kernel_package"
    rm -rf "$unpacked" "$cache"/*.deb
    (cd "$cache" && apt-get download -qq "$kernel_package" >"$cache/download.log" 2>&1) || {
        cat "$cache/download.log" >&2
        die "the kernel's package could not be downloaded; if it is not found, try apt-get update"
    }
    dpkg -x "$cache/$kernel_package"_*.deb "$unpacked"
fi
version=${kernel_package#linux-image-}

# --- the initramfs ---------------------------------------------------------------------------------

root=$cache/root
rm -rf "$root"
mkdir -p "$root"/{bin,sbin,dev,proc,sys,run,tmp,mnt,root,etc/acpi,usr/sbin,var,"lib/modules/$version"}
ln -s ../run "$root/var/run"
install -m 0755 "$(command -v busybox)" "$root/bin/busybox"
for applet in $(busybox --list); do
    [[ $applet == busybox ]] || ln -s busybox "$root/bin/$applet"
done
ln -s bin/busybox "$root/init"
install -m 0755 "$here/root/rcS" "$here/root/udhcpc" "$root/etc/"
install -m 0755 "$here/root/guest-agent" "$here/root/console" "$root/sbin/"
install -m 0755 "$here/root/power-button" "$root/etc/acpi/power-button"
ln -s ../bin/poweroff "$root/sbin/shutdown" # what guest-shutdown calls
install -m 0644 "$here"/root/{inittab,passwd,issue} "$root/etc/"
install -m 0644 /usr/lib/os-release "$root/etc/os-release"
echo 'button/power power-button' >"$root/etc/acpid.conf"

agent=$(command -v qemu-ga)
install -m 0755 "$agent" "$root/usr/sbin/qemu-ga"
while read -r library; do
    install -D -m 0755 "$library" "$root$library"
done < <(ldd "$agent" | grep -o '/[^ ]*')

for module in virtio_pci virtio_console virtio-rng virtio_balloon virtio_net virtio_blk button evdev af_packet \
    virtio virtio_ring virtio_pci_modern_dev virtio_pci_legacy_dev failover net_failover rng-core cdrom isofs; do
    file=$(find "$unpacked/lib/modules/$version" -name "$module.ko" -print -quit)
    [[ -z $file ]] || install -D -m 0644 "$file" "$root/lib/modules/$version/${file#"$unpacked/lib/modules/$version/"}"
done
busybox depmod -b "$root" "$version"

(cd "$root" && find . | LC_ALL=C sort | cpio --quiet --create --format=newc --owner=0:0) >"$cache/initrd.img"

cp "$unpacked/boot/vmlinuz-$version" "$cache/vmlinuz"

# --- the image -------------------------------------------------------------------------------------

rm -rf "$layout"
/usr/bin/python3 "$here/oci-layout.py" "$layout" latest \
    "boot/vmlinuz=$cache/vmlinuz" "boot/initrd.img=$cache/initrd.img"
mv "$cache/fingerprint.new" "$layout/fingerprint"
say "chandler/tiny:latest is in $images ($(du -sh "$layout" | cut -f1))"
