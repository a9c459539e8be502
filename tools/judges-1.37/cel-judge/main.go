// Command cel-judge answers what Kubernetes says about CEL selectors: one JSON request a line, one JSON answer a line.
//
// Expressions are compiled as stored ones, with every gate on, as the scheduler does.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log"
	"os"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/cel"
)

type device struct {
	Driver                   string                                                    `json:"driver"`
	AllowMultipleAllocations *bool                                                     `json:"allowMultipleAllocations"`
	Attributes               map[resourceapi.QualifiedName]resourceapi.DeviceAttribute `json:"attributes"`
	Capacity                 map[resourceapi.QualifiedName]resourceapi.DeviceCapacity  `json:"capacity"`
}

type question struct {
	Expression string   `json:"expression"`
	Devices    []device `json:"devices"`
}

// answer holds either the text with which the expression is refused, or its cost and one result per device: a verdict,
// or the text of a run-time error.
type answer struct {
	Refused string  `json:"refused,omitempty"`
	Cost    *uint64 `json:"cost,omitempty"`
	Results []any   `json:"results,omitempty"`
}

func main() {
	compiler := cel.GetCompiler(cel.Features{EnableConsumableCapacity: true, EnableListTypeAttributes: true})
	questions := json.NewDecoder(os.Stdin)
	answers := json.NewEncoder(os.Stdout)
	for {
		var asked question
		if err := questions.Decode(&asked); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			log.Fatal(err)
		}
		if err := answers.Encode(judge(compiler.CompileCELExpression(asked.Expression, cel.Options{}), asked.Devices)); err != nil {
			log.Fatal(err)
		}
	}
}

func judge(compiled cel.CompilationResult, devices []device) answer {
	if compiled.Error != nil {
		return answer{Refused: compiled.Error.Error()}
	}
	given := answer{Cost: &compiled.MaxCost}
	for _, each := range devices {
		matches, _, err := compiled.DeviceMatches(context.Background(), cel.Device{
			Driver:                   each.Driver,
			AllowMultipleAllocations: each.AllowMultipleAllocations,
			Attributes:               each.Attributes,
			Capacity:                 each.Capacity,
		})
		if err != nil {
			given.Results = append(given.Results, err.Error())
		} else {
			given.Results = append(given.Results, matches)
		}
	}
	return given
}
