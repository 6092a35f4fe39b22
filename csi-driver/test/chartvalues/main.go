// SPDX-License-Identifier: Apache-2.0

// chartvalues VALUES SCHEMA writes a chart's values as a table. Each row has the default and the
// comment from values.yaml, and the allowed values from values.schema.json. Long comments form a
// list below the table. A value that is missing in the schema is an error.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// rule is the part of a schema about one value.
type rule struct {
	Type       string           `json:"type"`
	Enum       []any            `json:"enum"`
	Pattern    string           `json:"pattern"`
	Minimum    *int64           `json:"minimum"`
	Maximum    *int64           `json:"maximum"`
	Properties map[string]*rule `json:"properties"`
	Items      *rule            `json:"items"`
}

// A comment with more words, or a line or row with more bytes, does not fit into the table.
const (
	mostWords = 12
	columns   = 100
	mostRow   = 140
	below     = "[below](#notes)"
)

type table struct{ rows, notes []string }

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "chartvalues: VALUES SCHEMA")
		os.Exit(2)
	}
	if err := write(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "chartvalues:", err)
		os.Exit(1)
	}
}

func write(values, schema string) error {
	var document yaml.Node
	var root rule
	text, err := os.ReadFile(values)
	if err == nil {
		err = yaml.Unmarshal(text, &document)
	}
	if err != nil {
		return err
	}
	if text, err = os.ReadFile(schema); err == nil {
		err = json.Unmarshal(text, &root)
	}
	if err != nil {
		return err
	}
	var t table
	if len(document.Content) != 1 {
		return errors.New("values.yaml is one document")
	}
	if err := t.object("", document.Content[0], &root); err != nil {
		return err
	}
	fmt.Println("| value | default | allowed | |\n|---|---|---|---|")
	fmt.Println(strings.Join(t.rows, "\n"))
	fmt.Println("\n## Notes\n\n" + strings.Join(t.notes, "\n"))
	return nil
}

// object returns one row for each key that has a comment or no keys below it.
func (t *table) object(path string, n *yaml.Node, r *rule) error {
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		at := strings.TrimPrefix(path+"."+key.Value, ".")
		of := r.Properties[key.Value]
		if of == nil {
			return fmt.Errorf("%s: is not in the schema", at)
		}
		parent := value.Kind == yaml.MappingNode && len(value.Content) > 0 && len(of.Properties) > 0
		words := comment(key)
		if !parent {
			t.row(at, shown(value), allowed(of), words)
			continue
		}
		if words != "" {
			t.row(at, "", "", words)
		}
		if err := t.object(at, value, of); err != nil {
			return err
		}
	}
	return nil
}

func (t *table) row(path, value, allowed, words string) {
	escaped := strings.NewReplacer("|", "\\|").Replace
	fits := func() bool { return len(path+value+allowed+words) <= mostRow-len("| `` |  |  |  |") }
	note := ""
	if len(strings.Fields(words)) > mostWords || words != "" && !fits() {
		note, words = " "+words, below
	}
	if !fits() {
		note, allowed, words = note+" Allowed: "+allowed, below, ""
	}
	if note != "" {
		t.notes = append(t.notes, wrapped("- `"+path+"`:"+note))
	}
	t.rows = append(t.rows, "| `"+path+"` | "+escaped(value)+" | "+escaped(allowed)+" | "+escaped(words)+" |")
}

// wrapped splits a list item into lines.
func wrapped(item string) string {
	words := strings.Fields(item)
	lines := words[:1:1]
	for _, word := range words[1:] {
		last := len(lines) - 1
		if len(lines[last])+1+len(word) <= columns {
			lines[last] += " " + word
		} else {
			lines = append(lines, "  "+word)
		}
	}
	return strings.Join(lines, "\n")
}

func comment(n *yaml.Node) string {
	var lines []string
	for _, line := range strings.Split(n.HeadComment, "\n") {
		lines = append(lines, strings.TrimSpace(strings.TrimPrefix(line, "#")))
	}
	return strings.Join(lines, " ")
}

func shown(n *yaml.Node) string {
	if n.Kind == yaml.ScalarNode {
		return code(strconv.Quote(n.Value), n.Value)
	}
	var v any
	if err := n.Decode(&v); err != nil {
		return ""
	}
	text, err := json.Marshal(v)
	if err != nil {
		return ""
	}
	return code("", string(text))
}

// code formats text as code, or none if text is empty.
func code(none, text string) string {
	if text == "" {
		text = none
	}
	return "`" + text + "`"
}

func allowed(r *rule) string {
	switch {
	case len(r.Enum) > 0:
		var all []string
		for _, e := range r.Enum {
			all = append(all, code("\"\"", fmt.Sprint(e)))
		}
		return strings.Join(all, ", ")
	case r.Pattern != "":
		return "`" + r.Pattern + "`"
	case r.Minimum != nil && r.Maximum != nil:
		return fmt.Sprintf("%d to %d", *r.Minimum, *r.Maximum)
	case r.Minimum != nil:
		return fmt.Sprintf("%d or more", *r.Minimum)
	case r.Type == "array" && r.Items != nil:
		return "a list: " + keys(r.Items)
	case len(r.Properties) > 0:
		return keys(r)
	}
	return r.Type
}

// keys returns the keys of an object, each with its allowed values.
func keys(r *rule) string {
	if len(r.Properties) == 0 {
		return r.Type
	}
	var all []string
	for _, name := range slices.Sorted(maps.Keys(r.Properties)) {
		all = append(all, "`"+name+"` "+allowed(r.Properties[name]))
	}
	return strings.Join(all, "; ")
}
