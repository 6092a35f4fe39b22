# SPDX-License-Identifier: Apache-2.0
#
# bars.awk: draws grouped bars as SVG. The input has lines "title<TAB>TEXT" and lines
# "GROUP<TAB>SERIES<TAB>VALUE". A line "log<TAB>LEAST" makes the scale logarithmic, from LEAST on.
# Groups and series appear in the order of their first lines. The picture has a line at the value 1.

BEGIN {
	FS = "\t"
	colours = split("#1f6fb4 #4fa3d9 #9ecae6 #d9822b #e8b04b #8f8f8f #b54848 #6b4c9a #3f7f5f", colour, " ")
	left = 190
	width = 560
	bar = 9
	gap = 10
}

$1 == "title" { title = $2; next }
$1 == "log" { least = $2; next }

NF == 3 {
	if (!($1 in group_at)) {
		group_at[$1] = ++groups
		group[groups] = $1
	}
	if (!($2 in series_at)) {
		series_at[$2] = ++all_series
		series[all_series] = $2
	}
	value[$1, $2] = $3
	most = $3 > most ? $3 : most
}

function escaped(text) {
	gsub(/&/, "\\&amp;", text)
	gsub(/</, "\\&lt;", text)
	return text
}

function place(v) {
	if (!least)
		return width * v / most
	return v <= least ? 0 : width * log(v / least) / log(most / least)
}

function text_at(x, y, what, anchor, size) {
	printf "<text x=\"%.1f\" y=\"%.1f\" font-size=\"%d\" text-anchor=\"%s\">%s</text>\n", x, y, size, \
		anchor, escaped(what)
}

function label(v) {
	return v >= 100 ? sprintf("%.0f", v) : v >= 10 ? sprintf("%.1f", v) : sprintf("%.2f", v)
}

function legend(y,    s, x) {
	x = left
	for (s = 1; s <= all_series; s++) {
		printf "<rect x=\"%.1f\" y=\"%d\" width=\"10\" height=\"10\" fill=\"%s\"/>\n", x, y - 9, \
			colour[(s - 1) % colours + 1]
		text_at(x + 14, y, series[s], "start", 11)
		x += 30 + 7 * length(series[s])
	}
}

function draw_group(g, y,    s, w) {
	text_at(left - 8, y + bar * all_series / 2 + 4, group[g], "end", 12)
	for (s = 1; s <= all_series; s++) {
		if (!((group[g], series[s]) in value))
			continue
		w = place(value[group[g], series[s]])
		printf "<rect x=\"%d\" y=\"%.1f\" width=\"%.1f\" height=\"%d\" fill=\"%s\"/>\n", left, \
			y + bar * (s - 1), w, bar - 1, colour[(s - 1) % colours + 1]
		text_at(left + w + 3, y + bar * s - 2, label(value[group[g], series[s]]), "start", 8)
	}
}

END {
	if (!groups) {
		print "bars: nothing to draw" > "/dev/stderr"
		exit 1
	}
	top = 58
	height = top + groups * (bar * all_series + gap) + 10
	print "<!-- SPDX-License-Identifier: Apache-2.0 -->"
	printf "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" font-family=\"sans-serif\">\n", \
		left + width + 60, height
	print "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>"
	text_at(left, 22, title, "start", 14)
	legend(42)
	for (g = 1; g <= groups; g++)
		draw_group(g, top + (g - 1) * (bar * all_series + gap))
	printf "<line x1=\"%.1f\" y1=\"%d\" x2=\"%.1f\" y2=\"%d\" stroke=\"black\" stroke-dasharray=\"3 3\"/>\n", \
		left + place(1), top - 6, left + place(1), height - 8
	print "</svg>"
}
