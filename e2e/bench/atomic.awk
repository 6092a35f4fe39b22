# SPDX-License-Identifier: Apache-2.0
#
# Makes tables of docs/performance/atomic.md from the lines of e2e/bench/atomic:
#
#   write HOW BYTES WAY INSTRUCTIONS FENCES LINES STORED
#   read - OVERWRITES WAY INSTRUCTIONS ...
#   mix NAME THREADS WAY LOOPS n RATE r CPU_US c
#   stored NAME WAY LOOPS n LINES l BYTES b ASKED a
#   kernel SYSTEM OPERATION INSTRUCTIONS SPREAD
#   database NAME TWICE TRANSACTIONS CALLS BYTES FSYNCS SECONDS

function more(a, b) { return b ? sprintf("%+.0f %%", 100 * (a / b - 1)) : "" }
function size(n) { return n < 1024 ? n " bytes" : n / 1024 " KiB" }
function key(i) { return order[i] }
function note(k) { if (!(k in seen)) { seen[k] = 1; order[++rows] = k } }
function median(list,   v, n, i, j, t) {
	n = split(list, v, " ")
	for (i = 2; i <= n; i++)
		for (j = i; j > 1 && v[j - 1] + 0 > v[j] + 0; j--) { t = v[j]; v[j] = v[j - 1]; v[j - 1] = t }
	return v[int((n + 1) / 2)] + 0
}

$1 == "write" || $1 == "read" {
	k = $1 SUBSEP $2 SUBSEP $3
	note(k)
	instructions[k, $4] = $5; fences[k, $4] = $6; lines[k, $4] = $7; stored[k, $4] = $8
	has[$1] = 1
}
$1 == "mix" {
	k = $1 SUBSEP $2 SUBSEP $3
	note(k)
	rate[k, $4] = rate[k, $4] " " $8
	cpu[k, $4] = cpu[k, $4] " " $10
	has[$1] = 1
}
$1 == "stored" {
	lines[$2, $3] = $7 / $5
	bytes[$2, $3] = $9 / $11
	has["stored"] = 1
}
$1 == "kernel" {
	name = $3
	sub(/-fsync$/, "", name)
	k = $1 SUBSEP "-" SUBSEP name
	note(k)
	instructions[k, $2] = $4
	has[$1] = 1
}

function writes(   i, p, k) {
	print "\nInstructions of one write, with the later reclaim of old pages:\n"
	print "| bytes | in place | atomic | more than in place | copies of pages | atomic against these | page log | against copies |"
	print "|---|---:|---:|---:|---:|---:|---:|---:|"
	for (i = 1; i <= rows; i++) {
		split(key(i), p, SUBSEP); k = key(i)
		if (p[1] != "write") continue
		printf "| %s, %s | %d | %d | %s | %d | %s | %d | %s |\n", size(p[3]), p[2],
			instructions[k, "place"], instructions[k, "atomic"],
			more(instructions[k, "atomic"], instructions[k, "place"]),
			instructions[k, "cow"], more(instructions[k, "atomic"], instructions[k, "cow"]),
			instructions[k, "pagelog"], more(instructions[k, "pagelog"], instructions[k, "cow"])
	}
	print "\nFences, cache lines written back, and bytes stored for each byte asked, of one write:\n"
	print "| bytes | fences: in place | atomic | copies | page log | lines: in place | atomic | copies | page log | stored: in place | atomic | copies | page log | atomic against copies |"
	print "|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|"
	for (i = 1; i <= rows; i++) {
		split(key(i), p, SUBSEP); k = key(i)
		if (p[1] != "write") continue
		printf "| %s, %s", size(p[3]), p[2]
		printf " | %.1f | %.1f | %.1f | %.1f", fences[k, "place"], fences[k, "atomic"], fences[k, "cow"], fences[k, "pagelog"]
		printf " | %.0f | %.0f | %.0f | %.0f", lines[k, "place"], lines[k, "atomic"], lines[k, "cow"], lines[k, "pagelog"]
		printf " | %.2f | %.2f | %.2f | %.2f", stored[k, "place"] / p[3], stored[k, "atomic"] / p[3],
			stored[k, "cow"] / p[3], stored[k, "pagelog"] / p[3]
		printf " | %s |\n", more(stored[k, "atomic"], stored[k, "cow"])
	}
}

