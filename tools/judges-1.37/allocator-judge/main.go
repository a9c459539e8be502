// Command allocator-judge answers what the scheduler's allocator does on each node: one JSON request a line, one JSON
// answer a line. README.md of this folder's parent describes both.
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
	"runtime"
	"sort"
	"sync"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/dynamic-resource-allocation/structured"
)

type classes map[string]*resourceapi.DeviceClass

// Get fails with what the scheduler's lister says.
func (known classes) Get(name string) (*resourceapi.DeviceClass, error) {
	if class, found := known[name]; found {
		return class, nil
	}
	return nil, apierrors.NewNotFound(resourceapi.Resource("deviceclass"), name)
}

func (known classes) List() ([]*resourceapi.DeviceClass, error) {
	var all []*resourceapi.DeviceClass
	for _, class := range known {
		all = append(all, class)
	}
	return all, nil
}

type device struct {
	Driver   string                                          `json:"driver"`
	Pool     string                                          `json:"pool"`
	Device   string                                          `json:"device"`
	ShareID  string                                          `json:"shareID"`
	Capacity map[resourceapi.QualifiedName]resource.Quantity `json:"capacity"`
}

func (named device) id() structured.DeviceID {
	return structured.MakeDeviceID(named.Driver, named.Pool, named.Device)
}

// allocated is what earlier pods hold: whole devices, shares, and the capacity that all shares of a device take.
type allocated struct {
	Devices  []device `json:"devices"`
	Shares   []device `json:"shares"`
	Capacity []device `json:"capacity"`
}

type question struct {
	Slices    []*resourceapi.ResourceSlice `json:"slices"`
	Classes   []*resourceapi.DeviceClass   `json:"classes"`
	Nodes     []*corev1.Node               `json:"nodes"`
	Claims    []*resourceapi.ResourceClaim `json:"claims"`
	Allocated allocated                    `json:"allocated"`
	Features  []string                     `json:"features"`
	CEL       []string                     `json:"cel"`
	Runs      int                          `json:"runs"`
	Batch     []question                   `json:"batch"`
}

// answer is what happens on one node: the devices of each claim as (request, driver, pool, device), nothing possible,
// or an error, which ends the scheduling of the pod unless it is about this node alone.
type answer struct {
	Error   string        `json:"error,omitempty"`
	OnNode  bool          `json:"onNode,omitempty"`
	Devices [][][4]string `json:"devices"`
}

// outcome is the same with everything that the claims get.
type outcome struct {
	Error       string                         `json:"error,omitempty"`
	OnNode      bool                           `json:"onNode,omitempty"`
	Panicked    bool                           `json:"panicked,omitempty"`
	Allocations []resourceapi.AllocationResult `json:"allocations"`
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
		if asked.Batch == nil {
			given := []answer{}
			for _, node := range asked.Nodes {
				given = append(given, short(allocate(asked, defaults(), defaults(), node)))
			}
			if err := answers.Encode(given); err != nil {
				log.Fatal(err)
			}
			continue
		}
		if err := answers.Encode(all(asked.Batch)); err != nil {
			log.Fatal(err)
		}
	}
}

// all answers the questions of a batch, each with the different outcomes of its runs, node by node.
func all(batch []question) [][][]json.RawMessage {
	given := make([][][]json.RawMessage, len(batch))
	var group sync.WaitGroup
	tokens := make(chan struct{}, runtime.NumCPU())
	for i, asked := range batch {
		group.Add(1)
		tokens <- struct{}{}
		go func() {
			defer group.Done()
			given[i] = outcomes(asked)
			<-tokens
		}()
	}
	group.Wait()
	return given
}

