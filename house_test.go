package regionha_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

const module = "github.com/carlosframework/regionha"

// The limits of a file, a function and the files of a main, in lines.
const (
	longestFile     = 600
	longestFunction = 60
	longestMain     = 150
)

// floors says where each room stands. A room is a path and all below it.
var floors = map[string]int{
	"objstore":                    0,
	"internal/record":             0,
	"internal/pause":              0,
	"internal/serve":              0,
	"internal/boxauth":            0,
	"internal/alert":              0,
	"internal/lease":              1,
	"internal/regionfile":         1,
	"internal/hostrecord":         1,
	"internal/s3test":             1,
	"boxid":                       1,
	"stopevidence":                1,
	"resolution":                  1,
	"roster":                      2,
	"internal/machine":            2,
	"termfence":                   3,
	"boxvolumes":                  3,
	"internal/proof":              3,
	"internal/config":             3,
	"hostclaim":                   4,
	"hostdb":                      4,
	"hostfiles":                   4,
	"hostguard":                   4,
	"placement":                   4,
	"membership":                  4,
	"awscloud/event":              4,
	"hostclaim/claimtest":         5,
	"hostrelocate":                5,
	"hostmove":                    5,
	"park":                        5,
	"awscloud":                    5,
	"internal/runner":             5,
	"internal/roothelper":         5,
	"internal/ingress":            5,
	"internal/registry":           5,
	"internal/timers":             5,
	"internal/admin":              5,
	"internal/announce":           5,
	"internal/claimlist":          5,
	"internal/hint":               5,
	"internal/survey":             5,
	"hostclaim/claimtest/explore": 6,
	"internal/agent":              6,
	"internal/worker":             6,
	"internal/console":            6,
	"internal/simcloud":           6,
	"sim":                         6,
	"cmd":                         7,
	"internal/guards":             7,
	"docs/policies":               7,
	"examples":                    7,
	"bench":                       7,
}

// owners says which rooms may import a dependency that is heavy, or that
// decides something.
var owners = map[string][]string{
	"github.com/aws/":                          {"objstore/s3store", "objstore/storeurl", "awscloud"},
	"github.com/aws/aws-sdk-go-v2/service/ec2": {"awscloud"},
	"github.com/benbjohnson/litestream":        {"hostdb"},
	"github.com/superfly/ltx":                  {"hostdb"},
	"modernc.org/sqlite":                       {"hostdb", "internal/registry", "examples"},
	module + "/objstore/s3store":               {"objstore/storeurl"},
	module + "/awscloud":                       {"awscloud", "internal/agent", "internal/worker", "internal/console", "cmd/worker"},
}

// pkg is what go list says of a package.
type pkg struct {
	ImportPath, Dir, Name                    string
	Imports, Deps, TestImports, XTestImports []string
}

// room is the package's path inside the module; the root's is "".
func (p pkg) room() string {
	return strings.TrimPrefix(strings.TrimPrefix(p.ImportPath, module), "/")
}

// testSupport reports whether a package exists for tests: it may import what
// the tests that use it import.
func (p pkg) testSupport() bool { return strings.HasSuffix(p.Name, "test") }

// packages lists the module, without building anything.
var packages = sync.OnceValues(func() ([]pkg, error) {
	out, err := exec.Command("go", "list", "-json=ImportPath,Dir,Name,Imports,Deps,TestImports,XTestImports", "./...").Output()
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			err = fmt.Errorf("%w: %s", err, exit.Stderr)
		}
		return nil, err
	}
	var list []pkg
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p pkg
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return list, nil
		} else if err != nil {
			return nil, err
		}
		list = append(list, p)
	}
})

func list(t *testing.T) []pkg {
	t.Helper()
	list, err := packages()
	require.NoError(t, err)
	require.NotEmpty(t, list)
	return list
}

// within reports whether room is one of the rooms, or below one.
func within(room string, rooms ...string) bool {
	return slices.ContainsFunc(rooms, func(r string) bool { return room == r || strings.HasPrefix(room, r+"/") })
}

// floorOf finds the floor of a room, or of the room that it is below.
func floorOf(room string) (int, bool) {
	for ; room != "."; room = path.Dir(room) {
		if floor, ok := floors[room]; ok {
			return floor, true
		}
	}
	return 0, false
}

func TestARoomImportsOnlyFloorsBelow(t *testing.T) {
	for _, p := range list(t) {
		if p.room() == "" || p.testSupport() {
			continue
		}
		floor, ok := floorOf(p.room())
		require.True(t, ok, "%s has no floor: give it one in house_test.go, and in docs/architecture.md", p.room())
		for _, imported := range p.Imports {
			room, ours := strings.CutPrefix(imported, module+"/")
			if !ours {
				continue
			}
			below, ok := floorOf(room)
			require.True(t, ok, "%s has no floor", room)
			if below > floor || below == floor && floor != 0 {
				t.Errorf("%s on floor %d imports %s on floor %d", p.room(), floor, room, below)
			}
		}
	}
}

func TestOnlyItsOwnersImportADependency(t *testing.T) {
	for _, p := range list(t) {
		for _, imported := range p.Imports {
			for dependency, rooms := range owners {
				if strings.HasPrefix(imported, dependency) && !within(p.room(), rooms...) {
					t.Errorf("%s imports %s; only %v may", p.room(), imported, rooms)
				}
			}
		}
	}
}

