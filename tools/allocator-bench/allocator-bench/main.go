// Command allocator-bench times the scheduler's own allocator: allocator-bench QUESTION FILE [stable]. README.md of this
// folder's parent describes them.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/dynamic-resource-allocation/structured"
)

type cluster struct {
	Slices  []*resourceapi.ResourceSlice `json:"slices"`
	Classes classes                      `json:"classes"`
	Nodes   []*corev1.Node               `json:"nodes"`
	Claims  []*resourceapi.ResourceClaim `json:"claims"`
	// Pods is how many are placed one after the other.
	Pods int `json:"pods"`
	// Timeout in seconds ends an attempt.
	Timeout float64 `json:"timeout"`
}

type classes []*resourceapi.DeviceClass

func (known classes) Get(name string) (*resourceapi.DeviceClass, error) {
	for _, class := range known {
		if class.Name == name {
			return class, nil
		}
	}
	return nil, apierrors.NewNotFound(resourceapi.Resource("deviceclass"), name)
}

func (known classes) List() ([]*resourceapi.DeviceClass, error) { return known, nil }

// figure is what is printed: Fits counts nodes, pods that are placed, or matches of selectors.
type figure struct {
	Question string  `json:"question"`
	Seconds  float64 `json:"seconds"`
	Fits     int     `json:"fits"`
	TimedOut bool    `json:"timedOut,omitempty"`
}

// features are those that the scheduler of 1.37 passes on by default, or what its stable copy of the allocator has.
func features(stable bool) structured.Features {
	return structured.Features{
		AdminAccess:             true,
		PrioritizedList:         true,
		PartitionableDevices:    true,
		DeviceTaints:            true,
		DeviceBindingAndStatus:  !stable,
		ConsumableCapacity:      !stable,
		FractionalCapacityRange: !stable,
	}
}

// attempt is one attempt of the scheduler, which makes an allocator for each pod and keeps compiled expressions.
type attempt struct {
	cluster  cluster
	features structured.Features
	state    structured.AllocatedState
	cache    *cel.Cache
}

func (one *attempt) begin(ctx context.Context) structured.Allocator {
	made, err := structured.NewAllocator(
		ctx, one.features, one.state, one.cluster.Classes, one.cluster.Slices, one.cache,
	)
	if err != nil {
		log.Fatal(err)
	}
	return made
}

// everywhere asks all nodes for one pod, and tells how many can take it.
func (one *attempt) everywhere(ctx context.Context) (fits int) {
	allocator := one.begin(ctx)
	for _, node := range one.cluster.Nodes {
		found, err := allocator.Allocate(ctx, node, one.cluster.Claims)
		if ctx.Err() != nil {
			return fits
		}
		if err != nil {
			log.Fatal(err)
		}
		if found != nil {
			fits++
		}
	}
	return fits
}

// fill places pods one after the other on the first node that can take one, beginning with the node of the pod before.
func (one *attempt) fill(ctx context.Context) (placed int) {
	start := 0
	for range one.cluster.Pods {
		allocator := one.begin(ctx)
		for turn := range one.cluster.Nodes {
			number := (start + turn) % len(one.cluster.Nodes)
			found, err := allocator.Allocate(ctx, one.cluster.Nodes[number], one.cluster.Claims)
			if err != nil {
				log.Fatal(err)
			}
			if found == nil {
				continue
			}
			for _, result := range found {
				for _, device := range result.Devices.Results {
					one.state.AllocatedDevices.Insert(structured.MakeDeviceID(device.Driver, device.Pool, device.Device))
				}
			}
			start = number
			placed++
			break
		}
	}
	return placed
}

// evaluate asks each selector of the claims about each device, in as many rounds as there are pods, and tells how many match.
func (one *attempt) evaluate(ctx context.Context) (matches int) {
	var selectors []cel.CompilationResult
	for _, claim := range one.cluster.Claims {
		for _, request := range claim.Spec.Devices.Requests {
			for _, selector := range request.Exactly.Selectors {
				selectors = append(selectors, one.cache.GetOrCompile(selector.CEL.Expression))
			}
		}
	}
	for range one.cluster.Pods {
		for _, slice := range one.cluster.Slices {
			for _, device := range slice.Spec.Devices {
				input := cel.Device{Driver: slice.Spec.Driver, Attributes: device.Attributes, Capacity: device.Capacity}
				for _, selector := range selectors {
					found, _, err := selector.DeviceMatches(ctx, input)
					if err != nil {
						log.Fatal(err)
					}
					if found {
						matches++
					}
				}
			}
		}
	}
	return matches
}

func main() {
	if len(os.Args) < 3 {
		log.Fatal("usage: allocator-bench QUESTION FILE [stable]")
	}
	stable := len(os.Args) > 3 && os.Args[3] == "stable"
	question := os.Args[1]
	text, err := os.ReadFile(os.Args[2])
	if err != nil {
		log.Fatal(err)
	}
	one := attempt{
		features: features(stable),
		state: structured.AllocatedState{
			AllocatedDevices:         sets.New[structured.DeviceID](),
			AllocatedSharedDeviceIDs: sets.New[structured.SharedDeviceID](),
			AggregatedCapacity:       structured.NewConsumedCapacityCollection(),
		},
		cache: cel.NewCache(100, cel.Features{EnableConsumableCapacity: !stable}),
	}
	if err := json.Unmarshal(text, &one.cluster); err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	if one.cluster.Timeout > 0 {
		limited, cancel := context.WithTimeout(ctx, time.Duration(one.cluster.Timeout*float64(time.Second)))
		defer cancel()
		ctx = limited
	}
	warmUp(one)
	var fits int
	started := time.Now()
	switch question {
	case "fill":
		fits = one.fill(ctx)
	case "selectors":
		fits = one.evaluate(ctx)
	default:
		fits = one.everywhere(ctx)
	}
	seconds := time.Since(started).Seconds()
	if err := json.NewEncoder(os.Stdout).Encode(figure{question, seconds, fits, ctx.Err() != nil}); err != nil {
		log.Fatal(err)
	}
	// The last word is what `make bench` reads.
	fmt.Println(seconds)
}

// warmUp compiles what the claims read, as a scheduler has that has seen such a pod before.
func warmUp(one attempt) {
	for _, class := range one.cluster.Classes {
		for _, selector := range class.Spec.Selectors {
			one.cache.GetOrCompile(selector.CEL.Expression)
		}
	}
	for _, claim := range one.cluster.Claims {
		for _, request := range claim.Spec.Devices.Requests {
			for _, selector := range request.Exactly.Selectors {
				one.cache.GetOrCompile(selector.CEL.Expression)
			}
		}
	}
}
