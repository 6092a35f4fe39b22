#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The tools as a user calls them: output, refusals and exit statuses. mkfs_test.sh and
# stargatectl_test.sh test the single options of mkfs and stargatectl.
# shellcheck source=kernel/tests/lib/tools.sh
source "$(dirname "$0")/../lib/tools.sh"

# --- all tools ------------------------------------------------------------------------------

for tool in "$mkfs" "$fsck" "$ctl"; do
	expect 0 "$tool" -h
	says '^Usage: '
	expect 0 "$tool" --version
	says '^[a-z.]+ [0-9.]+ \(format [0-9]+\)$'
done
# --help, the manual page and the completion have the same options, and all of them exist.
for tool in "$mkfs" "$fsck" "$ctl"; do
	name=$(basename "$tool")
	silent=--none # an option that the help does not list
	[[ $tool != "$mkfs" ]] || silent=--base
	help_agrees "$tool" 8 "$silent"
	while read -r option; do
		! "$tool" "$option" 2>&1 </dev/null | grep -qE 'no option|unrecognized|invalid' ||
			fail "$name: the help lists $option, but the tool refuses it"
		checks=$((checks + 1))
	done <in-help
	failure=1
	[[ $tool != "$fsck" ]] || failure=8
	expect "$failure" sh -c "'$tool' --help >/dev/full"
	expect "$failure" sh -c "'$tool' --version >/dev/full"
done
refuses 2 "there is no option '--bogus'" "$mkfs" --bogus

# stargatefs(5) describes all interfaces in the module's source: each mount option with its values,
# each file in sysfs with its keys, each tracepoint.
module=$src/../module
page=$man/stargatefs.5
tr -s ' (),{}|"=.' '\n' <"$page" | sed 's/\\-/-/g; s/^\\f.//' | sort -u >words

# explained FILE LEAST: FILE has at least LEAST lines, and the page has each of them as a word.
explained() {
	[[ $(wc -l <"$1") -ge $2 ]] || fail "too few $1 found in the source"
	! comm -23 <(sort -u "$1") words | grep . >err || fail "missing in stargatefs.5: $1"
	: >err
	checks=$((checks + $(wc -l <"$1")))
}

sed -nE 's/^\tfsparam_[a-z0-9]+\("([a-z_]+)".*/\1/p' "$module/options.c" >options
[[ $(wc -l <options) -eq $(grep -c 'fsparam_' "$module/options.c") ]] ||
	fail "the test has missed a mount option in options.c"
explained options 8
while read -r option; do
	grep -qE "^\.B[RI]* $option(= |$)" "$page" ||
		fail "stargatefs.5 has no paragraph on $option"
done <options
sed -nE 's/^\t\{ "([a-z-]+)", SGFS_.*/\1/p' "$module/options.c" >values
explained values 6
sed -nE 's/^(ATTRIBUTE|PRIVATE|COMMAND|SETTING)\(([a-z_]+)\);.*/\2/p' "$module/sysfs.c" >attributes
[[ $(wc -l <attributes) -eq $(grep -o '[a-z]*_attribute\.attr' "$module/sysfs.c" | wc -l) ]] ||
	fail "the test has missed an attribute in sysfs.c"
explained attributes 15
while read -r attribute; do
	grep -qx "\.B $attribute" "$page" || fail "stargatefs.5 has no paragraph on $attribute"