func TestNoTestCompilesEC2ButItsOwn(t *testing.T) {
	const heavy = "github.com/aws/aws-sdk-go-v2/service/ec2"
	compiles := map[string]bool{}
	for _, p := range list(t) {
		compiles[p.ImportPath] = slices.Contains(p.Deps, heavy) || p.ImportPath == heavy
	}
	compiles[heavy] = true
	allowed := []string{"awscloud", "cmd", "internal/agent", "internal/console"}
	for _, p := range list(t) {
		for _, imported := range slices.Concat(p.Imports, p.TestImports, p.XTestImports) {
			if compiles[imported] && !within(p.room(), allowed...) {
				t.Errorf("%s compiles service/ec2 by importing %s: 84 s and 3.3 GB from a cold cache", p.room(), imported)
			}
		}
	}
}

func TestTheClaimIsLight(t *testing.T) {
	for _, p := range list(t) {
		if p.room() != "hostclaim" {
			continue
		}
		require.NotEmpty(t, p.Deps)
		for _, dep := range p.Deps {
			for _, heavy := range []string{"github.com/aws/", "github.com/benbjohnson/litestream", "modernc.org/", "net/http", "os/exec"} {
				if strings.HasPrefix(dep, heavy) {
					t.Errorf("whoever imports hostclaim compiles %s", dep)
				}
			}
		}
	}
}

func TestNoPackageIsNamedForNothing(t *testing.T) {
	for _, p := range list(t) {
		require.NotContains(t, []string{"util", "utils", "common", "helper", "helpers", "types", "misc"}, p.Name, p.ImportPath)
	}
}

// source is one Go file of the repository.
type source struct {
	path string // inside the repository
	set  *token.FileSet
	*ast.File
}

func (s source) test() bool { return strings.HasSuffix(s.path, "_test.go") }

// lines returns how many lines a part of the file has.
func (s source) lines(n ast.Node) int {
	return s.set.Position(n.End()).Line - s.set.Position(n.Pos()).Line + 1
}

func (s source) at(n ast.Node) string {
	return fmt.Sprintf("%s:%d", s.path, s.set.Position(n.Pos()).Line)
}

// walk calls visit for each file of the repository that people wrote.
func walk(t *testing.T, visit func(file string)) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(".", func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if name := d.Name(); file != "." && (strings.HasPrefix(name, ".") || name == "testdata") {
				return fs.SkipDir
			}
			return nil
		}
		visit(filepath.ToSlash(file))
		return nil
	}))
}

func sources(t *testing.T) []source {
	t.Helper()
	var all []source
	walk(t, func(file string) {
		if !strings.HasSuffix(file, ".go") {
			return
		}
		set := token.NewFileSet()
		parsed, err := parser.ParseFile(set, file, nil, parser.ParseComments|parser.SkipObjectResolution)
		require.NoError(t, err)
		all = append(all, source{path: file, set: set, File: parsed})
	})
	return all
}

func TestFilesAndFunctionsAreShort(t *testing.T) {
	mains := map[string]int{}
	for _, s := range sources(t) {
		n := s.set.File(s.Pos()).LineCount()
		if n > longestFile {
			t.Errorf("%s has %d lines, at most %d", s.path, n, longestFile)
		}
		if s.test() {
			continue
		}
		if within(s.path, "cmd") {
			mains[path.Dir(s.path)] += n
		}
		for _, d := range s.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && s.lines(f) > longestFunction {
				t.Errorf("%s: %s has %d lines, at most %d", s.at(f), f.Name, s.lines(f), longestFunction)
			}
		}
	}
	for dir, n := range mains {
		if n >= longestMain {
			t.Errorf("%s has %d lines: logic to move", dir, n)
		}
	}
}

func TestEveryPackageAndExportedNameIsDocumented(t *testing.T) {
	documented := map[string]bool{} // by directory
	for _, s := range sources(t) {
		if s.test() {
			continue
		}
		dir := path.Dir(s.path)
		documented[dir] = documented[dir] || s.Doc.Text() != ""
		for _, d := range s.Decls {
			for _, name := range undocumented(d) {
				t.Errorf("%s: %s has no comment", s.at(d), name)
			}
		}
	}
	for dir, ok := range documented {
		if !ok {
			t.Errorf("%s has no package comment", dir)
		}
	}
}

// wellKnown are methods whose meaning is that of a standard interface.
var wellKnown = []string{"Error", "Unwrap", "Is", "String"}

// undocumented lists the exported names of a declaration that no comment is
// about. A comment on a group is about all of it.
func undocumented(d ast.Decl) []string {
	switch d := d.(type) {
	case *ast.FuncDecl:
		known := d.Recv != nil && slices.Contains(wellKnown, d.Name.Name)
		if d.Name.IsExported() && !known && exportedReceiver(d) && d.Doc.Text() == "" {
			return []string{d.Name.Name}
		}
	case *ast.GenDecl:
		var names []string
		for _, spec := range d.Specs {
			switch spec := spec.(type) {
			case *ast.TypeSpec:
				if spec.Name.IsExported() && d.Doc.Text() == "" && spec.Doc.Text() == "" {
					names = append(names, spec.Name.Name)
				}
			case *ast.ValueSpec:
				if d.Doc.Text()+spec.Doc.Text()+spec.Comment.Text() != "" {
					continue
				}
				for _, name := range spec.Names {
					if name.IsExported() {
						names = append(names, name.Name)
					}
				}
			}
		}
		return names
	}
	return nil
}

// exportedReceiver reports whether f is a function, or a method of an exported
// type.
func exportedReceiver(f *ast.FuncDecl) bool {
	if f.Recv == nil {
		return true
	}
	exported := false
	ast.Inspect(f.Recv.List[0].Type, func(n ast.Node) bool {
		if name, ok := n.(*ast.Ident); ok && !exported {
			exported = name.IsExported()
			return false
		}
		return true
	})
	return exported
}