function reads(   i, p, k, first) {
	print "\nInstructions of a read of 4 KiB, after so many overwrites of 64 bytes of each page:\n"
	print "| overwrites | in place | atomic | more than after none | page log | more than after none |"
	print "|---:|---:|---:|---:|---:|---:|"
	for (i = 1; i <= rows; i++) {
		split(key(i), p, SUBSEP); k = key(i)
		if (p[1] != "read") continue
		if (!first) first = k
		printf "| %d | %d | %d | %s | %d | %s |\n", p[3], instructions[k, "place"],
			instructions[k, "atomic"], more(instructions[k, "atomic"], instructions[first, "atomic"]),
			instructions[k, "pagelog"], more(instructions[k, "pagelog"], instructions[first, "pagelog"])
	}
}

function mixes(   i, p, k, r) {
	print "\nLoops for each second, and microseconds of processor time for each loop:\n"
	print "| mix, threads | in place | atomic | copies of pages | atomic against copies | against in place | time: in place | atomic | copies | atomic against copies | against in place |"
	print "|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|"
	for (i = 1; i <= rows; i++) {
		split(key(i), p, SUBSEP); k = key(i)
		if (p[1] != "mix") continue
		for (r in rate) if (index(r, k SUBSEP) == 1) {
			m[r] = median(rate[r]); c[r] = median(cpu[r])
		}
		printf "| %s, %s | %d | %d | %d | %s | %s | %.1f | %.1f | %.1f | %s | %s |\n", p[2], p[3],
			m[k, "place"], m[k, "atomic"], m[k, "cow"], more(m[k, "atomic"], m[k, "cow"]),
			more(m[k, "atomic"], m[k, "place"]), c[k, "place"], c[k, "atomic"], c[k, "cow"],
			more(c[k, "atomic"], c[k, "cow"]), more(c[k, "atomic"], c[k, "place"])
	}
}

function amounts(   i, name, names) {
	print "\nBytes stored for each byte asked, and cache lines written back in each loop:\n"
	print "| mix | stored: in place | atomic | copies of pages | lines: in place | atomic | copies | atomic against copies |"
	print "|---|---:|---:|---:|---:|---:|---:|---:|"
	split("varmail webproxy", names, " ")
	for (i = 1; i <= 2; i++) {
		name = names[i]
		printf "| %s | %.3f | %.3f | %.3f | %.0f | %.0f | %.0f | %s |\n", name, bytes[name, "place"],
			bytes[name, "atomic"], bytes[name, "cow"], lines[name, "place"], lines[name, "atomic"],
			lines[name, "cow"], more(lines[name, "atomic"], lines[name, "cow"])
	}
}

function kernel(   i, p, k) {
	print "\n| operation | in place | atomic | more than in place | ext4-dax, not atomic | ext4, data=journal and fsync | atomic against the latter |"
	print "|---|---:|---:|---:|---:|---:|---:|"
	for (i = 1; i <= rows; i++) {
		split(key(i), p, SUBSEP); k = key(i)
		if (p[1] != "kernel") continue
		printf "| %s | %d | %d | %s | %d | %d | %s |\n", p[3], instructions[k, "inplace"],
			instructions[k, "atomic"], more(instructions[k, "atomic"], instructions[k, "inplace"]),
			instructions[k, "ext4-dax"], instructions[k, "ext4-journal"],
			more(instructions[k, "atomic"], instructions[k, "ext4-journal"])
	}
}

$1 == "database" {
	k = $1 SUBSEP "-" SUBSEP $2
	note(k)
	for (i = 5; i <= 8; i++)
		each[k, $3, i] = $i / $4
	has[$1] = 1
}

function databases(   i, p, k) {
	print "\n| database, for each transaction | bytes: twice | once | change | writes: twice | once | fsyncs: twice | once | ms: twice | once |"
	print "|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|"
	for (i = 1; i <= rows; i++) {
		split(key(i), p, SUBSEP); k = key(i)
		if (p[1] != "database") continue
		printf "| %s | %d | %d | %s | %.1f | %.1f | %.1f | %.1f | %.1f | %.1f |\n", p[3],
			each[k, "on", 6], each[k, "off", 6], more(each[k, "off", 6], each[k, "on", 6]),
			each[k, "on", 5], each[k, "off", 5], each[k, "on", 7], each[k, "off", 7],
			1000 * each[k, "on", 8], 1000 * each[k, "off", 8]
	}
}

END {
	if ("database" in has) databases()
	if ("write" in has) writes()
	if ("read" in has) reads()
	if ("mix" in has) mixes()
	if ("stored" in has) amounts()
	if ("kernel" in has) kernel()
}
