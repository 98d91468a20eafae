# SPDX-License-Identifier: Apache-2.0
# Stage `boot` of .ci/packages: the packages in a machine that boots.
ls "$work"/result/ofqos_*.deb >/dev/null 2>&1 ||
    { echo "packages: there are no packages: run the stage build first" >&2; exit 1; }
make_root boot
home=$root/home/newcomer
cp "$work"/result/*.deb "$home/"
mkdir "$home/ofqos" "$home/older"            # a working copy, with the packages above it
copy_source "$home/ofqos"
# What the packages depend on is fetched now: the machine will have no network.
# Python is there before: apt keeps it afterwards because others suggest it.
logged boot-fetch in_root "$root" /home/newcomer "sudo apt-get update
sudo apt-get install --yes python3
sudo apt-get install --yes --download-only ./*.deb python3-aiohttp python3-prometheus-client python3-yaml"
keep_packages "$root"

# The version before: the same files under a lower number.
for package in ofqos python3-ofqos ofqos-wireshark; do
    dpkg-deb -R "$home"/${package}_*.deb "$work/older"
    sed -i 's/^Version: .*/Version: 0.1~before-1/' "$work/older/DEBIAN/control"
    dpkg-deb --build "$work/older" "$home/older/$package.deb" >/dev/null
    rm -rf "$work/older"
done
chown -R --reference="$home" "$home"

if ! boot_root "$root"; then
    echo "not booted: systemd-nspawn can't here ($(tail -n 1 "$work/log/boot" | tr -d '\r'))"
    echo "instead the unit's command runs in the root, and must tell that it is ready"
    logged boot-commands in_root "$root" /home/newcomer/ofqos "$(scripts/doc-commands docs/how-to/install.md debian-install)"
    tests/packages/unbooted "$root"
    return 0
fi

# files: what is there, but for logs, caches, and what apt, dpkg and systemd write down
files() {
    in_machine find / -xdev \( -path /proc -o -path /sys -o -path /dev -o -path /tmp -o -path /home \
        -o -path /var/log -o -path /var/cache -o -path /var/lib/apt -o -path /var/lib/dpkg \
        -o -path /var/lib/systemd -o -path /etc/ld.so.cache \) -prune -o -print | sort
}
# present: also packages, and what runs
present() { files; in_machine find /run -maxdepth 1 -name '*ofqos*'; in_machine dpkg-query -W -f '${Package} ${Status}\n'; }

present >"$work/log/before"

echo "--- the first minutes of a newcomer"
install_page() { scripts/doc-commands docs/how-to/install.md "$1"; }
tests/packages/newcomer-network | in_machine bash -eu
logged newcomer-install as_newcomer /home/newcomer/ofqos "$(install_page debian-install)"
logged newcomer-start as_newcomer /home/newcomer/ofqos "$(install_page debian-start)"
logged newcomer-group as_newcomer /home/newcomer/ofqos "$(install_page debian-group)"
logged newcomer-use as_newcomer /home/newcomer/ofqos "$(install_page debian-use)"
logged newcomer as_newcomer /home/newcomer/ofqos tests/packages/newcomer
cat "$work/log/newcomer-start" "$work/log/newcomer-use" "$work/log/newcomer" | grep -v '^+* *$' | tail -n 60

echo "--- the services, as docs/how-to/ofqosd.md has them"
logged services-install as_newcomer /home/newcomer/ofqos "$(scripts/doc-commands docs/how-to/ofqosd.md ofqosd-install)"
logged services-start as_newcomer /home/newcomer/ofqos "$(scripts/doc-commands docs/how-to/ofqosd.md ofqosd-start)"
logged services as_newcomer /home/newcomer/ofqos tests/packages/services ||
    { in_machine journalctl --no-pager -n 40 -u ofqosd; exit 1; }
tail -n 20 "$work/log/services"

echo "--- the unit"
in_machine systemd-analyze verify --man=no ofdatapath@br0.service
in_machine systemd-analyze security ofdatapath@br0.service | tail -n 1
tests/packages/unit-checks | in_machine bash -eu ||
    { in_machine journalctl --no-pager -n 40 -u ofdatapath@br0; exit 1; }

echo "--- upgrade, removal, purge"
logged downgrade in_machine apt-get install --yes --allow-downgrades /home/newcomer/older/ofqos.deb
before=$(in_machine systemctl show -P MainPID ofdatapath@br0)
logged upgrade in_machine apt-get install --yes $(cd "$home" && ls ofqos_*.deb | sed 's,^,/home/newcomer/,')
after=$(in_machine systemctl show -P MainPID ofdatapath@br0)
[ "$after" != 0 ] && [ "$before" != "$after" ] || { echo "packages: the upgrade did not restart br0" >&2; exit 1; }
in_machine dpctl br0 features >/dev/null
logged remove in_machine apt-get remove --yes ofqos
! in_machine systemctl is-active --quiet ofdatapath@br0 || { echo "packages: br0 still runs" >&2; exit 1; }
in_machine test -e /etc/ofqos/br0.conf
logged again in_machine apt-get install --yes $(cd "$home" && ls *ofqos*.deb | grep -v dbgsym | sed 's,^,/home/newcomer/,')
in_machine test -x /usr/sbin/ofdatapath
logged purge in_machine apt-get purge --yes --autoremove ofqos python3-ofqos ofqos-wireshark python3-aiohttp \
    python3-prometheus-client python3-yaml
present >"$work/log/after"
# The newcomer's files stay, and a user's number is never given to another.
if diff "$work/log/before" "$work/log/after" | grep '^[<>]' |
    grep -v -x -e '> /etc/ofqos' -e '> /etc/ofqos/br0.conf' -e '> /etc/ofqos/ofqosd.yaml' -e '> /etc/ofqos/users.yaml' | head -n 40 | grep .; then
    echo "packages: this was left behind, or is gone" >&2
    exit 1
fi
echo "nothing is left but /etc/ofqos/br0.conf, which the newcomer wrote"
halt_machine
