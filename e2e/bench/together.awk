# SPDX-License-Identifier: Apache-2.0
#
# Prints the results of e2e/bench/together.sh as tables. Exits with 1 if a figure is missing.

BEGIN {
	systems = split("stargatefs 9p virtiofs virtiofs-auto", system_name)
	rows = split("create-apart create-together stat-apart stat-together stat-same write-apart " \
		"write-together write-same", row)
	title["create-apart"] = "create, close, unlink; a directory each"
	title["create-together"] = "create, close, unlink; in one directory"
	title["stat-apart"] = "stat; a directory each"
	title["stat-together"] = "stat; files of one directory"
	title["stat-same"] = "stat; one file"
	title["write-apart"] = "overwrite 4 KiB; a directory each"
	title["write-together"] = "overwrite 4 KiB; files of one directory"
	title["write-same"] = "overwrite 4 KiB; one file"
	waits = split("pass ring-flock ring-posix cut cut-mapped cut-mapped-churn", wait_row)
	title["pass"] = "write of 8 bytes, until another system that always reads sees them"
	title["ring-flock"] = "flock: one system releases the lock; another one gets it"
	title["ring-posix"] = "fcntl: one system releases the lock; another one gets it"
	title["cut"] = "truncate by 64 KiB; no system maps the file"
	title["cut-mapped"] = "truncate by 64 KiB; another system maps the file and reads it"
	title["cut-mapped-churn"] = "the same, while two other systems create and remove names"
	properties = split("lock-flock lock-posix absent-then-made present-then-removed contents size " \
		"append store cut-mapping orphan", property)
	title["lock-flock"] = "`flock` of one system excludes the other system"
	title["lock-posix"] = "`fcntl` lock of one system excludes the other system"
	title["absent-then-made"] = "an absent name appears when the other system creates it"
	title["present-then-removed"] = "a name disappears when the other system removes it"
	title["contents"] = "an open file has the contents that the other system wrote"
	title["size"] = "an open file has the size after a write of the other system"
	title["append"] = "concurrent `O_APPEND` writes of two systems lose no bytes"
	title["store"] = "a store into a shared mapping is visible in the other system's mapping"
	title["cut-mapping"] = "a mapping faults past the end after a truncation by the other system"
	title["orphan"] = "an open file stays complete when the other system removes its name"
}

$1 == "rate" { value[$2, $3, $4, ++rounds[$2, $3, $4]] = $5 }
$1 == "wait" { waited[$2, $3] = $4 == "never" ? "never" : $5 " " $6 " " $7 }
$1 == "sees" { answer[$2, $3] = $4 (NF > 4 ? " " $5 : "") }
$1 == "load" { loads = loads (loads ? ", after " : "") $2 }

function missing_figure(what) {
	print "together: no figure for " what > "/dev/stderr"
	missing = 1
	return "?"
}

# Returns the median of the rounds, which are few.
function rate(fs, op, n,    i, j, t, all, v) {
	all = rounds[fs, op, n]
	if (!all)
		return missing_figure(op " of " n " in " fs)
	for (i = 1; i <= all; i++)
		v[i] = value[fs, op, n, i]
	for (i = 1; i <= all; i++)
		for (j = i + 1; j <= all; j++)
			if (v[j] < v[i]) {
				t = v[i]
				v[i] = v[j]
				v[j] = t
			}
	if (v[1] && v[all] / v[1] > widest) {
		widest = v[all] / v[1]
		widest_of = op " of " n " in " fs
	}
	return grouped(v[int((all + 1) / 2)])
}

function microseconds(ns) {
	return ns < 10000 ? sprintf("%.1f", ns / 1000) : grouped(ns / 1000)
}

function write_rates(    r, text) {
	print "### Calls per second, all systems together\n"
	print "| StargateFS | 1 system | 2 systems | 4 systems |"
	print "|---|---:|---:|---:|"
	for (r = 1; r <= rows; r++)
		print "| " title[row[r]] " | " rate("stargatefs", row[r], 1) " | " \
			rate("stargatefs", row[r], 2) " | " rate("stargatefs", row[r], 4) " |"
	print ""
}

function write_rivals(    r, s, text, rule) {
	for (s = 1; s <= systems; s++) {
		text = text " " system_name[s] " |"
		rule = rule "---:|"
	}
	print "| 1, 2 systems |" text
	print "|---|" rule
	for (r = 1; r <= rows; r++) {
		text = "| " title[row[r]] " |"
		for (s = 1; s <= systems; s++)
			text = text " " rate(system_name[s], row[r], 1) ", " \
				rate(system_name[s], row[r], 2) " |"
		print text
	}
	print ""
}

function wait_cells(fs, op,    part) {
	if (waited[fs, op] == "never")
		return "not seen within 5 s | |"
	split(waited[fs, op], part)
	return microseconds(part[1]) " | " microseconds(part[2]) " | " microseconds(part[3])
}

function write_waits(    w, s, name) {
	print "### Waits for other systems, microseconds\n"
	print "| operation | file system | median | 99 % | longest |"
	print "|---|---|---:|---:|---:|"
	for (w = 1; w <= waits; w++)
		for (s = 1; s <= systems; s++) {
			name = system_name[s]
			if ((name, wait_row[w]) in waited)
				print "| " title[wait_row[w]] " | " name " | " wait_cells(name, wait_row[w]) " |"
			else if (s == 1)
				missing_figure(wait_row[w])
		}
	print "\nThere are no times for locks that do not exclude the other system.\n"
}

function write_answers(    p, s, text) {
	print "### Changes of one system that another one sees\n"
	text = "| |"
	for (s = 1; s <= systems; s++)
		text = text " " system_name[s] " |"
	print text
	print "|---|---|---|---|---|"
	for (p = 1; p <= properties; p++) {
		text = "| " title[property[p]] " |"
		for (s = 1; s <= systems; s++)
			text = text " " ((system_name[s], property[p]) in answer ? \
				answer[system_name[s], property[p]] : \
				missing_figure(property[p] " of " system_name[s])) " |"
		print text
	}
}

END {
	write_rates()
	write_waits()
	print "### The same on 9p and virtiofs\n"
	write_rivals()
	printf "Each figure above is the median of %d rounds; the widest spread of the rounds was a factor of %.1f\n", \
		rounds["stargatefs", "stat-same", 1], widest
	print "(" widest_of "). Load of the machine before the run: " loads ".\n"
	write_answers()
	exit missing
}
