package main

import (
	"context"

	"k8s.io/dynamic-resource-allocation/cel"
)

func featuresOf(asked question) cel.Features {
	return cel.Features{
		EnableConsumableCapacity: asked.enabled(consumableCapacity),
		EnableListTypeAttributes: asked.enabled(listTypeAttributes),
	}
}

func optionsOf(asked question) cel.Options {
	return cel.Options{DerivedAttribute: asked.Derived}
}

func evaluate(compiled cel.CompilationResult, asked question, device cel.Device) (any, *uint64, error) {
	if !asked.Derived {
		return matches(compiled, device)
	}
	attribute, details, err := compiled.EvaluateDerivedAttribute(context.Background(), device)
	return attribute, details.ActualCost(), err
}
