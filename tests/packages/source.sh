# SPDX-License-Identifier: Apache-2.0
# Stage `source` of .ci/packages: from source.
make_root source
copy_source "$root/home/newcomer/ofqos"
chown -R --reference="$root/home/newcomer" "$root/home/newcomer/ofqos"
logged source-commands in_root "$root" /home/newcomer/ofqos "sudo apt-get update
$(scripts/doc-commands docs/how-to/install.md source)
ofdatapath=/usr/local/sbin/ofdatapath
\$ofdatapath --version
dpctl --version
getent group ofqos
systemd-analyze verify --man=no ofdatapath@br0.service
sudo ninja -C build uninstall
test ! -e /usr/local/bin/dpctl"
keep_packages "$root"
remove_root "$root"