func outcomes(asked question) [][]json.RawMessage {
	found := make([]sets.Set[string], len(asked.Nodes))
	for i := range found {
		found[i] = sets.New[string]()
	}
	features, dialect := sets.New(asked.Features...), sets.New(asked.CEL...)
	for range max(asked.Runs, 1) {
		// One allocator for all nodes, as in one attempt of the scheduler: it keeps what it computed of counters.
		allocator := newAllocator(asked, features, dialect)
		for i, node := range asked.Nodes {
			text, err := json.Marshal(try(allocator, asked.Claims, node))
			if err != nil {
				log.Fatal(err)
			}
			found[i].Insert(string(text))
		}
	}
	given := make([][]json.RawMessage, len(found))
	for i, texts := range found {
		sorted := texts.UnsortedList()
		sort.Strings(sorted)
		for _, text := range sorted {
			given[i] = append(given[i], json.RawMessage(text))
		}
	}
	return given
}

func allocate(asked question, features, dialect sets.Set[string], node *corev1.Node) outcome {
	return try(newAllocator(asked, features, dialect), asked.Claims, node)
}

var (
	caches      = map[cel.Features]*cel.Cache{}
	cachesMutex sync.Mutex
)

// cacheOf keeps compiled expressions, for making a compiler takes much longer than an allocation.
func cacheOf(dialect sets.Set[string]) *cel.Cache {
	cachesMutex.Lock()
	defer cachesMutex.Unlock()
	features := celFeaturesOf(dialect)
	if caches[features] == nil {
		caches[features] = cel.NewCache(10000, features)
	}
	return caches[features]
}

func newAllocator(asked question, features, dialect sets.Set[string]) structured.Allocator {
	known := classes{}
	for _, class := range asked.Classes {
		known[class.Name] = class
	}
	state := structured.AllocatedState{
		AllocatedDevices:         sets.New[structured.DeviceID](),
		AllocatedSharedDeviceIDs: sets.New[structured.SharedDeviceID](),
		AggregatedCapacity:       structured.NewConsumedCapacityCollection(),
	}
	for _, taken := range asked.Allocated.Devices {
		state.AllocatedDevices.Insert(taken.id())
	}
	for _, taken := range asked.Allocated.Shares {
		share := types.UID(taken.ShareID)
		state.AllocatedSharedDeviceIDs.Insert(structured.MakeSharedDeviceID(taken.id(), &share))
	}
	for _, taken := range asked.Allocated.Capacity {
		state.AggregatedCapacity.Insert(structured.NewDeviceConsumedCapacity(taken.id(), taken.Capacity))
	}
	made, err := structured.NewAllocator(
		context.Background(), featuresOf(features), state, known, asked.Slices, cacheOf(dialect),
	)
	if err != nil {
		log.Fatal(err)
	}
	return made
}

func try(allocator structured.Allocator, claims []*resourceapi.ResourceClaim, node *corev1.Node) (given outcome) {
	defer func() {
		if broken := recover(); broken != nil {
			given = outcome{Error: fmt.Sprint(broken), Panicked: true}
		}
	}()
	allocations, err := allocator.Allocate(context.Background(), node, claims)
	if err != nil {
		return outcome{Error: err.Error(), OnNode: isAboutOneNode(err)}
	}
	for i := range allocations {
		for j := range allocations[i].Devices.Results {
			// The id is random; that there is one is part of the answer.
			if result := &allocations[i].Devices.Results[j]; result.ShareID != nil {
				share := types.UID("share")
				result.ShareID = &share
			}
		}
	}
	return outcome{Allocations: allocations}
}

func short(found outcome) answer {
	if found.Error != "" {
		return answer{Error: found.Error, OnNode: found.OnNode}
	}
	if found.Allocations == nil {
		return answer{}
	}
	devices := [][][4]string{}
	for _, allocation := range found.Allocations {
		picked := [][4]string{}
		for _, result := range allocation.Devices.Results {
			picked = append(picked, [4]string{result.Request, result.Driver, result.Pool, result.Device})
		}
		devices = append(devices, picked)
	}
	return answer{Devices: devices}
}
