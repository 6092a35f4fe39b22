# SPDX-License-Identifier: Apache-2.0
#
# scale.awk: prints the output of kernel/tests/scale ("WHAT N UNIT VALUE", "left-out MODE N") as
# tables. It fits a line to the totals of each figure (least squares), and prints where the line
# exceeds a bound. Variables: where is the description of the measurement; json and bars are files
# to write.
#
# Users would not accept a cost beyond these bounds: a long wait for a command or a mount, a check
# of over ten minutes, or more memory than a node has for this.

BEGIN {
	# figure, its title, unit of the total, divisor, each or total, target, bound (0: none)
	# "each": the figure is the cost of one of N objects
	model("size.mkfs", "mkfs", "s", 1000, "total", 65536, 60)
	model("size.mkfs-touched", "memory that mkfs touches", "GiB", 1024, "total", 65536, 0)
	model("size.join", "mount", "s", 1e6, "total", 65536, 1)
	model("size.mend", "completion of all hints, in steps", "s", 1000, "total", 65536, 0)
	model("size.largest-free", "largest free piece (`space` in sysfs)", "s", 1000, "total", 65536, 1)
	model("size.check", "fsck of an empty volume", "s", 1000, "total", 65536, 600)
	model("size.check-memory", "memory of that fsck", "GiB", 1024, "total", 65536, 4)
	model("files.create", "creating them", "s", 1e9, "each", 1e8, 0)
	model("files.remove", "removing them", "s", 1e9, "each", 1e8, 0)
	model("files.bytes", "bytes on the volume", "GiB", 1073741824, "each", 1e8, 65536)
	model("files.join", "mount", "s", 1e6, "total", 1e8, 1)
	model("files.holdings", "`stargatectl systems`, a look at all inodes", "s", 1000, "total", 1e8, 5)
	model("files.check", "fsck", "s", 1000, "total", 1e8, 600)
	model("files.check-memory", "memory of that fsck", "GiB", 1024, "total", 1e8, 4)
	model("systems.join", "mount of the last system", "s", 1e6, "total", 64, 1)
	model("systems.epoch", "one epoch, work of all systems", "s", 1e6, "total", 64, 0.05)
	model("systems.recover", "recovery of a system that died with all journals full", "s", 1e6, "total", 64, 1)
	model("systems.memory", "memory of all systems", "GiB", 1048576, "each", 64, 4)
	of["size"] = "GiB"
	of["files"] = "files"
	of["names"] = "names in a directory"
	of["systems"] = "systems"
}

function model(key, called, unit, divisor, kind, target, bound) {
	order[++models] = key
	name[key] = called
	total_unit[key] = unit
	by[key] = divisor
	each[key] = kind == "each"
	aim[key] = target
	limit[key] = bound
}

function mode_of(key) {
	return substr(key, 1, index(key, ".") - 1)
}

function short(v) {
	if (v != 0 && v < 0.0095)
		return sprintf("%.2g", v)
	return v >= 1000 ? grouped(v) : v >= 100 ? sprintf("%d", v + 0.5) : v >= 10 ? sprintf("%.1f", v) : \
		sprintf("%.2f", v)
}

$1 == "left-out" {
	left_out = left_out (left_out ? ", " : "") grouped($3) " " of[$2]
	next
}

NF != 4 || $4 !~ /^[0-9.]+$/ {
	print "scale: this line has no figure: " $0 > "/dev/stderr"
	failed = 1
	exit 1
}

{
	mode = mode_of($1)
	if (!(($1, "unit") in unit)) {
		unit[$1, "unit"] = $3
		figures[mode] = figures[mode] (figures[mode] ? " " : "") $1
	}
	if (!((mode, $2) in seen)) {
		seen[mode, $2] = 1
		points[mode] = points[mode] (points[mode] ? " " : "") $2
	}
	value[$1, $2] = $4
	lines[++all_lines] = sprintf("{ \"what\": \"%s\", \"n\": %d, \"unit\": \"%s\", \"value\": %s }", \
		$1, $2, $3, $4)
}

# Prints the measured values. Each figure has a row, and each N has a column.
function table(mode,    n, ns, k, fs, i, j) {
	n = split(points[mode], ns, " ")
	k = split(figures[mode], fs, " ")
	if (!n)
		return
	printf "| %s |", of[mode]
	for (j = 1; j <= n; j++)
		printf " %s |", grouped(ns[j])
	printf "\n|---|"
	for (j = 1; j <= n; j++)
		printf "---:|"
	print ""
	for (i = 1; i <= k; i++) {
		printf "| %s, %s |", substr(fs[i], length(mode) + 2), unit[fs[i], "unit"]
		for (j = 1; j <= n; j++)
			printf " %s |", (fs[i], ns[j]) in value ? short(value[fs[i], ns[j]]) : ""
		print ""
	}
	print ""
}