done <attributes
{
	grep -oE '"[^"]*%[^"]*"' "$module/sysfs.c" | sed 's/\\n/\n/g; s/"//g' |
		sed -nE 's/^([a-z_]+) %llu$/\1/p'
	sed -n '/names\[SGFS_COUNTS\]/,/};/p' "$module/sysfs.c" | grep -oE '"[a-z_]+"' | tr -d '"'
} >keys
explained keys 25
grep -hoE '^(TRACE_EVENT\(|DEFINE_EVENT\([a-z_]+, )[a-z_]+' "$module/trace.h" | grep -oE '[a-z_]+$' >tracepoints
explained tracepoints 9
# If a formatter is installed, it reports nothing about the pages.
if command -v groff >/dev/null; then
	for page in "$man"/*.[1-8]; do
		expect 0 groff -man -Tutf8 -ww -z "$page"
		[[ ! -s err ]] || fail "$page"
	done
fi

# --- mkfs -----------------------------------------------------------------------------------

expect 1 "$mkfs" nothing.img
complains 'nothing.img: there is no such file or device; .*--size'
expect 1 "$mkfs" --size 32M v.img
complains 'give the address where VMs map it, e.g. --phys 16G'
rm -f v.img
expect 2 "$mkfs" --size 32M --phys 4097 v.img
complains "--phys '4097': must be 2M to 4095T, a multiple of 2M"
expect 2 "$mkfs" --size 1M --phys 16G v.img
complains "--size '1M': must be 16M to 64T"
[[ ! -e v.img ]] || fail "a refused command has made the file"
expect 0 "$mkfs" -n --size 32M --phys 16G v.img
says 'as it would be made'
[[ ! -e v.img ]] || fail "a dry run has made the file"
expect 0 "$mkfs" --size 32M --phys 16G -L first -U 12345678-9abc-def0-1234-56789abcdef0 v.img
says 'base +0x400000000'
says 'label +first'
[[ $(stat -c %s v.img) -eq $((32 << 20)) ]] || fail "the volume has a wrong size"
cp v.img made.img
expect 1 "$mkfs" --phys 16G v.img
complains 'holds a StargateFS \(first, 12345678-9abc-def0-1234-56789abcdef0\); give -f'
same v.img made.img
expect 0 "$mkfs" -n -f --phys 16G v.img
same v.img made.img
expect 0 "$mkfs" -f --json --phys 18G --param host-splice --areas 3 v.img
json 'd["phys"] == 18 << 30 and d["size"] == 32 << 20 and d["areas"] == 3'
json 'd["host_splice"] and d["made"]'
expect 0 "$ctl" info --json v.img
case $(stat -f -c %T .) in
tmpfs|hugetlbfs) json 'd["write_back"].startswith("not needed: the memory is lost")' ;;
*) json 'd["write_back"] == "needed"' ;;
esac
expect 2 "$mkfs" --areas 17 --phys 16G v.img
complains "--areas '17': must be 1 to 16"
expect 2 "$mkfs" --param nonsense --phys 16G v.img
expect 2 "$mkfs" --phys 16G v.img v.img
expect 1 "$mkfs" -f --size 16M --phys 16G v.img
complains 'more than --size says'

# Other file systems, and other contents with a known signature.
truncate -s 32M other.img
poke other.img 0x438 '\x53\xef'
expect 1 "$mkfs" --phys 16G other.img
complains 'holds ext2, ext3 or ext4; give -f to overwrite'
expect 0 "$mkfs" -f --phys 16G other.img
expect 0 "$fsck" -n other.img
truncate -s 32M lvm.img
poke lvm.img 512 'LABELONE'
expect 1 "$mkfs" --phys 16G lvm.img
complains 'an LVM physical volume'
truncate -s 32M mbr.img
poke mbr.img 446 '\x80\0\0\0\x83'
poke mbr.img 510 '\x55\xaa'
expect 1 "$mkfs" --phys 16G mbr.img
complains 'a partition table'

# --- put and get ----------------------------------------------------------------------------

expect 0 "$mkfs" -f --phys 16G -L box v.img
mkdir -p tree/sub/deeper
echo hello >tree/hello
head -c 5000000 /dev/urandom >tree/sub/random
truncate -s 50M tree/sub/holes
printf x | dd of=tree/sub/holes bs=1 seek=30000000 conv=notrunc status=none
ln -s ../hello tree/sub/link
for i in $(seq 500); do echo "$i" >"tree/sub/deeper/file $i"; done
chmod 640 tree/hello
touch -d '2040-01-02 03:04:05.678 UTC' tree/hello
expect 0 "$ctl" put -r v.img tree /
expect 0 "$fsck" -n v.img
says 'v.img: clean; 508 inodes'
expect 0 "$ctl" get -r v.img /tree back
diff -r tree back >/dev/null || fail "the tree differs after put and get"
[[ $(readlink back/sub/link) == ../hello ]] || fail "the link has a wrong target"
[[ $(stat -c '%a %y' back/hello) == $(stat -c '%a %y' tree/hello) ]] ||
	fail "mode or time differ after put and get"
[[ $(stat -c %b back/sub/holes) -lt 100 ]] || fail "get has filled holes"
expect 0 "$ctl" cat v.img /tree/hello /tree/sub/link
printf 'hello\nhello\n' | cmp -s - out || fail "cat prints other bytes"
expect 0 "$ctl" cat v.img /tree/sub/random
same out tree/sub/random
expect 1 "$ctl" cat v.img /tree
complains '/tree: Is a directory'
expect 1 "$ctl" cat v.img /tree/none
complains '/tree/none: No such file or directory'
expect 1 "$ctl" put v.img tree /
complains 'Is a directory'
expect 0 "$ctl" put v.img tree/sub/random /tree/hello
expect 0 "$ctl" cat v.img /tree/hello
same out tree/sub/random
expect 0 "$ctl" put -r v.img tree/sub/. /new
[[ ! -s err ]] || fail "put -r prints an error"
expect 0 "$ctl" ls v.img /tree
printf 'hello\nsub\n' | cmp -s - out || fail "ls prints other names"
expect 0 "$ctl" ls -l v.img /tree/sub
says '^lrwxrwxrwx .* link -> ../hello$'
says '^-rw-r--r-- .* 5000000 .* random$'
expect 0 "$ctl" --json ls -r v.img /tree
json 'sorted(x["path"] for x in d["directories"]) == ["/tree", "/tree/sub", "/tree/sub/deeper"]'
json '[len(x["entries"]) for x in d["directories"] if x["path"].endswith("deeper")] == [500]'
expect 0 "$ctl" --json stat v.img /tree/sub/holes
json 'd["size"] == 50 << 20 and d["table"]["height"] >= 1 and len(d["table"]["runs"]) == 1'
json 'd["table"]["runs"][0]["page"] == 30000000 // 4096'
json 'int(d["table"]["runs"][0]["phys"], 16) - int(d["table"]["runs"][0]["offset"], 16) == 16 << 30'
expect 0 "$ctl" stat v.img /tree/hello
says '^type: file$'
says '    page 0  pages '
expect 0 "$ctl" mkdir -p v.img /a/b/c
expect 0 "$ctl" mkdir -p v.img /a/b/c
expect 1 "$ctl" mkdir v.img /a
complains '/a: File exists'
expect 1 "$ctl" rm v.img /tree
complains '/tree: Is a directory'
expect 0 "$ctl" --json df v.img
json 'd["free"] + d["used"] == d["size"] and d["inodes_used"] > 500'
expect 0 "$ctl" rm -r v.img /tree /a
expect 1 "$ctl" ls v.img /tree
expect 0 "$ctl" label v.img 'other name'
expect 0 "$ctl" label v.img
[[ $(cat out) == 'other name' ]] || fail "label prints another label"
expect 0 "$fsck" -n v.img
says clean
expect 0 "$ctl" --json info v.img
json 'd["label"] == "other name" and d["base"] == "0x400000000" and d["state"] == "clean"'
head -c 40000000 /dev/zero | tr '\0' x >large
expect 1 "$ctl" put v.img large /
complains 'No space left in the volume'
refuses 1 '/large: No such file' "$ctl" cat v.img /large
expect 0 "$fsck" -n v.img

# --- dump -----------------------------------------------------------------------------------

for what in super hot slots journal ledger chunks 'inode <1>' 'dir /' 'table /new/random' \
	'xattr /'; do
	# shellcheck disable=SC2086
	expect 0 "$ctl" dump v.img $what
	# shellcheck disable=SC2086
	expect 0 "$ctl" --json dump v.img $what
	json 'len(d) > 0'
done
expect 0 "$ctl" --json dump v.img chunks 0 3
json 'len(d["chunks"]) == 3 and d["chunks"][0]["used"] > 0'
expect 0 "$ctl" --json dump v.img dir /
json 'd["entries"] == 1 and len(d["tree"]) == 1'
offset=$("${python[@]}" -c 'import json; print(json.load(open("out"))["tree"][0]["bucket"])')
expect 0 "$ctl" dump v.img bucket "$offset"
says 'names: 1'
expect 1 "$ctl" dump v.img bucket 12
expect 2 "$ctl" dump v.img nothing
complains "no structure 'nothing'"
expect 2 "$ctl" nonsense v.img
expect 2 "$ctl" ls
expect 2 "$ctl"

# --- fsck -----------------------------------------------------------------------------------

cp v.img clean.img
for mode in -n -p -y; do
	expect 0 "$fsck" "$mode" v.img
	same v.img clean.img # fsck changes no byte
done
chmod 400 v.img # a check needs no write permission
expect 0 "$fsck" v.img
chmod 600 v.img

# record PATH [IMAGE]: prints the offset of the inode's record.
record() {
	"$ctl" --json dump "${2:-v.img}" inode "$1" |
		"${python[@]}" -c 'import json, sys; print(json.load(sys.stdin)["record"])'
}

# A finding that needs a decision: a file of unknown type.
poke v.img "$(record /new/random) + 25" '\0'
cp v.img damaged.img
# If the output cannot be written, the exit status reports that. The output never goes into the
# volume.
for where in '>/dev/full' '>&-' '>&- 2>&-'; do
	for how in -n '-n --json'; do
		expect 12 sh -c "'$fsck' $how v.img $where"
		[[ $where == *2* ]] || complains 'the output cannot be written: '
		expect 8 sh -c "'$fsck' $how clean.img $where"
	done
	for how in -y '-y --json'; do
		cp damaged.img closed.img
		expect 9 sh -c "'$fsck' $how closed.img $where"
		[[ $where == *2* ]] || complains 'the output cannot be written: '
		expect 0 "$fsck" -n closed.img
		[[ ! -s err ]] || fail "$how $where: the output was written into the volume"
	done
done
expect 4 "$fsck" -n v.img
says '^inode [0-9]+ \(/new/random\): .*unknown; its name says'
says 'damaged; repair it with -y'
same v.img damaged.img
expect 4 "$fsck" -p v.img
says 'needs a decision'
expect 1 "$fsck" -y v.img
says ': repaired$'
expect 0 "$fsck" -n v.img
expect 0 "$ctl" cat v.img /new/random
same out tree/sub/random

# A finding that preening may repair: the superblock, from its backup.
poke v.img 40 'garbage'
expect 4 "$fsck" -n v.img
expect 1 "$fsck" -p v.img
same v.img v.img
expect 0 "$fsck" --json -n v.img
json 'd["found"] == 0 and d["status"] == 0 and d["findings"] == []'
expect 0 "$ctl" label v.img

# A directory's name is lost: fsck saves the directory's contents.
poke v.img "$offset + 64" "$(printf '\\0%.0s' $(seq 1024))"
expect 4 "$fsck" --json -n v.img
json 'd["found"] > 0 and d["repaired"] == 0 and d["status"] == 4 and "inode" in d["findings"][0]'
expect 1 "$fsck" -y v.img
expect 0 "$fsck" -n v.img
expect 0 "$ctl" ls v.img /lost+found
says '^#[0-9]+$'
expect 0 "$ctl" cat v.img "/lost+found/$(cat out)/random"
same out tree/sub/random

# The volume is smaller than its file, so the backup superblock is in the middle of the file.
truncate -s 50M v.img
expect 0 "$fsck" -n v.img
poke v.img 8 'gone'
expect 4 "$fsck" -n v.img
says 'using the backup superblock of a volume of 32 MiB' err
refuses 1 'first superblock is damaged: fsck.stargatefs -y can repair it' "$ctl" info v.img
cp v.img damaged.img
poke v.img 0 "$(printf '\\0%.0s' $(seq 4096))"
for how in '' -n; do # mkfs refuses to make a new volume where fsck would find the old one
	refuses 1 'first superblock is damaged; fsck.stargatefs -y can repair it' "$mkfs" $how \
		--phys 16G v.img
	refuses 1 'first superblock is damaged; fsck.stargatefs -y can repair it' "$mkfs" $how \
		--phys 16G damaged.img
done
refuses 1 'first superblock is damaged: fsck.stargatefs -y can repair it' "$ctl" info v.img
refuses 1 'first superblock is damaged: fsck.stargatefs -y can repair it' "$ctl" put v.img tree/sub/random
expect 0 "$mkfs" -f -n --phys 16G v.img
expect 1 "$fsck" -y v.img
expect 0 "$ctl" cat v.img "/lost+found/$("$ctl" ls v.img /lost+found)/random"
same out tree/sub/random
expect 0 "$fsck" -n v.img
[[ ! -s err ]] || fail "fsck still uses the backup superblock"
truncate -s 32M v.img

# quietly_hopeless PATTERN: the error is one line that matches PATTERN, without advice that cannot
# help.
quietly_hopeless() {
	complains "$1"
	! grep -q 'mkfs\|run fsck' err || fail "the error has advice that cannot help"
	[[ ! -s out ]] || fail "the command prints more than the error"
}
cp v.img cut.img
truncate -s 20M cut.img
cp cut.img cut.was
for mode in -n -y; do
	expect 8 "$fsck" "$mode" cut.img
	quietly_hopeless 'cut short: the volume has 32 MiB, and only 20 are here; give it its full size'
done
same cut.img cut.was
truncate -s 32M ext4.img
poke ext4.img 0x438 '\x53\xef'
expect 8 "$fsck" -y ext4.img
quietly_hopeless 'holds ext2, ext3 or ext4, not a StargateFS'
# A new file system over a volume leaves the volume's backup superblock, which is not used any more.
cp clean.img over.img
poke over.img 0 "$(printf '\\0%.0s' $(seq 4096))"
poke over.img 0x438 '\x53\xef'
cp over.img over.was
for mode in -p -y; do
	expect 8 "$fsck" "$mode" over.img
	quietly_hopeless 'holds ext2, ext3 or ext4, and remains of an older StargateFS'
done
same over.img over.was
for how in -f --force-live; do
	expect 8 "$fsck" -y $how over.img
	says 'give --force-foreign to repair' err
done
same over.img over.was
expect 16 "$fsck" -y --force over.img # a destructive option has no abbreviation
expect 1 "$fsck" -y --force-foreign over.img
expect 0 "$fsck" -n over.img
poke v.img 200 'gone'
poke v.img $(((32 << 20) - 4096 + 200)) 'gone'
expect 8 "$fsck" -y v.img
quietly_hopeless 'superblock and backup are damaged.*restore the volume from a backup'
poke v.img 0 "$(printf '\\0%.0s' $(seq 512))"
poke v.img $(((32 << 20) - 4096)) "$(printf '\\0%.0s' $(seq 512))"
expect 8 "$fsck" -y v.img
quietly_hopeless 'holds no superblock of a StargateFS'
expect 8 "$fsck" -n none.img
complains 'none.img: cannot be opened'
expect 16 "$fsck" -n -y clean.img
expect 16 "$fsck"
truncate -s 1M tiny.img
expect 8 "$fsck" tiny.img
complains 'smallest volume is 16 MiB'

# --- another system -------------------------------------------------------------------------

# A killed tool leaves its slot taken; a live tool excludes other tools.
cp clean.img v.img
mkfifo pipe
"$ctl" put v.img pipe /piped >put.out 2>&1 &
beater=$!
for _ in $(seq 100); do
	"$ctl" --json slots v.img >out 2>/dev/null
	"${python[@]}" -c 'import json, sys; sys.exit(json.load(open("out"))["taken"] != 1)' && break
	sleep 0.05
done
json 'd["taken"] == 1 and d["slots"][0]["kind"] == "tool" and d["slots"][0]["state"] == "live"'
# systems does not show a version that would reverse the rest of the line.
cp v.img turned.img
poke turned.img 0x20b8 '1\xe2\x80\xae2\0'
expect '*' "$ctl" systems turned.img
says '^ *0 '
! grep -q $'\xe2\x80\xae' out || fail "the version reverses the direction of the row"
expect 1 "$ctl" mkdir v.img /refused
complains 'in use by process [0-9]+ on'
expect 0 "$ctl" ls v.img /
says 'shown as it would be after recovery' err
expect 0 "$fsck" -n v.img
says 'clean after recovery'
# The option -f is harmless in other checkers. Here it does not fence a live system either.
for how in -p -y '-p -f' '-y -f' '-f -a'; do
	# shellcheck disable=SC2086 # words
	expect 8 "$fsck" $how v.img
	complains 'in use by process [0-9]+ on'
done
expect 8 "$fsck" --json -y v.img
json 'd["status"] == 8 and d["truncated"] == False'
"$ctl" --json slots v.img >out 2>/dev/null
json 'd["taken"] == 1 and d["slots"][0]["state"] == "live"'
cp v.img live.img
expect 1 "$fsck" -y --force-live live.img
says 'warning: live.img: fences all systems that use it' err
expect 1 "$mkfs" -f --phys 16G v.img
complains 'give --force-live'
for how in '' -f -n; do # mkfs reports a system that uses the volume before missing options
	# shellcheck disable=SC2086 # none, or a word
	expect 1 "$mkfs" $how v.img
	complains '1 system\(s\) use this StargateFS'
done
kill -9 "$beater"
wait "$beater" 2>/dev/null || true
beater=
expect 1 "$fsck" -y v.img
says 'clean, recovered'
expect 0 "$fsck" -y v.img
expect 0 "$mkfs" -f --phys 16G v.img

# --- an inode file that cannot be found -----------------------------------------------------

rm -rf many && mkdir many
for i in $(seq 100); do echo "$i" >"many/$i"; done
rm -f w.img
expect 0 "$mkfs" --size 16M --phys 16G w.img
expect 0 "$ctl" put -r w.img many /many
cp w.img whole.img
# the offsets of its root word in the hot page, and of the copy
root=0x1430 copy=$(((16 << 20) - 4096 + 1024))
zeros='\0\0\0\0\0\0\0\0'

all_there() {
	expect 0 "$fsck" -n w.img
	rm -rf back
	expect 0 "$ctl" get -r w.img /many back
	for i in $(seq 100); do same "many/$i" "back/$i"; done
}

# One valid word is enough for any repair, also for preening. The other word may have any value.
for at in $root $copy; do
	for bytes in "$zeros" '\x77' '\x63\x0f\xff'; do
		cp whole.img w.img
		poke w.img "$at" "$bytes"
		expect 4 "$fsck" -n w.img
		says 'repair it with -y'
		! grep -q lost out || fail "fsck reports a loss, but nothing is lost"
		expect 1 "$fsck" -p w.img
		! grep -q lost out || fail "fsck reports a loss, but nothing is lost"
		all_there
	done
done

# If both words are lost, a repair frees no page of a lost file, and prints no advice that cannot
# help. When the test restores the word, all files are accessible again.
cp whole.img w.img
poke w.img $root "$zeros"
poke w.img $copy "$zeros"
expect 4 "$fsck" -n w.img
for _ in 1 2; do
	expect 4 "$fsck" -y w.img
	says 'the inode file is lost'
	says '^102 inodes cannot be reached'
	says 'damaged beyond repair; restore it from a backup'
	! grep -q 'with -y\|use -y' out || fail "fsck advises the option that has just failed"
	! grep -q 'belong to nothing.*repaired' out || fail "fsck has freed pages of lost files"
done
expect 4 "$fsck" -n w.img
says 'damaged beyond repair'
! grep -q 'with -y' out || fail "fsck advises an option that cannot help"
dd if=whole.img of=w.img bs=1 skip=$((root)) seek=$((root)) count=8 conv=notrunc status=none
expect 1 "$fsck" -y w.img
all_there

# --- the root directory is lost with other records: the losses are reported -----------------

cp whole.img w.img
offset=$(record / w.img)
poke w.img "$offset & ~4095" "$(printf '\\0%.0s' $(seq 4096))" # zeroes the records of 15 inodes
expect 4 "$fsck" -n w.img
says '^14 inodes are lost: '
expect 1 "$fsck" -y w.img
says '^14 inodes are lost: 0 files, 1 directories, 13 of other or unknown kind$'
says '^87 inodes had no name left and are in /lost\+found$'
expect 0 "$fsck" -n w.img
expect 0 "$ctl" --json ls w.img /lost+found
json 'len(d["directories"][0]["entries"]) == 87'

echo "$checks checks"
