#!/bin/sh
# growing_disk.sh CHECKOUT PYTHON: the study `mini` of a checkout, its results on a disk that is
# larger at each start, until there is room for all. For root: `unshare --mount growing_disk.sh ...`.
set -eu
cd "$1"
mkdir -p results
mount -t tmpfs -o size=8k none results
for kilobytes in 100 400 800 1200 2000 32000; do
    mount -o remount,size=${kilobytes}k results
    echo "== $kilobytes KB"
    "$2" -m snakemake --cores 2 --config study=mini 2>&1 && break
    find results -name '.*.part' -o -name '.tmp-*'
done
mkdir copied
cp -a results/. copied
umount results
rmdir results
mv copied results
