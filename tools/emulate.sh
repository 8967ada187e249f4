#!/usr/bin/env bash
# Runs a program on an emulated x86 CPU, to try instructions that this machine lacks, as AVX-512. Bochs boots a small Linux from
# a CD image with the program and its shared libraries, each where it is here. Prints the program's output, exits with its exit
# code (125: there is none). It starts in some 40 s (90 s with torch), and computes some 200 times slower than here; one core.
#
#     tools/emulate.sh [--cpu MODEL] [--tiles] [--with PATH]... [--verbose] BINARY ARGUMENTS...
#
#     --cpu MODEL    corei7_icelake_u (AVX-512 with VNNI; the default), corei7_skylake_x (AVX-512), others: bochs --help cpu
#     --tiles        lets Linux use AMX, where the model has it
#     --with PATH    a file or folder that the program will open
#     --verbose      what Bochs and Linux say, on stderr
#
# Environment variables go along. For instance:
#
#     export LD_LIBRARY_PATH=$PWD/build/release/stand_ins OMP_NUM_THREADS=1
#     tools/emulate.sh --with configs --with tests/fixtures build/release/engine_tests --gtest_filter='Int8.*'
#
# BOCHS names another Bochs than Debian 12's 2.7, without debugger and sound. The model sapphire_rapids of 3.0 has AVX-512 BF16 and,
# with tools/bochs-3.0.patch (which says how it is built) and --tiles, AMX. It may hang: give it a time limit.
set -euo pipefail

cpu=corei7_icelake_u clear=321,323,515,580 said=/dev/null with=()
while [[ ${1-} == --* ]]; do
  case $1 in
    --cpu) cpu=$2 && shift 2 ;;
    --tiles) clear=515,580 && shift ;;
    --with) with+=("$(realpath -s "$2")") && shift 2 ;;
    --verbose) said=/dev/stderr && shift ;;
    *) echo "emulate.sh: no option $1; the first lines of $0 say which there are" >&2 && exit 2 ;;
  esac
