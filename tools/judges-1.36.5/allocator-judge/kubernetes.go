package main

import (
	"errors"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/dynamic-resource-allocation/structured"
)

// defaults are the gates that the minor has on by default, as far as the allocator asks for them.
func defaults() sets.Set[string] {
	return sets.New(
		"DRAAdminAccess", "DRAPrioritizedList", "DRAPartitionableDevices", "DRADeviceTaints",
		"DRADeviceBindingConditions", "DRAResourceClaimDeviceStatus", "DRAConsumableCapacity",
	)
}

func featuresOf(on sets.Set[string]) structured.Features {
	return structured.Features{
		AdminAccess:            on.Has("DRAAdminAccess"),
		PrioritizedList:        on.Has("DRAPrioritizedList"),
		PartitionableDevices:   on.Has("DRAPartitionableDevices"),
		DeviceTaints:           on.Has("DRADeviceTaints"),
		DeviceBindingAndStatus: on.HasAll("DRADeviceBindingConditions", "DRAResourceClaimDeviceStatus"),
		ConsumableCapacity:     on.Has("DRAConsumableCapacity"),
		ListTypeAttributes:     on.Has("DRAListTypeAttributes"),
	}
}

func celFeaturesOf(on sets.Set[string]) cel.Features {
	return cel.Features{
		EnableConsumableCapacity: on.Has("DRAConsumableCapacity"),
		EnableListTypeAttributes: on.Has("DRAListTypeAttributes"),
	}
}

func isAboutOneNode(err error) bool {
	return errors.Is(err, structured.ErrFailedAllocationOnNode)
}
