# SPDX-License-Identifier: Apache-2.0
#
# peers.awk -v where=LINES -v json=FILE -v bars=FILE RESULTS: what e2e/bench/peers.sh has measured, as
# tables of a page, as JSON, and as bars for a picture (bars.awk). Ends with 1 when a figure is
# missing.

BEGIN {
	systems = split("stargatefs 9p virtiofs virtiofs-auto nfs smb virtio-blk ext4-dax tmpfs", system_name)
	loads = split("read-4k read-64k read-1m write-4k write-64k write-1m randread-4k randread-64k " \
		"randread-1m randwrite-4k randwrite-64k randwrite-1m", load)
	paper["9p"] = 64	# P1: averages over all of its fio tests
	paper["nfs"] = 191
	paper["smb"] = 172
	blocks = split("1024 4096 1048576", block)
	paper_hand[1024] = 239.94 / 9.632
	paper_hand[4096] = 66.86 / 7.067
	paper_hand[1048576] = 63.52 / 5.828
}

$1 == "fio" {
	note($2, $3, $4, $5)
	latency[$2, $3, $4, "p50"] = $6
	latency[$2, $3, $4, "p999"] = $7
	if (!($4 in job_at)) {
		job_at[$4] = ++jobs
		job[jobs] = $4
	}
}
$1 == "cpu" { kib[$2] += $4; guest[$2] += $5; host[$2] += $6 }
$1 == "hand" { note($2, "hand", $3, $4 / $5 * 1e9 / 1048576) }
$1 == "load" { busy = busy (busy ? ", after " : "") $2 }

function note(fs, what, how, v) { value[fs, what, how, ++rounds[fs, what, how]] = v }

# Median of the rounds; they are few. Their spread in `spread`.
function median(fs, what, how,    i, j, t, all, v) {
	all = rounds[fs, what, how]
	if (!all) {
		print "peers: no figure for " what " " how " of " fs > "/dev/stderr"
		missing = 1
		return 1
	}
	for (i = 1; i <= all; i++)
		v[i] = value[fs, what, how, i]
	for (i = 1; i <= all; i++)
		for (j = i + 1; j <= all; j++)
			if (v[j] < v[i]) {
				t = v[i]
				v[i] = v[j]
				v[j] = t
			}
	spread = v[1] > 0 ? v[all] / v[1] : 0
	spreads[++all_spreads] = spread
	return v[int((all + 1) / 2)] > 0 ? v[int((all + 1) / 2)] : 1
}

function middle_spread(    i, j, t) {
	for (i = 2; i <= all_spreads; i++)
		for (j = i; j > 1 && spreads[j] < spreads[j - 1]; j--) {
			t = spreads[j]
			spreads[j] = spreads[j - 1]
			spreads[j - 1] = t
		}
	return spreads[int((all_spreads + 1) / 2)]
}

function write_speeds(n,    s, l, text, rule, v) {
	printf "**MiB/s, %d at once** (median of %d rounds; the widest spread of a row's rounds, highest by lowest)\n\n", \
		n, rounds["stargatefs", load[1], n]
	text = "| load |"
	rule = "|---|"
	for (s = 1; s <= systems; s++) {
		text = text " " system_name[s] " |"
		rule = rule "---:|"
	}
	print text " spread |\n" rule "---:|"
	for (l = 1; l <= loads; l++) {
		text = "| " load[l] " |"
		worst = 0
		for (s = 1; s <= systems; s++) {
			v = median(system_name[s], load[l], n)
			worst = spread > worst ? spread : worst
			text = text " " sprintf(v < 10240 ? "%.1f" : "%.0f", v / 1024) " |"
			speed[system_name[s], load[l], n] = v
		}
		printf "%s %.1f |\n", text, worst
	}
	print ""
}

