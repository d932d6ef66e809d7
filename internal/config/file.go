package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
	"go.yaml.in/yaml/v4"
)

// maxFile is the longest settings file in bytes.
const maxFile = 1 << 20

// File is the type of the --config flag: kong hands it the path before it
// looks for values, and it adds the file's.
type File string

// BeforeResolve reads the file. It is called by kong for a path that was given
// and for the default one; only the default one may be absent.
func (File) BeforeResolve(parser *kong.Kong, ctx *kong.Context, trace *kong.Path) error {
	path := string(ctx.FlagValue(trace.Flag).(File))
	body, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) && path == trace.Flag.Default {
		return nil
	}
	if err != nil {
		return fmt.Errorf("settings file: %w", err)
	}
	values, err := parseFile(body, known(parser.Model))
	if err != nil {
		return fmt.Errorf("settings file %s: %w", path, err)
	}
	ctx.AddResolver(kong.ResolverFunc(values.resolve))
	return nil
}

// known lists the settings that a file may hold: every flag of every command
// but those that are about one run.
func known(app *kong.Application) []string {
	var names []string
	_ = kong.Visit(app.Node, func(v kong.Visitable, next kong.Next) error {
		if f, ok := v.(*kong.Flag); ok && len(f.Envs) > 0 && f.Name != "config" {
			names = append(names, f.Name)
		}
		return next(nil)
	})
	slices.Sort(names)
	return slices.Compact(names)
}

// fileValues holds a file's settings by name, each as kong takes it: text, a
// list, or a map.
type fileValues map[string]any

// resolve is kong's question for one flag. kong would let the file beat the
// environment, so a flag that has its variable set is not answered.
func (v fileValues) resolve(_ *kong.Context, _ *kong.Path, flag *kong.Flag) (any, error) {
	for _, name := range flag.Envs {
		if _, set := os.LookupEnv(name); set {
			return nil, nil
		}
	}
	if value, ok := v[flag.Name]; ok && len(flag.Envs) > 0 {
		return value, nil
	}
	return nil, nil
}

func parseFile(body []byte, names []string) (fileValues, error) {
	if len(body) > maxFile {
		return nil, fmt.Errorf("%d bytes, at most %d", len(body), maxFile)
	}
	var doc yaml.Node
	if err := yaml.Load(body, &doc); err != nil {
		return nil, err
	}
	if doc.IsZero() || len(doc.Content) == 0 {
		return fileValues{}, nil
	}
	root := doc.Content[0]
	if root.Kind != yaml.MappingNode {
		return nil, fmt.Errorf("line %d: want lines of the form \"setting: value\"", root.Line)
	}
	values := fileValues{}
	for i := 0; i+1 < len(root.Content); i += 2 {
		key := root.Content[i]
		if !slices.Contains(names, key.Value) {
			return nil, fmt.Errorf("line %d: unknown setting %q; known are %s", key.Line, key.Value, strings.Join(names, ", "))
		}
		if _, twice := values[key.Value]; twice {
			return nil, fmt.Errorf("line %d: setting %q stands twice", key.Line, key.Value)
		}
		value, err := plain(root.Content[i+1])
		if err != nil {
			return nil, fmt.Errorf("setting %q: %w", key.Value, err)
		}
		values[key.Value] = value
	}
	return values, nil
}

// plain turns a node into what kong takes. Scalars stay the text that stands
// in the file, so that a setting means the same there as on a command line.
func plain(n *yaml.Node) (any, error) {
	switch n.Kind {
	case yaml.ScalarNode:
		return text(n)
	case yaml.SequenceNode:
		list := []any{}
		for _, item := range n.Content {
			s, err := text(item)
			if err != nil {
				return nil, err
			}
			list = append(list, s)
		}
		return list, nil
	case yaml.MappingNode:
		m := map[string]any{}
		for i := 0; i+1 < len(n.Content); i += 2 {
			s, err := text(n.Content[i+1])
			if err != nil {
				return nil, err
			}
			m[n.Content[i].Value] = s
		}
		return m, nil
	}
	return nil, fmt.Errorf("line %d: want a value, a list or a map", n.Line)
}

func text(n *yaml.Node) (string, error) {
	if n.Kind != yaml.ScalarNode || n.ShortTag() == "!!null" {
		return "", fmt.Errorf("line %d: want one value", n.Line)
	}
	return n.Value, nil
}
