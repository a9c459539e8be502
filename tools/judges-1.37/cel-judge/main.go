// Command cel-judge answers what Kubernetes says about CEL expressions: one JSON question a line, one JSON answer a line.
//
// The folders of the other minors hold links to this file, which is the same for all, and a file `kubernetes.go` for what
// their packages call differently. The README beside this folder describes the lines.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"slices"

	resourceapi "k8s.io/api/resource/v1"
	apiservercel "k8s.io/apiserver/pkg/cel"
	"k8s.io/apiserver/pkg/cel/environment"
	"k8s.io/dynamic-resource-allocation/cel"
)

const (
	consumableCapacity = "DRAConsumableCapacity"
	listTypeAttributes = "DRAListTypeAttributes"
)

type device struct {
	Driver                   string                                                    `json:"driver"`
	AllowMultipleAllocations *bool                                                     `json:"allowMultipleAllocations"`
	Attributes               map[resourceapi.QualifiedName]resourceapi.DeviceAttribute `json:"attributes"`
	Capacity                 map[resourceapi.QualifiedName]resourceapi.DeviceCapacity  `json:"capacity"`
}

// question is about an expression as the scheduler compiles it, unless New asks for what the API server does with one
// that a request brings. All feature gates are on but those in Disabled.
type question struct {
	Expression string   `json:"expression"`
	New        bool     `json:"new"`
	Disabled   []string `json:"disabled"`
	Derived    bool     `json:"derived"`
	Devices    []device `json:"devices"`
}

// answer holds either the text with which the expression is refused, or its type, its cost and one result per device: a
// verdict (of a derived attribute its value), or the text of a run-time error. Spent has what each evaluation cost, null
// where the package does not say. Some expressions make the package panic, which an API server answers with an internal
// error.
type answer struct {
	Refused  string    `json:"refused,omitempty"`
	Internal bool      `json:"internal,omitempty"`
	Panicked bool      `json:"panicked,omitempty"`
	Type     string    `json:"type,omitempty"`
	Cost     *uint64   `json:"cost,omitempty"`
	Results  []any     `json:"results,omitempty"`
	Spent    []*uint64 `json:"spent,omitempty"`
}

type compiler interface {
	CompileCELExpression(expression string, options cel.Options) cel.CompilationResult
}

// compilers are kept by features: the package itself keeps only the last one.
var compilers = map[cel.Features]compiler{}

func main() {
	questions := json.NewDecoder(os.Stdin)
	answers := json.NewEncoder(os.Stdout)
	answers.SetEscapeHTML(false)
	for {
		var asked question
		if err := questions.Decode(&asked); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			log.Fatal(err)
		}
		if err := answers.Encode(judge(asked)); err != nil {
			log.Fatal(err)
		}
	}
}

func judge(asked question) (given answer) {
	defer func() {
		if reason := recover(); reason != nil {
			given = answer{Refused: fmt.Sprint(reason), Panicked: true}
		}
	}()
	features := featuresOf(asked)
	chosen, found := compilers[features]
	if !found {
		chosen = cel.GetCompiler(features)
		compilers[features] = chosen
	}
	options := optionsOf(asked)
	if asked.New {
		kind := environment.NewExpressions
		options.EnvType = &kind
	}
	compiled := chosen.CompileCELExpression(asked.Expression, options)
	if compiled.Error != nil {
		return answer{
			Refused:  compiled.Error.Error(),
			Internal: compiled.Error.Type == apiservercel.ErrorTypeInternal,
		}
	}
	given = answer{Type: compiled.OutputType.String(), Cost: &compiled.MaxCost}
	for _, each := range asked.Devices {
		result, spent, err := evaluate(compiled, asked, cel.Device{
			Driver:                   each.Driver,
			AllowMultipleAllocations: each.AllowMultipleAllocations,
			Attributes:               each.Attributes,
			Capacity:                 each.Capacity,
		})
		if err != nil {
			result = err.Error()
		}
		given.Results = append(given.Results, result)
		given.Spent = append(given.Spent, spent)
	}
	return given
}

func (asked question) enabled(gate string) bool {
	return !slices.Contains(asked.Disabled, gate)
}

func matches(compiled cel.CompilationResult, device cel.Device) (any, *uint64, error) {
	verdict, details, err := compiled.DeviceMatches(context.Background(), device)
	return verdict, details.ActualCost(), err
}
