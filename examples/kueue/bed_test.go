//go:build kube

package main

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	"sigs.k8s.io/yaml"
)

// bed is the API server of Kubernetes with its etcd, as processes.
var bed struct {
	config *rest.Config
	client.Client
	processes []int // etcd and API server
}

// program is the stint binary that tests serve.
var program = os.Getenv("STINT")

const bedToken = "bed"

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	bins := os.Getenv("STINT_KUBE_BED")
	if bins == "" || program == "" {
		fmt.Fprintln(os.Stderr, "STINT and STINT_KUBE_BED must name programs: run make test-kube")
		os.Exit(2)
	}
	dir, err := os.MkdirTemp("", "kube")
	if err != nil {
		panic(err)
	}
	stop, err := startBed(dir, bins)
	code := 2
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	} else {
		code = m.Run()
	}
	stop()
	os.RemoveAll(dir)
	os.Exit(code)
}

// freePort is a port that nobody listens on.
func freePort() string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	defer l.Close()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	return port
}

// startBed starts both programs and installs Kueue's CRDs.
func startBed(dir, bins string) (stop func(), err error) {
	var processes []*exec.Cmd
	stop = func() {
		for _, p := range processes {
			_ = p.Process.Kill()
			_ = p.Wait()
		}
	}
	start := func(name string, args ...string) error {
		log, err := os.Create(filepath.Join(dir, name+".log"))
		if err != nil {
			return err
		}
		defer log.Close()
		cmd := exec.Command(filepath.Join(bins, name), args...)
		cmd.Stdout, cmd.Stderr = log, log
		cmd.Env = append(os.Environ(), "GOGC=400") // of two processors the collector should not have one
		cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
		if err := cmd.Start(); err != nil {
			return err
		}
		processes = append(processes, cmd)
		bed.processes = append(bed.processes, cmd.Process.Pid)
		return nil
	}
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return stop, err
	}
	keyFile, tokens := filepath.Join(dir, "key.pem"), filepath.Join(dir, "tokens.csv")
	block := &pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}
	etcd, peer, port := "http://127.0.0.1:"+freePort(), "http://127.0.0.1:"+freePort(), freePort()
	err = errors.Join(
		os.WriteFile(keyFile, pem.EncodeToMemory(block), 0o600),
		os.WriteFile(tokens, []byte(bedToken+`,admin,1,"system:masters"`+"\n"), 0o600),
		start("etcd", "--data-dir", filepath.Join(dir, "etcd"), "--listen-client-urls", etcd, "--advertise-client-urls",
			etcd, "--listen-peer-urls", peer, "--unsafe-no-fsync"),
		start("kube-apiserver", "--etcd-servers="+etcd, "--secure-port="+port, "--bind-address=127.0.0.1",
			"--cert-dir="+filepath.Join(dir, "certs"), "--service-account-key-file="+keyFile,
			"--service-account-signing-key-file="+keyFile, "--service-account-issuer=https://k",
			"--token-auth-file="+tokens,
			"--authorization-mode=AlwaysAllow", "--service-cluster-ip-range=10.0.0.0/24",
			"--disable-admission-plugins=ServiceAccount"))
	if err != nil {
		return stop, err
	}
	bed.config = &rest.Config{Host: "https://127.0.0.1:" + port, BearerToken: bedToken, QPS: -1,
		TLSClientConfig: rest.TLSClientConfig{Insecure: true}}
	over, err := rest.HTTPClientFor(bed.config)
	if err != nil {
		return stop, err
	}
	for end := time.Now().Add(2 * time.Minute); ; time.Sleep(200 * time.Millisecond) {
		answer, err := over.Get(bed.config.Host + "/readyz")
		if err == nil {
			answer.Body.Close()
		}
		if err == nil && answer.StatusCode == http.StatusOK {
			break
		}
		if time.Now().After(end) {
			log, _ := os.ReadFile(filepath.Join(dir, "kube-apiserver.log"))
			return stop, fmt.Errorf("the API server is not ready: %v\n%s", err, log[max(0, len(log)-4000):])
		}
	}
	return stop, install()
}

// cpuSeconds is the processor time that this process and those of the bed have used.
func cpuSeconds() (all []float64) {
	for _, pid := range append([]int{os.Getpid()}, bed.processes...) {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			panic(err)
		}
		fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
		user, _ := strconv.ParseFloat(fields[11], 64) // in 1/100 s
		system, _ := strconv.ParseFloat(fields[12], 64)
		all = append(all, (user+system)/100)
	}
	return all
}

// since is what was used since then.
func since(before []float64) (all []string) {
	for i, now := range cpuSeconds() {
		all = append(all, fmt.Sprintf("%.1f s", now-before[i]))
	}
	return all
}

