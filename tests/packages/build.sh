# SPDX-License-Identifier: Apache-2.0
# Stage `build` of .ci/packages: $work/result has the packages.
make_root build
source=$root/home/newcomer/ofqos
copy_source "$source"
chown -R --reference="$root/home/newcomer" "$source"
logged build-commands in_root "$root" /home/newcomer/ofqos "sudo apt-get update
$(scripts/doc-commands docs/how-to/install.md debian-build)"
keep_packages "$root"
rm -rf "$work/result"
mkdir "$work/result"
cp "$root"/home/newcomer/*.deb "$work/result/"

# Again at another place, with another clock and umask, and with the source package; without tests.
version=$(dpkg-parsechangelog -l debian/changelog -S Version)
again=$root/home/newcomer/elsewhere
copy_source "$again/ofqos-${version%-*}"
(cd "$again" && tar --sort=name --mtime="@$(dpkg-parsechangelog -l "$OLDPWD/debian/changelog" -S Timestamp)" \
    --owner=0 --group=0 --numeric-owner --exclude=debian -cJf "ofqos_${version%-*}.orig.tar.xz" "ofqos-${version%-*}")
chown -R --reference="$root/home/newcomer" "$again"
DEB_BUILD_OPTIONS='nocheck' logged build-again in_root "$root" "/home/newcomer/elsewhere/ofqos-${version%-*}" \
    'umask 027; export TZ=Asia/Kathmandu; touch debian/rules; dpkg-buildpackage -us -uc'
cp "$again"/*.dsc "$again"/*.tar.xz "$again"/*.changes "$again"/*.buildinfo "$work/result/"
for package in "$work"/result/*.deb; do
    cmp "$package" "$again/$(basename "$package")" ||
        { echo "packages: $(basename "$package") is not reproducible" >&2; exit 1; }
done
echo "a second build gives the same packages"

lintian --allow-root --fail-on error,warning --tag-display-limit 0 "$work"/result/*.changes
echo "lintian: no error, no warning"

printf '%-40s %9s %9s\n' package 'kB' 'installed, kB'
for package in "$work"/result/*.deb; do
    printf '%-40s %9d %9d\n' "$(basename "$package")" $(($(stat -c %s "$package") / 1000)) \
        "$(dpkg-deb --field "$package" Installed-Size)"
done
