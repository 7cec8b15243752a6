#!/bin/sh
# full_disk.sh FOLDER KB COMMAND...: the command in a copy of the folder, on a disk with so many
# kilobytes free, and once more when there is room. For root: `unshare --mount full_disk.sh ...`.
# Prints what the first start said, its exit code, and each file that it left; the copy of the
# second start goes to FOLDER.after.
set -eu
folder=$1 free=$2
shift 2
disk=$folder.disk
mkdir "$disk"
mount -t tmpfs -o size=256m none "$disk"
cp -a "$folder/." "$disk"
cd "$disk"
before=$(find . -type f | sort)
used=$(df -k --output=used . | tail -1)
mount -o remount,size=$((used + free))k "$disk"
"$@" >/tmp/said.$$ 2>&1 && code=0 || code=$?
cat /tmp/said.$$
rm /tmp/said.$$
echo "exit code $code"
find . -type f | sort | while read -r name; do
    echo "$before" | grep -qxF "$name" || echo "left $name"
done
mount -o remount,size=256m "$disk"
"$@" >/dev/null
cp -a . "$folder.after"
