// Package programs names what programs of tests in Go import, so that go.mod and go.sum of this folder have it.
package programs

import (
	_ "github.com/pulumi/pulumi/sdk/v3/go/auto"
	_ "github.com/pulumi/pulumi/sdk/v3/go/pulumi"
)
