package main

import (
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/dynamic-resource-allocation/structured"
)

// defaults are the gates that the minor has on by default, as far as the allocator asks for them.
func defaults() sets.Set[string] {
	return sets.New(
		"DRAAdminAccess", "DRAPrioritizedList", "DRAResourceClaimDeviceStatus",
	)
}

func featuresOf(on sets.Set[string]) structured.Features {
	return structured.Features{
		AdminAccess:          on.Has("DRAAdminAccess"),
		PrioritizedList:      on.Has("DRAPrioritizedList"),
		PartitionableDevices: on.Has("DRAPartitionableDevices"),
		DeviceTaints:         on.Has("DRADeviceTaints"),
		DeviceBinding:        on.Has("DRADeviceBindingConditions"),
		DeviceStatus:         on.Has("DRAResourceClaimDeviceStatus"),
		ConsumableCapacity:   on.Has("DRAConsumableCapacity"),
	}
}

func celFeaturesOf(on sets.Set[string]) cel.Features {
	return cel.Features{
		EnableConsumableCapacity: on.Has("DRAConsumableCapacity"),
	}
}

// Errors about one node alone came with 1.35.
func isAboutOneNode(error) bool {
	return false
}
