// Command etcd is the store of Kubernetes' API server, for the tests of examples/kueue.
package main

import (
	"os"

	"go.etcd.io/etcd/server/v3/etcdmain"
)

func main() { etcdmain.Main(os.Args) }