// install makes Kueue's resource definitions, with status.effectiveQuota as of KEP-12382 and the printer column.
func install() error {
	plain, err := client.New(bed.config, client.Options{})
	if err != nil {
		return err
	}
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "sigs.k8s.io/kueue").Output()
	if err != nil {
		return err
	}
	bases := filepath.Join(strings.TrimSpace(string(out)), "config/components/crd/bases")
	for _, kind := range []string{"workloads", "localqueues", "clusterqueues", "cohorts", "admissionchecks",
		"resourceflavors"} {
		text, err := os.ReadFile(filepath.Join(bases, "kueue.x-k8s.io_"+kind+".yaml"))
		if err != nil {
			return err
		}
		crd := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(text, &crd.Object); err != nil {
			return err
		}
		if err := extend(crd); err != nil {
			return fmt.Errorf("%s: %w", kind, err)
		}
		if err := plain.Create(context.Background(), crd); err != nil {
			return fmt.Errorf("%s: %w", kind, err)
		}
	}
	for end := time.Now().Add(time.Minute); ; time.Sleep(200 * time.Millisecond) {
		bed.Client, err = client.New(bed.config, client.Options{Scheme: newScheme()})
		if err == nil {
			err = errors.Join(bed.List(context.Background(), &kueue.WorkloadList{}),
				bed.List(context.Background(), &CohortList{}), bed.List(context.Background(), &ClusterQueueList{}),
				bed.List(context.Background(), &kueue.ResourceFlavorList{}))
		}
		if err == nil || time.Now().After(end) {
			return err
		}
	}
}

// extend leaves v1beta2 as the only version, since there is no webhook that converts, and adds to the status of queues
// and cohorts what Kueue 0.20 adds.
func extend(crd *unstructured.Unstructured) error {
	delete(crd.Object["spec"].(map[string]any), "conversion")
	versions, _, err := unstructured.NestedSlice(crd.Object, "spec", "versions")
	if err != nil {
		return err
	}
	var kept []any
	for _, v := range versions {
		version := v.(map[string]any)
		if version["name"] != kueue.GroupVersion.Version {
			continue
		}
		version["storage"], version["served"] = true, true
		properties := []string{"schema", "openAPIV3Schema", "properties"}
		groups, found, err := unstructured.NestedMap(version, append(properties, "spec", "properties",
			"resourceGroups")...)
		if err != nil {
			return err
		}
		if found {
			text := func() map[string]any { return map[string]any{"type": "string"} }
			err = unstructured.SetNestedMap(version, map[string]any{"type": "object",
				"required": []any{"lastUpdateTime", "managerRef", "resourceGroups"},
				"properties": map[string]any{
					"lastUpdateTime": map[string]any{"type": "string", "format": "date-time"},
					"managerRef": map[string]any{"type": "object", "required": []any{"apiGroup", "kind", "name"},
						"properties": map[string]any{"apiGroup": text(), "kind": text(), "name": text()}},
					"resourceGroups": groups,
				}}, append(properties, "status", "properties", "effectiveQuota")...)
			if err != nil {
				return err
			}
		}
		if crd.GetName() == "clusterqueues.kueue.x-k8s.io" {
			if err := addColumn(version); err != nil {
				return err
			}
		}
		kept = append(kept, version)
	}
	return unstructured.SetNestedSlice(crd.Object, kept, "spec", "versions")
}

// addColumn adds the column of deploy/columns.json.
func addColumn(version map[string]any) error {
	text, err := os.ReadFile("deploy/columns.json")
	if err != nil {
		return err
	}
	var patch []struct{ Value map[string]any }
	if err := json.Unmarshal(text, &patch); err != nil {
		return err
	}
	columns, _, err := unstructured.NestedSlice(version, "additionalPrinterColumns")
	if err != nil {
		return err
	}
	return unstructured.SetNestedSlice(version, append(columns, patch[0].Value), "additionalPrinterColumns")
}

// clean removes all objects that tests make.
func clean(t *testing.T) {
	t.Helper()
	for _, list := range []client.ObjectList{&kueue.WorkloadList{}, &kueue.LocalQueueList{}, &ClusterQueueList{},
		&CohortList{}, &kueue.AdmissionCheckList{}, &kueue.ResourceFlavorList{}, &corev1.NodeList{}} {
		if err := bed.List(context.Background(), list); err != nil {
			t.Fatal(err)
		}
		items, err := objectsOf(list)
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range items {
			o.SetFinalizers(nil)
			err := bed.Delete(context.Background(), o, client.GracePeriodSeconds(0))
			if client.IgnoreNotFound(err) != nil {
				t.Fatal(err)
			}
		}
	}
}

func objectsOf(list client.ObjectList) (all []client.Object, err error) {
	err = meta.EachListItem(list, func(o runtime.Object) error {
		all = append(all, o.(client.Object))
		return nil
	})
	return all, err
}
