package main

import (
	"bytes"
	"cmp"
	"fmt"
	"go/ast"
	"go/build"
	"go/format"
	"go/parser"
	"go/token"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// longest is how much of a condition names a guard, in bytes.
const longest = 100

// guard is one refusal of the source.
type guard struct {
	file      string // slash-separated, inside the module
	function  string
	condition string // as gofmt prints it, on one line, and cut
}

// String names the guard for people, and in the list of what is allowed.
func (g guard) String() string { return path.Dir(g.file) + " " + g.function + ": " + g.condition }

// site is a guard in place: what decides it, as byte offsets of its file. A
// case may list several expressions.
type site struct {
	guard
	spans [][2]int
}

// source is a package as it is written.
type source struct {
	at, dir, name string // where it is, the same below the root, what it is called
	set           *token.FileSet
	funcs         map[string]*ast.FuncDecl // by name, methods too
	sites         []site                   // in order of file and position
	plain, prop   []string                 // the tests, in the order in which they run
}

// find parses the package in dir, a slash-separated path below root.
func find(root, dir string) (*source, error) {
	at, err := filepath.Abs(filepath.Join(root, filepath.FromSlash(dir)))
	if err != nil {
		return nil, err
	}
	p, err := build.ImportDir(at, 0)
	if err != nil {
		return nil, err
	}
	s := &source{at: at, dir: path.Clean(dir), name: p.Name, set: token.NewFileSet(), funcs: map[string]*ast.FuncDecl{}}
	all := slices.Concat(p.GoFiles, p.TestGoFiles, p.XTestGoFiles)
	files := make([]*ast.File, len(all))
	for i, name := range all {
		if files[i], err = parser.ParseFile(s.set, filepath.Join(at, name), nil, parser.SkipObjectResolution); err != nil {
			return nil, err
		}
		s.declare(name, files[i])
	}
	for i, name := range p.GoFiles {
		s.search(path.Join(s.dir, name), files[i])
	}
	return s, nil
}

// declare notes what a file declares. A property test, in a file
// x_prop_test.go, says little about one guard, so it comes after the others.
func (s *source) declare(name string, f *ast.File) {
	for _, d := range f.Decls {
		fn, ok := d.(*ast.FuncDecl)
		switch {
		case !ok:
		case !strings.HasSuffix(name, "_test.go"):
			s.funcs[fn.Name.Name] = fn
		case fn.Recv != nil || !isTest(fn.Name.Name):
		case strings.HasSuffix(name, "_prop_test.go"):
			s.prop = append(s.prop, fn.Name.Name)
		default:
			s.plain = append(s.plain, fn.Name.Name)
		}
	}
}

func isTest(name string) bool {
	kind := slices.ContainsFunc([]string{"Test", "Fuzz", "Example"}, func(p string) bool { return strings.HasPrefix(name, p) })
	return kind && name != "TestMain"
}

func (s *source) search(file string, f *ast.File) {
	var sites []site
	for _, d := range f.Decls {
		fn, ok := d.(*ast.FuncDecl)
		if !ok {
			continue
		}
		ast.Inspect(fn, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.SwitchStmt:
				for _, c := range n.Body.List {
					c := c.(*ast.CaseClause)
					if n.Tag == nil && c.List != nil && s.refuses(c.Body) && !slices.ContainsFunc(c.List, failed) {
						sites = append(sites, s.site(file, fn, nil, c.List))
					}
				}
			case *ast.IfStmt:
				if s.refuses(n.Body.List) && (!failed(n.Cond) || s.checks(n.Init)) {
					sites = append(sites, s.site(file, fn, n.Init, []ast.Expr{n.Cond}))
				}
			}
			return true
		})
	}
	slices.SortFunc(sites, func(a, b site) int { return cmp.Compare(a.spans[0][0], b.spans[0][0]) })
	seen := map[guard]int{}
	for _, x := range sites { // what looks the same in one function is told apart by a number
		seen[x.guard]++
		if n := seen[x.guard]; n > 1 {
			x.condition += fmt.Sprintf(" (%d)", n)
		}
		s.sites = append(s.sites, x)
	}
}

func (s *source) site(file string, fn *ast.FuncDecl, init ast.Stmt, conds []ast.Expr) site {
	x := site{guard: guard{file: file, function: fn.Name.Name}}
	if fn.Recv != nil {
		x.function = strings.TrimPrefix(s.text(fn.Recv.List[0].Type), "*") + "." + x.function
	}
	var texts []string
	for _, c := range conds {
		texts = append(texts, s.text(c))
		x.spans = append(x.spans, [2]int{s.set.Position(c.Pos()).Offset, s.set.Position(c.End()).Offset})
	}
	x.condition = strings.Join(texts, ", ")
	if init != nil {
		x.condition = s.text(init) + "; " + x.condition
	}
	if len(x.condition) > longest {
		x.condition = strings.ToValidUTF8(x.condition[:longest-3], "") + "..."
	}
	return x
}

// text prints a node on one line. A table has no room for a backquote.
func (s *source) text(n ast.Node) string {
	var b bytes.Buffer
	if err := format.Node(&b, s.set, n); err != nil {
		panic(err) // it was parsed
	}
	return strings.ReplaceAll(strings.Join(strings.Fields(b.String()), " "), "`", "'")
}

// refuses reports whether a body does nothing but return or assign an error
// that is not nil.
func (s *source) refuses(body []ast.Stmt) bool {
	if len(body) != 1 {
		return false
	}
	var values []ast.Expr
	switch stmt := body[0].(type) {
	case *ast.ReturnStmt:
		values = stmt.Results
	case *ast.AssignStmt:
		values = stmt.Rhs
	}
	return len(values) > 0 && s.isError(values[len(values)-1])
}

// isError reports whether an expression is an error whatever happens: a
// sentinel, err itself, or one that is made here or by a function that does
// nothing else. A check that may pass is none.
func (s *source) isError(e ast.Expr) bool {
	call, ok := e.(*ast.CallExpr)
	if !ok {
		name := last(s.text(e))
		return strings.HasPrefix(name, "Err") || strings.HasPrefix(name, "err")
	}
	switch f := s.text(call.Fun); f {
	case "errors.New", "errors.Join", "fmt.Errorf":
		return true
	default:
		fn := s.funcs[last(f)]
		return fn != nil && fn.Body != nil && s.refuses(fn.Body.List)
	}
}

// last is the last name of a selector.
func last(text string) string { return text[strings.LastIndex(text, ".")+1:] }

// failed reports whether a condition is about the failure of something else,
// which is passed on or given a kind.
func failed(cond ast.Expr) bool {
	found := false
	ast.Inspect(cond, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BinaryExpr:
			x, ok := n.X.(*ast.Ident)
			found = found || ok && x.Name == "err" && n.Op == token.NEQ
		case *ast.SelectorExpr:
			x, ok := n.X.(*ast.Ident)
			found = found || ok && x.Name == "errors"
		}
		return true
	})
	return found
}

// checks reports whether the statement before a condition calls a function of
// the package itself, or a Check of another.
func (s *source) checks(init ast.Stmt) bool {
	assign, ok := init.(*ast.AssignStmt)
	if !ok {
		return false
	}
	call, ok := assign.Rhs[0].(*ast.CallExpr)
	if !ok {
		return false
	}
	name := last(s.text(call.Fun))
	return s.funcs[name] != nil || strings.HasPrefix(name, "Check")
}
