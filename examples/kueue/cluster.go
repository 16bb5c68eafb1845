package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// queues are the queues and flavors of a cluster, as the cache has them. The objects must not be changed.
type queues struct {
	local   map[types.NamespacedName]string // the ClusterQueue of a LocalQueue
	cluster map[string]*ClusterQueue
	cohort  map[string]*Cohort
	managed map[string]bool // ClusterQueues that ask stint, by name
	checks  checkNames
}

// checkNames are the AdmissionChecks of the controller.
type checkNames map[string]bool

func readChecks(ctx context.Context, c client.Reader, controller string) (checkNames, error) {
	var list kueue.AdmissionCheckList
	if err := c.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, err
	}
	names := checkNames{}
	for i := range list.Items {
		if list.Items[i].Spec.ControllerName == controller {
			names[list.Items[i].Name] = true
		}
	}
	return names, nil
}

func readQueues(ctx context.Context, c client.Reader, controller string) (*queues, error) {
	var local kueue.LocalQueueList
	var cluster ClusterQueueList
	var cohort CohortList
	for _, list := range []client.ObjectList{&local, &cluster, &cohort} {
		if err := c.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
			return nil, err
		}
	}
	checks, err := readChecks(ctx, c, controller)
	if err != nil {
		return nil, err
	}
	q := &queues{local: map[types.NamespacedName]string{}, cluster: map[string]*ClusterQueue{},
		cohort: map[string]*Cohort{}, managed: map[string]bool{}, checks: checks}
	for i := range local.Items {
		l := &local.Items[i]
		q.local[client.ObjectKeyFromObject(l)] = string(l.Spec.ClusterQueue)
	}
	for i := range cohort.Items {
		q.cohort[cohort.Items[i].Name] = &cohort.Items[i]
	}
	for i := range cluster.Items {
		one := &cluster.Items[i]
		q.cluster[one.Name] = one
		q.managed[one.Name] = checks.asks(one)
	}
	return q, nil
}

// asks reports whether a ClusterQueue has a check of the controller.
func (c checkNames) asks(queue *ClusterQueue) bool {
	s := queue.Spec.AdmissionChecksStrategy
	return s != nil && slices.ContainsFunc(s.AdmissionChecks, func(r kueue.AdmissionCheckStrategyRule) bool {
		return c[string(r.Name)]
	})
}

// of is the ClusterQueue of a workload if it asks stint, or nil.
func (q *queues) of(wl *kueue.Workload) *ClusterQueue {
	name := q.local[types.NamespacedName{Namespace: wl.Namespace, Name: string(wl.Spec.QueueName)}]
	if wl.Status.Admission != nil {
		name = string(wl.Status.Admission.ClusterQueue)
	}
	if !q.managed[name] {
		return nil
	}
	return q.cluster[name]
}

// queueOf is of for one workload.
func (c checkNames) queueOf(ctx context.Context, cache client.Reader, wl *kueue.Workload) (*ClusterQueue, error) {
	var name string
	if wl.Status.Admission != nil {
		name = string(wl.Status.Admission.ClusterQueue)
	} else {
		var local kueue.LocalQueue
		key := types.NamespacedName{Namespace: wl.Namespace, Name: string(wl.Spec.QueueName)}
		if err := cache.Get(ctx, key, &local); err != nil {
			return nil, client.IgnoreNotFound(err)
		}
		name = string(local.Spec.ClusterQueue)
	}
	queue := &ClusterQueue{}
	if err := cache.Get(ctx, types.NamespacedName{Name: name}, queue); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	if !c.asks(queue) {
		return nil, nil
	}
	return queue, nil
}

// stateOf is the state of the controller's check of a workload, "": it has none.
func (c checkNames) stateOf(wl *kueue.Workload) kueue.CheckState {
	for i := range wl.Status.AdmissionChecks {
		if c[string(wl.Status.AdmissionChecks[i].Name)] {
			return wl.Status.AdmissionChecks[i].State
		}
	}
	return ""
}

// nodes are the nodes of a cluster with their flavors.
type nodes struct {
	list    corev1.NodeList
	flavors kueue.ResourceFlavorList
}

func readNodes(ctx context.Context, c client.Reader) (*nodes, error) {
	n := &nodes{}
	if err := c.List(ctx, &n.list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, err
	}
	return n, c.List(ctx, &n.flavors, client.UnsafeDisableDeepCopy)
}

// flavorsOf are the flavors whose labels a node has, in order of names.
func (n *nodes) flavorsOf(node *corev1.Node) (names []string) {
	for i := range n.flavors.Items {
		f := &n.flavors.Items[i]
		fits := true
		for key, value := range f.Spec.NodeLabels {
			fits = fits && node.Labels[key] == value
		}
		if fits {
			names = append(names, f.Name)
		}
	}
	slices.Sort(names)
	return names
}

// byFlavor are the flavors of each host.
func (n *nodes) byFlavor() map[string][]string {
	all := make(map[string][]string, len(n.list.Items))
	for i := range n.list.Items {
		all[n.list.Items[i].Name] = n.flavorsOf(&n.list.Items[i])
	}
	return all
}

// hosts is the table of hosts: what pods may take of a node, and its first flavor. A cordoned node is closed, one that
// is not ready is unavailable. Rows are sorted by name: the cache lists nodes in another order each time, and stint
// chooses hosts in the order of the table.
func (n *nodes) hosts(resources []divided) ([]map[string]any, error) {
	slices.SortFunc(n.list.Items, func(a, b corev1.Node) int { return strings.Compare(a.Name, b.Name) })
	rows := []map[string]any{}
	for i := range n.list.Items {
		node := &n.list.Items[i]
		row := map[string]any{"host": node.Name, "state": stateOf(node)}
		for _, r := range resources {
			q := node.Status.Allocatable[r.resource]
			amount, whole := r.floor(q)
			if !whole {
				return nil, fmt.Errorf("node %s: %s of %s cannot be counted; choose a larger unit in -resources",
					node.Name, q.String(), r.resource)
			}
			had, _ := row[r.dimension].(int64)
			row[r.dimension] = had + amount
		}
		if flavors := n.flavorsOf(node); len(flavors) > 0 {
			row["flavor"] = flavors[0]
		}
		rows = append(rows, row)
	}
	return rows, nil
}

func stateOf(node *corev1.Node) string {
	ready := slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
	switch {
	case !ready:
		return "unavail"
	case node.Spec.Unschedulable:
		return "closed"
	}
	return "ok"
}
