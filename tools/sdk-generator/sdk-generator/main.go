// Writes the SDK of a Pulumi package for Go or Node.js, as the vendor's language hosts write it: with the same packages of the engine's
// module. The hosts themselves cannot be had as modules.
//
//	sdk-generator SCHEMA go|nodejs FOLDER
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	gogen "github.com/pulumi/pulumi/pkg/v3/codegen/go"
	"github.com/pulumi/pulumi/pkg/v3/codegen/nodejs"
	"github.com/pulumi/pulumi/pkg/v3/codegen/schema"
)

func main() {
	if len(os.Args) != 4 {
		fail(fmt.Errorf("usage: sdk-generator SCHEMA go|nodejs FOLDER"))
	}
	files, err := generate(os.Args[1], os.Args[2])
	if err != nil {
		fail(err)
	}
	for name, text := range files {
		target := filepath.Join(os.Args[3], filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
			fail(err)
		}
		if err := os.WriteFile(target, text, 0o644); err != nil {
			fail(err)
		}
	}
}

func generate(file, language string) (map[string][]byte, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var spec schema.PackageSpec
	if err := json.Unmarshal(text, &spec); err != nil {
		return nil, err
	}
	languages := map[string]schema.Language{"go": gogen.Importer, "nodejs": nodejs.Importer}
	// The schema names no type of another package.
	pkg, err := schema.ImportSpec(spec, languages, schema.NewNullLoader(), schema.ValidationOptions{})
	if err != nil {
		return nil, err
	}
	switch language {
	case "go":
		return gogen.GeneratePackage("sdk-generator", pkg, nil)
	case "nodejs":
		return nodejs.GeneratePackage("sdk-generator", pkg, nil, nil, true, nil)
	}
	return nil, fmt.Errorf("%s: go or nodejs", language)
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}
