// A program in Go with the SDK that is generated from our schema, run by Pulumi's Automation API in the project of the current folder:
//
//	main preview|up NAMESPACE
//
// Where a monitor has started it, as an engine and dra-infra do, it is the platform in the namespace `space`.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/pulumi/pulumi/sdk/v3/go/auto"
	"github.com/pulumi/pulumi/sdk/v3/go/auto/optpreview"
	"github.com/pulumi/pulumi/sdk/v3/go/auto/optup"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	dra "github.com/dra-infra/pulumi-dra-infra/sdk/go/dra-infra"
)

// platform is what platform.py has in Python and YAML.
func platform(space string) pulumi.RunFunc {
	return func(ctx *pulumi.Context) error {
		classes, err := dra.NewGpuDeviceClass(ctx, space+"-h100", &dra.GpuDeviceClassArgs{
			Match:  &dra.MatchArgs{Product: pulumi.StringRef("H100"), MemoryAtLeast: pulumi.StringRef("79Gi")},
			Labels: map[string]pulumi.StringInput{"team": pulumi.String("platform")},
		})
		if err != nil {
			return err
		}
		h100 := classes.ObjectName
		long, all := dra.TimeSliceLong, true
		if _, err := dra.NewGpuClaimTemplate(ctx, "trainer", &dra.GpuClaimTemplateArgs{
			DeviceClass: h100,
			Count:       pulumi.Int(4),
			Configs:     []dra.DeviceConfigArgs{{TimeSlicing: &dra.TimeSlicingArgs{Interval: &long}}},
			Namespace:   pulumi.String(space),
		}); err != nil {
			return err
		}
		if _, err := dra.NewGpuClaimTemplate(ctx, "ladder", &dra.GpuClaimTemplateArgs{
			FirstAvailable: []dra.AlternativeArgs{
				{Name: "h100", DeviceClass: h100, Count: pulumi.Int(2)},
				{Name: "any", DeviceClass: pulumi.String("gpu.nvidia.com"), AllDevices: &all},
			},
			Namespace: pulumi.String(space),
		}); err != nil {
			return err
		}
		if _, err := dra.NewMigPartition(ctx, "notebook", &dra.MigPartitionArgs{
			Profile:   pulumi.StringRef("1g.10gb"),
			Namespace: pulumi.String(space),
		}); err != nil {
			return err
		}
		_, err = dra.NewGpuTenant(ctx, space+"-vision", &dra.GpuTenantArgs{
			Quota: map[string]int{space + "-h100": 8, "mig.nvidia.com": 7},
			Hard:  map[string]pulumi.StringInput{"pods": pulumi.String("100")},
			Templates: map[string]dra.TenantTemplateArgs{
				"trainer":  {Claim: &dra.TenantGpuClaimTemplateArgs{DeviceClass: h100, Count: pulumi.Int(4)}},
				"notebook": {Mig: &dra.TenantMigPartitionArgs{Profile: pulumi.StringRef("1g.10gb")}},
			},
		})
		return err
	}
}

func run(command, space string) error {
	ctx := context.Background()
	folder, err := os.Getwd()
	if err != nil {
		return err
	}
	stack, err := auto.UpsertStackInlineSource(ctx, "dev", "project", platform(space), auto.WorkDir(folder))
	if err != nil {
		return err
	}
	if command == "up" {
		_, err = stack.Up(ctx, optup.ProgressStreams(os.Stdout))
	} else {
		_, err = stack.Preview(ctx, optpreview.ProgressStreams(os.Stdout))
	}
	return err
}

func main() {
	if os.Getenv(pulumi.EnvMonitor) != "" {
		pulumi.Run(platform("space"))
		return
	}
	if err := run(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
