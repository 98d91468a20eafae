# SPDX-License-Identifier: Apache-2.0
# Stage `evaluate` of .ci/packages: docs/how-to/evaluate.md on a bare Debian, block by block, with the time of each.
make_root evaluate
mount --bind "$root" "$root"        # ip netns wants / to be a mount point
copy_source "$root/home/newcomer/ofqos"
chown -R --reference="$root/home/newcomer" "$root/home/newcomer/ofqos"
logged evaluate-update in_root "$root" /home/newcomer 'sudo apt-get update'
for step in $(sed -n 's/^<!-- run: \(.*\) -->$/\1/p' docs/how-to/evaluate.md); do
    began=$SECONDS
    logged "evaluate-$step" in_root "$root" /home/newcomer/ofqos "$(scripts/doc-commands docs/how-to/evaluate.md "$step")"
    keep_packages "$root"
    printf '%-10s %4d s\n' "$step" $((SECONDS - began))
done
remove_root "$root"
