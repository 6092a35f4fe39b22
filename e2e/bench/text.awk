# SPDX-License-Identifier: Apache-2.0
#
# Functions that format numbers and texts. Pass this file with -f before the scripts that need it.

# Formats a number in groups of three digits, for example 1 234 567.
function grouped(number,    text, at) {
	if (number < 0)
		return "-" grouped(-number)
	text = sprintf("%.0f", number)
	for (at = length(text) - 3; at > 0; at -= 3)
		text = substr(text, 1, at) " " substr(text, at + 1)
	return text
}

# Formats a text as a JSON string.
function quoted(text) {
	gsub(/\\/, "\\\\\\\\", text)
	gsub(/"/, "\\\"", text)
	gsub(/\n/, "\\n", text)
	return "\"" text "\""
}
