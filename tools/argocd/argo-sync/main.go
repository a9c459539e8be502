// Command argo-sync syncs a file of objects as Argo CD does, with the engine of Argo CD, and prunes what is no longer in it.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/argoproj/argo-cd/gitops-engine/pkg/cache"
	"github.com/argoproj/argo-cd/gitops-engine/pkg/sync"
	"github.com/argoproj/argo-cd/gitops-engine/pkg/sync/common"
	"github.com/argoproj/argo-cd/gitops-engine/pkg/utils/kube"
	"github.com/argoproj/argo-cd/gitops-engine/pkg/utils/tracing"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2/textlogger"
)

// Annotation by which objects of an earlier sync are known, in place of Argo CD's tracking by instance.
const mark = "dra-infra.invalid/synced"

type info struct{ isOurs bool }

func main() {
	if len(os.Args) != 4 {
		fmt.Fprintln(os.Stderr, "usage: argo-sync KUBECONFIG NAMESPACE FILE")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2], os.Args[3]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(kubeconfig, namespace, file string) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	objects, err := kube.SplitYAML(text)
	if err != nil {
		return err
	}
	for _, each := range objects {
		annotations := each.GetAnnotations()
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations[mark] = "true"
		each.SetAnnotations(annotations)
	}
	known := cache.NewClusterCache(config, cache.SetPopulateResourceInfoHandler(
		func(object *unstructured.Unstructured, _ bool) (any, bool) {
			isOurs := object.GetAnnotations()[mark] != ""
			return &info{isOurs: isOurs}, isOurs
		},
	))
	if err := known.EnsureSynced(); err != nil {
		return err
	}
	defer known.Invalidate()
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	isOurs := func(resource *cache.Resource) bool {
		found, ok := resource.Info.(*info)
		return ok && found.isOurs
	}
	// As SyncAppState of Argo CD's controller: each round reads what is live, and goes on where the last one ended.
	kubectl := &kube.KubectlCmd{Log: textlogger.NewLogger(textlogger.NewConfig()), Tracer: tracing.NopTracer{}}
	started := metav1.Now()
	phase, message, results := common.OperationRunning, "", []common.ResourceSyncResult(nil)
	for round := 0; ; round++ {
		live, err := known.GetManagedLiveObjs(objects, isOurs)
		if err != nil {
			return err
		}
		options := []sync.SyncOpt{sync.WithPrune(true)}
		if round > 0 {
			options = append(options, sync.WithInitialState(phase, message, results, started))
		}
		reconciled := sync.Reconcile(objects, live, namespace, known)
		syncing, cleanup, err := sync.NewSyncContext("revision", reconciled, config, config, kubectl, namespace, options...)
		if err != nil {
			return err
		}
		syncing.Sync()
		phase, message, results = syncing.GetState()
		cleanup()
		if phase.Completed() {
			break
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Second):
		}
	}
	if phase != common.OperationSucceeded {
		return fmt.Errorf("the sync ended as %s: %s", phase, message)
	}
	for _, each := range results {
		line, err := json.Marshal(map[string]any{
			"object": each.ResourceKey.String(), "order": each.Order, "status": each.Status, "message": each.Message,
		})
		if err != nil {
			return err
		}
		fmt.Println(string(line))
	}
	return nil
}
