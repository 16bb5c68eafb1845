package stint_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
)

// This file puts many mutants into one test binary, since building one takes longer than most of them live. A function
// that a patch changes stands there once as it is and once for each mutant; as it is, it begins with the question which
// mutant the process shall be. A mutant that changes more than functions has a binary of its own (docs/decisions.md,
// D-174).

// mutantVar is the variable of the environment with the number of the mutant that a test binary shall be; 0 is none.
const mutantVar = "STINT_MUTANT"

// switches are files of the module with mutants in them.
type switches struct {
	file map[string]*switchedFile
	dirs map[string]string // names of packages by folder
}

// switchedFile is a file of code with the functions that mutants have otherwise.
type switchedFile struct {
	text  string
	funcs map[string]*function
	rest  string         // all but the functions
	asked map[int]string // the questions, by the place that they come to
	added strings.Builder
}

// function is one declaration in a file.
type function struct {
	decl          *ast.FuncDecl
	from, body    int // offsets of the declaration and of what is in its braces
	text, heading string
}

// add puts a mutant in, given the files that it has otherwise. It is false where the mutant changes more than
// functions.
func (s *switches) add(number int, files map[string]string) (bool, error) {
	type change struct {
		file   *switchedFile
		is, to *function
	}
	var changes []change
	for _, name := range slices.Sorted(maps.Keys(files)) {
		file, err := s.open(name)
		if err != nil {
			return false, err
		}
		funcs, rest, err := functions(files[name])
		if err != nil {
			return false, err
		}
		if rest != file.rest || len(funcs) != len(file.funcs) {
			return false, nil
		}
		for _, key := range slices.Sorted(maps.Keys(funcs)) {
			is, to := file.funcs[key], funcs[key]
			if is == nil || is.heading != to.heading {
				return false, nil
			}
			if is.text != to.text {
				changes = append(changes, change{file, is, to})
			}
		}
	}
	for _, c := range changes {
		if _, ok := c.to.call("f"); !ok || c.to.decl.Name.Name == "init" {
			return false, nil
		}
	}
	for _, c := range changes {
		name := fmt.Sprintf("%s_mutant%d", c.to.decl.Name.Name, number)
		call, _ := c.to.call(name)
		c.file.asked[c.is.body] += fmt.Sprintf("\nif mutantOn == %d {\n%s\n}\n", number, call)
		begin := int(c.to.decl.Name.Pos()) - 1 - c.to.from
		end := int(c.to.decl.Name.End()) - 1 - c.to.from
		fmt.Fprintf(&c.file.added, "\n%s%s%s\n", c.to.text[:begin], name, c.to.text[end:])
	}
	return true, nil
}

// open reads a file as it is, without the indents of its lines.
func (s *switches) open(name string) (*switchedFile, error) {
	if f := s.file[name]; f != nil {
		return f, nil
	}
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	f := &switchedFile{text: indents.ReplaceAllString(string(text), ""), asked: map[int]string{}}
	if f.funcs, f.rest, err = functions(f.text); err != nil {
		return nil, err
	}
	s.file[name] = f
	_, s.dirs[path.Dir(name)], _ = strings.Cut(f.rest, "package ")
	s.dirs[path.Dir(name)], _, _ = strings.Cut(s.dirs[path.Dir(name)], "\n")
	return f, nil
}

// files gives all files that are otherwise, and for each package one that knows which mutant the process is.
func (s *switches) files() map[string]string {
	out := map[string]string{}
	for name, f := range s.file {
		text := f.text
		for _, at := range slices.Backward(slices.Sorted(maps.Keys(f.asked))) {
			text = text[:at] + f.asked[at] + text[at:]
		}
		out[name] = text + f.added.String()
	}
	for dir, name := range s.dirs {
		out[path.Join(dir, "mutanton.go")] = fmt.Sprintf(
			"package %s\n\nimport (\n\"os\"\n\"strconv\"\n)\n\nvar mutantOn, _ = strconv.Atoi(os.Getenv(%q))\n", name,
			mutantVar)
	}
	return out
}

// functions finds the functions of a file by receiver and name, and gives the text between them.
func functions(text string) (map[string]*function, string, error) {
	file, err := parser.ParseFile(token.NewFileSet(), "", text, parser.SkipObjectResolution)
	if err != nil {
		return nil, "", err
	}
	funcs, rest, last := map[string]*function{}, "", 0
	for _, d := range file.Decls {
		d, ok := d.(*ast.FuncDecl)
		if !ok || d.Body == nil {
			continue
		}
		f := &function{decl: d, from: int(d.Pos()) - 1, body: int(d.Body.Lbrace)}
		f.text, f.heading = text[f.from:int(d.End())-1], text[f.from:f.body]
		key := d.Name.Name
		if d.Recv != nil {
			key = text[int(d.Recv.List[0].Type.Pos())-1:int(d.Recv.List[0].Type.End())-1] + "." + key
		}
		funcs[key] = f
		rest, last = rest+text[last:f.from], int(d.End())-1
	}
	return funcs, rest + text[last:], nil
}

// call gives the statement that hands a function's work to another with the same parameters. It is false where a
// parameter or receiver has no name.
func (f *function) call(name string) (string, bool) {
	var args, types []string
	named := true
	for _, p := range f.decl.Type.Params.List {
		named = named && len(p.Names) > 0
		for _, n := range p.Names {
			named = named && n.Name != "_"
			if _, ok := p.Type.(*ast.Ellipsis); ok {
				args = append(args, n.Name+"...")
			} else {
				args = append(args, n.Name)
			}
		}
	}
	if f.decl.Type.TypeParams != nil {
		for _, p := range f.decl.Type.TypeParams.List {
			for _, n := range p.Names {
				types = append(types, n.Name)
			}
		}
		name += "[" + strings.Join(types, ", ") + "]"
	}
	if f.decl.Recv != nil {
		names := f.decl.Recv.List[0].Names
		if len(names) == 0 || names[0].Name == "_" {
			return "", false
		}
		name = names[0].Name + "." + name
	}
	call := name + "(" + strings.Join(args, ", ") + ")"
	if f.decl.Type.Results != nil {
		return "return " + call, named
	}
	return call + "\nreturn", named
}
