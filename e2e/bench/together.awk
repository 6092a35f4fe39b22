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
	title["pass"] = "8 bytes written by one, seen by the other, who reads all the time"
	title["ring-flock"] = "flock: released by one, had by the other"
	title["ring-posix"] = "fcntl: released by one, had by the other"
	title["cut"] = "truncate by 64 KiB; nobody maps the file"
	title["cut-mapped"] = "truncate by 64 KiB; another system maps the file, and looks"
	title["cut-mapped-churn"] = "the same, while two others make and remove names"
	properties = split("lock-flock lock-posix absent-then-made present-then-removed contents size " \
		"append store cut-mapping orphan", property)
	title["lock-flock"] = "`flock` of one excludes the other"
	title["lock-posix"] = "`fcntl` lock of one excludes the other"
	title["absent-then-made"] = "a name that was absent is there when the other has made it"
	title["present-then-removed"] = "... and absent when the other has removed it"
	title["contents"] = "an open file has the contents that the other wrote"
	title["size"] = "... and the size"
	title["append"] = "`O_APPEND` of two at once loses nothing"
	title["store"] = "a store into a shared mapping is seen in the other's"
	title["cut-mapping"] = "a mapping faults behind the end that the other has cut"
	title["orphan"] = "an open file is whole after the other has removed its last name"
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

# The median of the rounds, of which there are few.
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
	print "### Waiting for each other, microseconds\n"
	print "| what | on | median | 99 % | longest |"
	print "|---|---|---:|---:|---:|"
	for (w = 1; w <= waits; w++)
		for (s = 1; s <= systems; s++) {
			name = system_name[s]
			if ((name, wait_row[w]) in waited)
				print "| " title[wait_row[w]] " | " name " | " wait_cells(name, wait_row[w]) " |"
			else if (s == 1)
				missing_figure(wait_row[w])
		}
	print "\nWhere a lock does not exclude the other system, there is nothing to hand over.\n"
}

function write_answers(    p, s, text) {
	print "### What one system sees of what another has done\n"
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
