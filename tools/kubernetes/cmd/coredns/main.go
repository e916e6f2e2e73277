// Command coredns is CoreDNS with the plugins that a cluster's DNS and DNS-SD tests use, and no
// cloud provider's SDK: a third of the size and of the build time of the stock binary.
package main

import (
	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/coremain"

	_ "github.com/coredns/coredns/plugin/auto"
	_ "github.com/coredns/coredns/plugin/bind"
	_ "github.com/coredns/coredns/plugin/cache"
	_ "github.com/coredns/coredns/plugin/debug"
	_ "github.com/coredns/coredns/plugin/errors"
	_ "github.com/coredns/coredns/plugin/file"
	_ "github.com/coredns/coredns/plugin/forward"
	_ "github.com/coredns/coredns/plugin/health"
	_ "github.com/coredns/coredns/plugin/hosts"
	_ "github.com/coredns/coredns/plugin/kubernetes"
	_ "github.com/coredns/coredns/plugin/loadbalance"
	_ "github.com/coredns/coredns/plugin/log"
	_ "github.com/coredns/coredns/plugin/loop"
	_ "github.com/coredns/coredns/plugin/metrics"
	_ "github.com/coredns/coredns/plugin/ready"
	_ "github.com/coredns/coredns/plugin/reload"
	_ "github.com/coredns/coredns/plugin/rewrite"
	_ "github.com/coredns/coredns/plugin/template"
)

// The order in which plugins see a query; it is CoreDNS's own, shortened to what is built in.
var directives = []string{
	"reload", "debug", "bind", "ready", "health", "prometheus", "errors", "log", "cache", "rewrite",
	"template", "loadbalance", "hosts", "kubernetes", "file", "auto", "loop", "forward",
}

func main() {
	dnsserver.Directives = directives
	coremain.Run()
}