# How many times as fast StargateFS is: the mean over all loads, least and most.
function write_factors(    s, l, j, f, sum, n, least, most, name) {
	print "| how many times as fast StargateFS is | mean | geometric mean | least | most | P1 |"
	print "|---|---:|---:|---:|---:|---:|"
	for (s = 2; s <= systems; s++) {
		name = system_name[s]
		sum = logs = n = most = 0
		least = 1e9
		for (j = 1; j <= jobs; j++)
			for (l = 1; l <= loads; l++) {
				f = speed["stargatefs", load[l], job[j]] / speed[name, load[l], job[j]]
				sum += f
				logs += log(f)
				n++
				least = f < least ? f : least
				most = f > most ? f : most
				if (job[j] == 1)
					print load[l] "\t" name "\t" f > bars
			}
		printf "| %s | %.1f | %.1f | %.1f | %.1f | %s |\n", name, sum / n, exp(logs / n), least, most, \
			name in paper ? paper[name] : ""
		factors = factors sprintf("%s\n    { \"than\": \"%s\", \"mean\": %.2f, \"geometric\": %.2f, " \
			"\"least\": %.2f, \"most\": %.2f }", s > 2 ? "," : "", name, sum / n, exp(logs / n), \
			least, most)
	}
	print ""
}

function write_cpu(    s, name) {
	print "| processor time for 1 GiB | guest, s | host with its guests, s |"
	print "|---|---:|---:|"
	for (s = 1; s <= systems; s++) {
		name = system_name[s]
		printf "| %s | %.1f | %.1f |\n", name, guest[name] / 1000 / (kib[name] / 1048576), \
			host[name] / 1000 / (kib[name] / 1048576)
	}
	print ""
}

function write_hands(    b, ours, theirs, other) {
	print "| handed from one system to another, MiB/s | stargatefs | 9p | virtiofs | factor over 9p | P1's over 9p |"
	print "|---|---:|---:|---:|---:|---:|"
	for (b = 1; b <= blocks; b++) {
		ours = median("stargatefs", "hand", block[b])
		theirs = median("9p", "hand", block[b])
		other = median("virtiofs", "hand", block[b])
		printf "| blocks of %s | %.2f | %.2f | %.2f | %.1f | %.1f |\n", \
			block[b] < 1048576 ? block[b] / 1024 " KiB" : "1 MiB", ours, theirs, other, \
			ours / theirs, paper_hand[block[b]]
	}
	print ""
}

function quoted(text) {
	gsub(/\\/, "\\\\", text)
	gsub(/"/, "\\\"", text)
	gsub(/\n/, "\\n", text)
	return "\"" text "\""
}

function write_json(    key, part, sep) {
	print "{\n  \"where\": " quoted(where) ",\n  \"factors\": [" factors "\n  ],\n  \"rounds\": [" > json
	for (key in value) {
		split(key, part, SUBSEP)
		printf "%s    { \"system\": \"%s\", \"load\": \"%s\", \"%s\": %s, \"round\": %d, \"%s\": %s }", sep, \
			part[1], part[2], part[2] == "hand" ? "block" : "jobs", part[3], part[4], \
			part[2] == "hand" ? "mib_per_s" : "kib_per_s", value[key] > json
		sep = ",\n"
	}
	print "\n  ]\n}" > json
}

END {
	print "title\tHow many times as fast as each of these StargateFS is, one thread" > bars
	print "log\t0.1" > bars
	for (j = 1; j <= jobs; j++)
		write_speeds(job[j])
	write_factors()
	write_hands()
	write_cpu()
	printf "Half of all spreads are below %.2f. A call of 4 KiB read at random, one thread, last round, us: ", \
		middle_spread()
	for (s = 1; s <= systems; s++)
		printf "%s%s %s (99.9 %%: %s)", (s > 1 ? ", " : ""), system_name[s], \
			latency[system_name[s], "randread-4k", job[1], "p50"], \
			latency[system_name[s], "randread-4k", job[1], "p999"]
	print ".\nLoad of the machine before: " busy "."
	if (missing)
		exit 1
	write_json()
}
