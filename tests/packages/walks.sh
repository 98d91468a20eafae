# SPDX-License-Identifier: Apache-2.0
# Stage `walks` of .ci/packages: operator, student and engineer, each on a bare Debian (tests/packages/walk).
for walk in ${walks:-operator student engineer}; do
    make_root "$walk"
    mount --bind "$root" "$root"        # ip netns wants / to be a mount point
    copy_source "$root/home/newcomer/ofqos"
    [ "$walk" = engineer ] || cp "$work"/result/*.deb "$root/home/newcomer/" ||
        { echo "packages: there are no packages: run the stage build first" >&2; exit 1; }
    chown -R --reference="$root/home/newcomer" "$root/home/newcomer/ofqos"
    within "$root" newcomer; newcomer=("${within[@]}")
    within "$root" root
    tests/packages/walk "$walk" "${newcomer[@]}" -- "${within[@]}"
    keep_packages "$root"
    remove_root "$root"
done
