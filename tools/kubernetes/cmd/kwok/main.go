// Command kwok runs the pods of hollow nodes: objects that look alive and cost almost nothing.
package main

import (
	"fmt"
	"os"

	"github.com/spf13/pflag"
	"sigs.k8s.io/kwok/pkg/config"
	kwok "sigs.k8s.io/kwok/pkg/kwok/cmd"
	"sigs.k8s.io/kwok/pkg/log"
	"sigs.k8s.io/kwok/pkg/utils/signals"
)

func main() {
	flags := pflag.NewFlagSet("global", pflag.ContinueOnError)
	flags.ParseErrorsWhitelist.UnknownFlags = true
	ctx, logger := log.InitFlags(signals.SetupSignalContext(), flags)
	ctx, err := config.InitFlags(ctx, flags)
	if err == nil {
		err = kwok.NewCommand(ctx).ExecuteContext(ctx)
	}
	if err != nil {
		logger.Error("kwok stopped", err)
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
