# SPDX-License-Identifier: Apache-2.0
#
# targets.awk -v where=LINES -v json=FILE -v bars=FILE RESULTS: prints the counts of
# e2e/bench/targets.sh as tables. Also writes them to the file json, and as bars for bars.awk to the
# file bars. Exits with 1 if a count is missing.

BEGIN {
	systems = split("walk splice shadow ext4-dax xfs-dax tmpfs", system_name)
	rows = split("read-4k read-64k read-1m read-4m write-4k write-16k write-64k write-1m write-4m " \
		"append-4k append-1m append-4k-fsync open-close stat lookup create create-fsync unlink mkdir rename list-100 map-read map-write", row)
	title["read-4k"] = "read 4 KiB"
	title["read-64k"] = "read 64 KiB"
	title["read-4m"] = "read 4 MiB"
	title["write-16k"] = "overwrite 16 KiB"
	title["write-64k"] = "overwrite 64 KiB"
	title["write-4m"] = "overwrite 4 MiB"
	title["read-1m"] = "read 1 MiB"
	title["write-4k"] = "overwrite 4 KiB"
	title["write-1m"] = "overwrite 1 MiB"
	title["append-4k"] = "append 4 KiB"
	title["append-1m"] = "append 1 MiB"
	title["append-4k-fsync"] = "append 4 KiB, fsync"
	title["open-close"] = "open and close"
	title["stat"] = "stat of a cached name"
	title["lookup"] = "stat of a name not cached"
	title["create"] = "create and close"
	title["create-fsync"] = "create, fsync, close"
	title["unlink"] = "unlink"
	title["mkdir"] = "mkdir"
	title["rename"] = "rename"
	title["list-100"] = "list 100 names"
	title["map-read"] = "map 4 KiB, load, unmap"
	title["map-write"] = "map 4 KiB, store, unmap"
}

NF == 4 && $3 ~ /^[0-9]+$/ {
	n[$1, $2] = $3
	order[++counts] = $1 SUBSEP $2
	if ($4 > widest && $1 != "stargatefs") {
		widest = $4
		widest_of = $2 " in " $1
	}
}

function count(fs, op) {
	if ((fs, op) in n)
		return n[fs, op]
	print "targets: no count for " op " in " fs > "/dev/stderr"
	missing = 1
	return 1
}

# Adds a row to the table of targets: the case, StargateFS's count, the other system and its count,
# and the largest allowed ratio.
function target(what, ours, than, other, most,    share) {
	share = ours / other
	targets[++all] = sprintf("| %s | %s | %s | %s | %.3f | %s | %s |", what, grouped(ours), than, \
		grouped(other), share, most, share <= most ? "met" : "**missed**")
	verdict[all] = sprintf("{ \"case\": \"%s\", \"ours\": %d, \"than\": \"%s\", \"other\": %d, " \
		"\"share\": %.3f, \"at_most\": %s, \"met\": %s }", what, ours, than, other, share, most, \
		share <= most ? "true" : "false")
}

function make_targets(    small, large, key, part, how) {
	target("read 4 KiB", count("walk", "read-4k"), "ext4-dax", count("ext4-dax", "read-4k"), 0.85)
	target("read 4 KiB", count("walk", "read-4k"), "tmpfs", count("tmpfs", "read-4k"), 1)
	target("read 1 MiB", count("walk", "read-1m"), "memcpy", count("memcpy", "memcpy-1m"), 1.05)
	target("read 4 MiB", count("walk", "read-4m"), "memcpy", count("memcpy", "memcpy-4m"), 1.05)
	target("overwrite 1 MiB", count("walk", "write-1m"), "memcpy", count("memcpy", "memcpy-1m"), 1.05)
	target("overwrite 4 MiB", count("walk", "write-4m"), "memcpy", count("memcpy", "memcpy-4m"), 1.05)
	target("overwrite 4 KiB", count("walk", "write-4k"), "ext4-dax", count("ext4-dax", "write-4k"), 0.8)
	target("append 4 KiB", count("walk", "append-4k"), "ext4-dax", count("ext4-dax", "append-4k"), 0.4)
	target("create and unlink", count("walk", "create") + count("walk", "unlink"), "ext4-dax", \
		count("ext4-dax", "create") + count("ext4-dax", "unlink"), 0.5)
	target("create and unlink", count("walk", "create") + count("walk", "unlink"), "tmpfs", \
		count("tmpfs", "create") + count("tmpfs", "unlink"), 1.5)
	target("open and close, two systems", count("two", "open-close"), "tmpfs", \
		count("tmpfs", "open-close"), 1.1)
	target("stat, two systems", count("two", "stat"), "tmpfs", count("tmpfs", "stat"), 1.1)
	for (how = 1; how <= 2; how++) {
		part = how == 1 ? "read" : "write"
		target("first touch, " part, count("walk", "touch-" part), "ext4-dax, 4 KiB faults", \
			count("ext4-dax", "touch-" part "-4k"), 0.05)
		target("first touch, " part, count("walk", "touch-" part), "ext4-dax", \
			count("ext4-dax", "touch-" part), 1)
		target("first touch, " part ", 4 KiB faults", count("walk", "touch-" part "-4k"), \
			"ext4-dax, 4 KiB faults", count("ext4-dax", "touch-" part "-4k"), 1)
	}
	target("first touch, read of a hole", count("walk", "touch-hole"), "ext4-dax", \
		count("ext4-dax", "touch-hole"), 1)
	for (key in n) {
		split(key, part_of, SUBSEP)
		if (part_of[2] ~ /^lookup-[0-9]+$/) {
			how = substr(part_of[2], 8) + 0
			small = !small || how < small ? how : small
			large = how > large ? how : large
		}
	}
	target("a name among " grouped(large), count("stargatefs", "lookup-" large), \
		"among " grouped(small), count("stargatefs", "lookup-" small), 1.2)
	target("an absent name among " grouped(large), count("stargatefs", "absent-" large), \
		"among " grouped(small), count("stargatefs", "absent-" small), 1.2)
	target("read 4 KiB, each of 4 threads", count("walk", "read-4k-by-4"), "1 thread", \
		count("walk", "read-4k-by-1"), 1.05)
	target("overwrite 4 KiB, each of 4 threads", count("walk", "write-4k-by-4"), "1 thread", \
		count("walk", "write-4k-by-1"), 1.05)
}

