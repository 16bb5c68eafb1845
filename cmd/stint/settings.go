package main

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"

	"github.com/stintd/stint/core/plan"
)

// settings is a configuration file being read: key by key, so that all its faults are told at once, each with its line,
// and a value that is given is told from one that is not.
type settings struct {
	name   string
	line   map[string]int // of each key that is given
	faults []settingFault
}

type settingFault struct {
	line int // 0: the key is not given
	text string
}

// fault notes the fault of a value.
func (s *settings) fault(key, value, must string) {
	s.faults = append(s.faults, settingFault{s.line[key], fmt.Sprintf("%s: %q: %s", key, value, must)})
}

// err is all faults by line, nil when there is none.
func (s *settings) err() error {
	slices.SortFunc(s.faults, func(a, b settingFault) int {
		return cmp.Or(cmp.Compare(a.line, b.line), cmp.Compare(a.text, b.text))
	})
	var all []error
	for _, f := range s.faults {
		where := s.name
		if f.line > 0 {
			where += ":" + strconv.Itoa(f.line)
		}
		all = append(all, fmt.Errorf("%s: %s", where, f.text))
	}
	return errors.Join(all...)
}

// read sets the fields of a struct, by their yaml tags, to the values of a file. Others stay as they are. A text that
// is no YAML is one fault.
func (s *settings) read(text []byte, into reflect.Value) {
	s.line = map[string]int{}
	file, err := parser.ParseBytes(text, 0)
	if err != nil {
		s.faults = append(s.faults, settingFault{0, strings.TrimSpace(yaml.FormatError(err, false, false))})
		return
	}
	if len(file.Docs) > 1 {
		s.faults = append(s.faults, settingFault{0, "several documents; one is taken"})
		return
	}
	for _, doc := range file.Docs {
		if doc.Body != nil && doc.Body.Type() != ast.CommentType {
			s.value(doc.Body, "", into)
		}
	}
}

// value sets a field, and those within it, to a node. One without a value is as one that is not given.
func (s *settings) value(node ast.Node, key string, into reflect.Value) {
	if node.Type() == ast.NullType {
		return
	}
	if key != "" {
		s.line[key] = node.GetToken().Position.Line
	}
	_, own := into.Addr().Interface().(yaml.BytesUnmarshaler)
	list := into.Kind() == reflect.Slice && into.Type().Elem().Kind() == reflect.Struct
	switch {
	case into.Kind() == reflect.Struct && !own:
		if m, ok := node.(*ast.MappingNode); ok {
			s.mapping(m, key, into)
			return
		}
		s.fault(key, node.GetToken().Value, "must be keys with values")
	case list:
		rows, ok := node.(*ast.SequenceNode)
		if !ok {
			s.fault(key, node.GetToken().Value, "must be a list")
			return
		}
		into.Set(reflect.MakeSlice(into.Type(), len(rows.Values), len(rows.Values)))
		for i, row := range rows.Values {
			s.value(row, fmt.Sprintf("%s[%d]", key, i), into.Index(i))
		}
	case into.Kind() == reflect.Int && node.Type() != ast.IntegerType: // yaml would cut 1.5 off
		s.fault(key, node.GetToken().Value, mustBe(into, false, nil))
	default:
		if err := yaml.NodeToValue(node, into.Addr().Interface()); err != nil {
			value := node.GetToken().Value
			s.fault(key, value, strings.TrimPrefix(mustBe(into, own, err), value+": "))
		}
	}
}

// mustBe names the kind of value that a setting takes, for a value that cannot be taken.
func mustBe(into reflect.Value, own bool, err error) string {
	if own {
		return err.Error()
	}
	switch into.Kind() {
	case reflect.Bool:
		return "must be true or false"
	case reflect.Int:
		return "must be a whole number"
	case reflect.Slice:
		return "must be a list of texts"
	}
	return "must be a text"
}

// mapping sets the fields that a mapping has keys of.
func (s *settings) mapping(m *ast.MappingNode, path string, into reflect.Value) {
	fields := map[string]reflect.Value{}
	var names []string
	for i := range into.NumField() {
		name := into.Type().Field(i).Tag.Get("yaml")
		if name == "" {
			continue // of the command line
		}
		fields[name], names = into.Field(i), append(names, name)
	}
	for _, pair := range m.Values {
		key := pair.Key.GetToken().Value
		full := strings.TrimPrefix(path+"."+key, ".")
		field, ok := fields[key]
		if !ok {
			s.line[full] = pair.Key.GetToken().Position.Line
			s.fault(full, key, "no such key; "+plan.Meant(key, names)+"there are "+strings.Join(names, ", "))
			continue
		}
		s.value(pair.Value, full, field)
	}
}
