# SPDX-License-Identifier: Apache-2.0
#
# Writes the results of e2e/bench/quick, for e2e/bench/report. Exits with 1 if a figure is missing.

BEGIN {
	shown["call"] = shown["read-1"] = shown["read-4k"] = 1
	systems = split("tmpfs ext4-dax walk splice shadow", system_name)
	rows = split("read-4k read-1m write-4k write-1m append-4k append-4k-fsync open-close stat " \
		"lookup create create-fsync unlink", row)
}

NF == 3 && $3 ~ /^[0-9]+$/ {
	if (!(($1, $2) in first)) {
		first[$1, $2] = $3
		next
	}
	# The lower count is correct, because other work of the kernel can only add instructions.
	n[$1, $2] = $3 < first[$1, $2] ? $3 : first[$1, $2]
	if (!($2 in shown))
		next
	differs = $3 > first[$1, $2] ? $3 / first[$1, $2] - 1 : first[$1, $2] / $3 - 1
	if (differs > most) {
		most = differs
		loosest = $1 ", " $2
	}
}

function write_json(    s, r, sep) {
	printf "{\n  \"machine\": \"%s\",\n  \"date\": \"%s\",\n  \"commit\": \"%s\",\n", \
		machine, date, commit > json
	printf "  \"unit\": \"instructions per operation\",\n  \"results\": {\n" > json
	for (s = 1; s <= systems; s++) {
		printf "    \"%s\": {", system_name[s] > json
		sep = ""
		for (r in all_ops) {
			printf "%s\"%s\": %d", sep, r, n[system_name[s], r] > json
			sep = ", "
		}
		printf "}%s\n", s < systems ? "," : "" > json
	}
	printf "  }\n}\n" > json
	close(json)
}

function line(text) { print text }

# A read consists of the system call itself, the path to the bytes, and the copy.
function write_parts(    s, name) {
	line("| parts of a read of 4 KiB | entry to and exit from the kernel | path to the bytes | the copy |")
	line("|---|---:|---:|---:|")
	for (s = 1; s <= systems; s++) {
		name = system_name[s]
		line(sprintf("| %s | %s | %s | %s |", name, grouped(n[name, "call"]), \
			grouped(n[name, "read-1"] - n[name, "call"]), \
			grouped(n[name, "read-4k"] - n[name, "read-1"])))
	}
}

function write_page() {
	line(sprintf("The largest difference between two measurements was %.1f %% (%s).", \
		100 * most, loosest))
	line("")
	line("- machine: " machine)
	sub(/ $/, "", command)
	line("- command: `" command "`")
	line("- each figure: the lesser of two means of 2 000 operations of a warm loop, by")
	line("  [icount.c](../../e2e/programs/icount.c)")
	line("- " date ", commit " commit)
	line("")
	write_parts()
}

END {
	for (key in n) {
		split(key, part, SUBSEP)
		all_ops[part[2]] = 1
	}
	for (s = 1; s <= systems; s++)
		for (r in all_ops)
			if (!((system_name[s], r) in n)) {
				print "report: no figure for " r " in " system_name[s] > "/dev/stderr"
				missing = 1
			}
	for (r = 1; r <= rows; r++)
		if (!(row[r] in all_ops))
			missing = 1
	if (missing)
		exit 1
	write_json()
	write_page()
}