function write_targets(    i) {
	print "| case | `map=walk` | compared with | its count | ratio | target | |"
	print "|---|---:|---|---:|---:|---:|---|"
	for (i = 1; i <= all; i++)
		print targets[i]
	print ""
}

function write_table(    r, s, text, rule) {
	text = "| instructions for one |"
	rule = "|---|"
	for (s = 1; s <= systems; s++) {
		text = text " " (s <= 3 ? "`map=" system_name[s] "`" : system_name[s]) " |"
		rule = rule "---:|"
	}
	print text "\n" rule
	for (r = 1; r <= rows; r++) {
		text = "| " title[row[r]] " |"
		for (s = 1; s <= systems; s++) {
			text = text " " grouped(count(system_name[s], row[r])) " |"
			print title[row[r]] "\t" system_name[s] "\t" count(system_name[s], row[r]) / \
				count("ext4-dax", row[r]) > bars
		}
		print text
	}
	printf "\nmemcpy: 4 KiB %s, 1 MiB %s, 4 MiB %s; the C library%s: 4 KiB %s, 1 MiB %s, 4 MiB %s.\n", \
		grouped(count("memcpy", "memcpy-4k")), grouped(count("memcpy", "memcpy-1m")), \
		grouped(count("memcpy", "memcpy-4m")), "\047s, by vectors", grouped(count("memcpy", "libc-4k")), \
		grouped(count("memcpy", "libc-1m")), grouped(count("memcpy", "libc-4m"))
	printf "The tables use the least of the repeats. The median of the repeats was at most %.1f %% above\n", widest / 100
	print "the least (" widest_of ")."
}

# Returns the number of instructions that the map mode saves, compared with map=walk. The number is
# negative if the mode needs more.
function saved(way, op) {
	return count("walk", op) - count(way, op)
}

# A map mode may make create (or open) more expensive. Returns the number of operations that
# compensate this, or "never".
function until(way, op,    more) {
	more = -saved(way, "create")
	if (saved(way, op) <= 0)
		return "never"
	return more <= 0 ? "at once" : int((more + saved(way, op) - 1) / saved(way, op))
}

function write_ways(    ops, op, i) {
	ops = split("read-4k read-64k read-1m write-4k write-16k write-64k write-1m append-4k create", op)
	print "\n| instructions saved compared with `map=walk` | `map=splice` | `map=shadow` |"
	print "|---|---:|---:|"
	for (i = 1; i <= ops; i++)
		printf "| %s | %s | %s |\n", title[op[i]], grouped(saved("splice", op[i])), grouped(saved("shadow", op[i]))
	for (i = 1; i <= ops - 2; i++)
		printf "| uses of a new file until it has saved its extra cost: %s | %s | %s |\n", title[op[i]], \
			until("splice", op[i]), until("shadow", op[i])
}

function write_json(    i, part) {
	print "{\n  \"where\": " quoted(where) ",\n  \"targets\": [" > json
	for (i = 1; i <= all; i++)
		print "    " verdict[i] (i < all ? "," : "") > json
	print "  ],\n  \"instructions\": [" > json
	for (i = 1; i <= counts; i++) {
		split(order[i], part, SUBSEP)
		printf "    { \"system\": \"%s\", \"operation\": \"%s\", \"instructions\": %d }%s\n", part[1], \
			part[2], n[order[i]], i < counts ? "," : "" > json
	}
	print "  ]\n}" > json
}

END {
	print "title\tInstructions of one operation, beside ext4 on the same memory with DAX (1)" > bars
	make_targets()
	write_targets()
	write_table()
	write_ways()
	if (missing)
		exit 1
	write_json()
}
