// Command allocator-judge answers what the scheduler's allocator does on each node: one JSON request a line, one JSON
// answer a line. Nothing is allocated before; the gates are those that 1.37 has on by default.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"os"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/dynamic-resource-allocation/structured"
)

type classes map[string]*resourceapi.DeviceClass

func (known classes) Get(name string) (*resourceapi.DeviceClass, error) {
	if class, found := known[name]; found {
		return class, nil
	}
	return nil, fmt.Errorf("class %s not found", name)
}

func (known classes) List() ([]*resourceapi.DeviceClass, error) {
	var all []*resourceapi.DeviceClass
	for _, class := range known {
		all = append(all, class)
	}
	return all, nil
}

type question struct {
	Slices  []*resourceapi.ResourceSlice `json:"slices"`
	Classes []*resourceapi.DeviceClass   `json:"classes"`
	Nodes   []*corev1.Node               `json:"nodes"`
	Claims  []*resourceapi.ResourceClaim `json:"claims"`
}

// answer is what happens on one node: the devices of each claim as (request, driver, pool, device), nothing possible,
// or an error, which ends the scheduling of the pod unless it is about this node alone.
type answer struct {
	Error   string        `json:"error,omitempty"`
	OnNode  bool          `json:"onNode,omitempty"`
	Devices [][][4]string `json:"devices"`
}

func main() {
	questions := json.NewDecoder(bufio.NewReaderSize(os.Stdin, 1<<20))
	answers := json.NewEncoder(os.Stdout)
	for {
		var asked question
		if err := questions.Decode(&asked); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			log.Fatal(err)
		}
		known := classes{}
		for _, class := range asked.Classes {
			known[class.Name] = class
		}
		given := []answer{}
		for _, node := range asked.Nodes {
			given = append(given, allocate(asked, known, node))
		}
		if err := answers.Encode(given); err != nil {
			log.Fatal(err)
		}
	}
}

func allocate(asked question, known classes, node *corev1.Node) answer {
	features := structured.Features{
		AdminAccess:            true,
		PrioritizedList:        true,
		PartitionableDevices:   true,
		DeviceTaints:           true,
		DeviceBindingAndStatus: true,
		ConsumableCapacity:     true,
	}
	free := structured.AllocatedState{
		AllocatedDevices:         sets.New[structured.DeviceID](),
		AllocatedSharedDeviceIDs: sets.New[structured.SharedDeviceID](),
		AggregatedCapacity:       structured.NewConsumedCapacityCollection(),
	}
	ctx := context.Background()
	allocator, err := structured.NewAllocator(ctx, features, free, known, asked.Slices, cel.NewCache(100, cel.Features{}))
	if err != nil {
		log.Fatal(err)
	}
	allocations, err := allocator.Allocate(ctx, node, asked.Claims)
	if err != nil {
		return answer{Error: err.Error(), OnNode: errors.Is(err, structured.ErrFailedAllocationOnNode)}
	}
	if allocations == nil {
		return answer{}
	}
	devices := [][][4]string{}
	for _, allocation := range allocations {
		picked := [][4]string{}
		for _, result := range allocation.Devices.Results {
			picked = append(picked, [4]string{result.Request, result.Driver, result.Pool, result.Device})
		}
		devices = append(devices, picked)
	}
	return answer{Devices: devices}
}
