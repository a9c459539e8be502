package main

import "k8s.io/dynamic-resource-allocation/cel"

func featuresOf(asked question) cel.Features {
	return cel.Features{
		EnableConsumableCapacity: asked.enabled(consumableCapacity),
		EnableListTypeAttributes: asked.enabled(listTypeAttributes),
	}
}

// Derived attributes came with 1.37.
func optionsOf(question) cel.Options {
	return cel.Options{}
}

func evaluate(compiled cel.CompilationResult, _ question, device cel.Device) (any, *uint64, error) {
	return matches(compiled, device)
}
