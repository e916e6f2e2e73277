// Command kube is every Kubernetes program that a sandbox cluster needs, in one static binary.
//
// The name it is called by says which program it is (kube-apiserver, kubelet, etcd, …), so the
// dependencies they share are compiled and kept on disk once.
package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	"k8s.io/component-base/version"
	kubectl "k8s.io/kubectl/pkg/cmd"
	kubectlutil "k8s.io/kubectl/pkg/cmd/util"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	proxy "k8s.io/kubernetes/cmd/kube-proxy/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"
)

func run(command *cobra.Command) int { return cli.Run(command) }

var programs = map[string]func() int{
	"etcd":                    func() int { etcdmain.Main(os.Args); return 0 },
	"kube-apiserver":          func() int { return run(apiserver.NewAPIServerCommand()) },
	"kube-controller-manager": func() int { return run(controllermanager.NewControllerManagerCommand()) },
	"kube-scheduler":          func() int { return run(scheduler.NewSchedulerCommand()) },
	"kube-proxy":              func() int { return run(proxy.NewProxyCommand()) },
	"kubelet":                 func() int { return run(kubelet.NewKubeletCommand(context.Background())) },
	"kubectl": func() int {
		if err := cli.RunNoErrOutput(kubectl.NewDefaultKubectlCommand()); err != nil {
			kubectlutil.CheckErr(err)
		}
		return 0
	},
}

func main() {
	name := filepath.Base(os.Args[0])
	if program, known := programs[name]; known {
		os.Exit(program())
	}
	names := make([]string, 0, len(programs))
	for known := range programs {
		names = append(names, known)
	}
	sort.Strings(names)
	fmt.Fprintf(os.Stderr, "kube %s: call me by one of these names: %s\n", version.Get().GitVersion, strings.Join(names, ", "))
	os.Exit(2)
}