done
(($#)) || { sed -n '/^# \{5\}/s/^# *//p' "$0" >&2 && exit 2; }

missing=()
for package in bochs bochsbios vgabios isolinux syslinux-common xorriso cpio kmod busybox-static linux-image-cloud-amd64; do
  dpkg -s "$package" 2>/dev/null | grep '^Status: .* installed' >/dev/null || missing+=("$package")
done
((${#missing[@]} == 0)) || { echo "emulate.sh: apt-get install ${missing[*]}" >&2 && exit 2; }

work=$(mktemp -d) bochs=
trap '[[ -z $bochs ]] || kill "$bochs" || true; rm -rf "$work"' EXIT
trap 'exit 130' INT TERM
first=$work/first disc=$work/disc
mkdir -p "$first"/{dev,cd,new,root} "$disc"/{isolinux,bin,proc,sys,dev,tmp} "$disc$PWD"

# The first process finds the CD, and covers it with memory that can be written.
kernels=(/boot/vmlinuz-*-cloud-amd64)
version=${kernels[-1]#/boot/vmlinuz-}
mapfile -t modules < <(for module in ata_piix sr_mod isofs overlay; do
  modprobe --set-version "$version" --show-depends "$module"
done | awk '$1 == "insmod" && !seen[$2]++ {print $2}')
cp /bin/busybox "${modules[@]}" "$first/"
{
  echo '#!/busybox sh'
  printf '/busybox insmod /%s\n' "${modules[@]##*/}"
  cat <<'END'
/busybox mount -t devtmpfs none /dev
until /busybox mount -t iso9660 -o ro /dev/sr0 /cd; do /busybox sleep 0.1; done
/busybox mount -t tmpfs none /new
/busybox mkdir /new/up /new/work
/busybox mount -t overlay -o lowerdir=/cd,upperdir=/new/up,workdir=/new/work none /root
/busybox mount --move /dev /root/dev
exec /busybox switch_root /root /bin/start
END
} >"$first/init"
chmod +x "$first/init"
(cd "$first" && find . | cpio --quiet -o -H newc) >"$disc/isolinux/initrd"

# The second runs the program. Serial ports: output, errors, exit code, what Linux says.
binary=$(realpath -s "$1") && shift
mapfile -t libraries < <(ldd "$binary" 2>/dev/null | grep -o '/[^ ]*' | sort -u)
for file in /bin/busybox "$binary" "${libraries[@]}" "${with[@]}"; do
  mkdir -p "$disc${file%/*}" && cp -rL "$file" "$disc${file%/*}/"
done
{
  cat <<'END'
#!/bin/busybox sh
busybox mount -t proc none /proc
busybox mount -t sysfs none /sys
for port in 0 1 2; do busybox stty -F /dev/ttyS$port raw 115200; done
END
  export -p | sed -n 's/^declare -x \([A-Za-z0-9_]*=".*"\)$/export \1/p'
  printf 'unset TMPDIR\ncd %q\n' "$PWD" && printf '%q ' "$binary" "$@"
  printf '</dev/null >/dev/ttyS0 2>/dev/ttyS1\necho $? >/dev/ttyS2\nbusybox sleep 1\nbusybox poweroff -f\n'
} >"$disc/bin/start"
chmod +x "$disc/bin/start"

# clearcpuid: xsavec, xsaves, pku, fsrm; as Bochs 2.7 describes them, Linux goes without AVX, or dies. Tiles need the first two.
# no5lvl: leaving system management mode, Bochs 3.0 stops at five levels of pages.
cp "/boot/vmlinuz-$version" "$disc/isolinux/linux"
cp /usr/lib/ISOLINUX/isolinux.bin /usr/lib/syslinux/modules/bios/ldlinux.c32 "$disc/isolinux/"
cat >"$disc/isolinux/isolinux.cfg" <<END
default linux
label linux
  kernel linux
  append initrd=initrd console=ttyS3,115200 clearcpuid=$clear no5lvl tsc_early_khz=100000 tsc=reliable mitigations=off panic=-1
END
xorriso -as mkisofs -R -o "$work/cd.iso" -b isolinux/isolinux.bin -c isolinux/boot.cat -no-emul-boot -boot-load-size 4 \
  -boot-info-table "$disc" >"$work/log" 2>&1 || { cat "$work/log" >&2 && exit 125; }

cd "$work"
mkfifo out err linux
cat >bochsrc <<END
cpu: model=$cpu, ips=100000000
megs: 2048
romimage: file=/usr/share/bochs/BIOS-bochs-latest
vgaromimage: file=/usr/share/vgabios/vgabios.bin
display_library: rfb, options="timeout=0"
ata0-master: type=cdrom, path=cd.iso, status=inserted
boot: cdrom
log: log
panic: action=fatal
END
printf 'com%d: enabled=1, mode=file, dev=%s\n' 1 out 2 err 3 code 4 linux >>bochsrc
debian=()
if [[ -z ${BOCHS-} ]]; then
  echo 'sound: waveoutdrv=dummy, waveindrv=dummy, midioutdrv=dummy' >>bochsrc
  echo continue >commands # to Bochs' debugger
  debian=(-rc commands)
fi
cat out &
cat err >&2 &
cat linux >"$said" &
alone=(unshare --map-root-user --net) # Bochs' display is a VNC server, for nobody
"${alone[@]}" true 2>/dev/null || alone=()
"${alone[@]}" "${BOCHS:-bochs-bin}" -q -f bochsrc "${debian[@]}" </dev/null >"$said" 2>&1 &
bochs=$!
wait "$bochs" || true
bochs=
for port in out err linux; do : <>$port; done # lets go who waits for a machine that did not start
wait
code=$(cat code 2>/dev/null) && [[ $code =~ ^[0-9]+$ ]] && exit "$code"
echo "emulate.sh: the emulated machine stopped before the program ended; --verbose may say why" >&2
exit 125