function total(key, n) {
	return value[key, n] * (each[key] ? n : 1) / by[key]
}

# Fits the line base[key] + slope[key] * N to all points of one figure, and computes its largest
# error.
function fit(key,    all, n, ns, j, x, y, sx, sy, sxx, sxy, off) {
	all = split(points[mode_of(key)], at_all, " ")
	for (j = 1; j <= all; j++)	# a figure may lack a point: a single system recovers nothing
		if ((key, at_all[j]) in value)
			ns[++n] = at_all[j]
	for (j = 1; j <= n; j++) {
		x = ns[j]
		y = total(key, x)
		sx += x
		sy += y
		sxx += x * x
		sxy += x * y
	}
	if (n < 2)
		return 0
	slope[key] = (n * sxy - sx * sy) / (n * sxx - sx * sx)
	base[key] = (sy - slope[key] * sx) / n
	most[key] = ns[n]
	for (j = n > 2 ? n - 1 : n; j <= n; j++) {	# start-up costs dominate small N
		y = total(key, ns[j])
		off = y ? (base[key] + slope[key] * ns[j]) / y - 1 : 0
		off = off < 0 ? -off : off
		apart[key] = off > apart[key] ? off : apart[key]
	}
	return 1
}

# Returns the N at which the line reaches the bound, or 0 if it never does.
function broken_at(key) {
	return limit[key] && slope[key] > 0 ? (limit[key] - base[key]) / slope[key] : 0
}

function predict(key,    v) {
	v = base[key] + slope[key] * aim[key]
	return v > 0 ? v : total(key, most[key])
}

function consider(key, at) {
	if (at && (!first || at / aim[key] < at_first / aim[first])) {
		first = key
		at_first = at
	}
}

function modelled(    i, key, at, sep) {
	print "| extrapolation by a line | measured up to | measured value | error of the line | predicted for | predicted value | bound | bound reached at |"
	print "|---|---:|---:|---:|---:|---:|---:|---:|"
	for (i = 1; i <= models; i++) {
		key = order[i]
		if (!fit(key))
			continue
		at = broken_at(key)
		consider(key, at)
		printf "| %s: %s | %s | %s %s | %.0f %% | %s | %s %s | %s | %s |\n", of[mode_of(key)], name[key], \
			grouped(most[key]), short(total(key, most[key])), total_unit[key], 100 * apart[key], \
			grouped(aim[key]), short(predict(key)), total_unit[key], \
			limit[key] ? short(limit[key]) " " total_unit[key] : "", at ? grouped(at) : ""
		sep = model_lines ? ",\n" : ""
		model_lines = model_lines sep sprintf("    { \"what\": \"%s\", \"unit\": \"%s\", \"base\": %.6g, \"slope\": %.6g, \"off\": %.3f, \"target\": %.0f, \"predicted\": %.6g, \"bound\": %s, \"reached_at\": %s }", \
			key, total_unit[key], base[key], slope[key], apart[key], aim[key], predict(key), \
			limit[key] ? limit[key] : "null", at ? sprintf("%.0f", at) : "null")
	}
	print ""
}

function say_first() {
	if (!first)
		return "No limit is reached on these lines."
	return sprintf("**The first limit**: %s exceeds %s %s at %s %s, which is %s the target of %s.", \
		name[first], short(limit[first]), total_unit[first], grouped(at_first), of[mode_of(first)], \
		sprintf("%.1f times", at_first / aim[first]), grouped(aim[first]))
}

# Draws the cost with several systems, relative to a single system.
function draw(    n, ns, k, fs, i, j, one) {
	n = split(points["systems"], ns, " ")
	k = split(figures["systems"], fs, " ")
	print "title\tcost with more systems: times as much as with " ns[1] > bars
	for (i = 1; i <= k; i++) {
		one = value[fs[i], ns[1]]
		for (j = 1; j <= n && one > 0; j++)
			printf "%s\t%d system%s\t%.4f\n", substr(fs[i], 9), ns[j], (ns[j] == 1 ? "" : "s"), \
				value[fs[i], ns[j]] / one > bars
	}
}

function write_json(text,    i) {
	printf "{\n  \"where\": %s,\n  \"figures\": [\n", quoted(where) > json
	for (i = 1; i <= all_lines; i++)
		printf "    %s%s\n", lines[i], i < all_lines ? "," : "" > json
	printf "  ],\n  \"lines\": [\n%s\n  ],\n  \"first\": %s\n}\n", model_lines, quoted(text) > json
}

END {
	if (failed)
		exit 1
	if (!all_lines) {
		print "scale: no figures" > "/dev/stderr"
		exit 1
	}
	table("size")
	table("files")
	table("names")
	table("systems")
	if (left_out)
		print "Left out, as the memory did not suffice: " left_out ".\n"
	modelled()
	text = say_first()
	print text
	write_json(text)
	draw()
}
