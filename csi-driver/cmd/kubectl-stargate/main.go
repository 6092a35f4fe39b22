// SPDX-License-Identifier: Apache-2.0

// kubectl-stargate is a plugin of kubectl: `kubectl stargate COMMAND`. It shows zones, volumes and
// the systems that use them, and explains why a claim, a pod or a VM waits.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/exec"

	"stargate/csi-driver/internal/kubectl"
)

var version = "unversioned" // the build sets the version (-ldflags)

const requestLimit = 30 * time.Second

// errProblems makes doctor exit with 1. The problems are printed already.
var errProblems = errors.New("problems found")

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := command(os.Stdout, os.Stderr).ExecuteContext(ctx)
	var code exec.CodeExitError
	switch {
	case err == nil:
	case errors.Is(err, errProblems):
		os.Exit(1)
	case errors.As(err, &code):
		os.Exit(code.Code) // the program has printed its error
	default:
		fmt.Fprintln(os.Stderr, "kubectl stargate:", err)
		os.Exit(1)
	}
}

// plugin has the options of all commands.
type plugin struct {
	driver string
	output string
	all    bool
	load   clientcmd.ClientConfig
	out    io.Writer
	errs   io.Writer
}

func command(out, errs io.Writer) *cobra.Command {
	p := &plugin{out: out, errs: errs}
	root := &cobra.Command{
		Use:           "kubectl stargate",
		Short:         "Show zones and volumes of StargateFS, and explain why a claim, a pod or a VM waits",
		Version:       version,
		SilenceUsage:  true,
		SilenceErrors: true,
		PersistentPreRunE: func(*cobra.Command, []string) error {
			if p.output != "" && p.output != "json" {
				return fmt.Errorf("--output %s is unknown: use json, or omit --output for a table", p.output)
			}
			return nil
		},
		// kubectl plugin calls it by this name
		Annotations: map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl stargate"},
	}
	root.CompletionOptions.HiddenDefaultCmd = true // kubectl itself completes the plugin's commands, by kubectl_complete-stargate
	root.SetOut(out)
	root.SetErr(errs)
	flags := root.PersistentFlags()
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	overrides := &clientcmd.ConfigOverrides{}
	flags.StringVar(&rules.ExplicitPath, "kubeconfig", "", "path of the kubeconfig file")
	clientcmd.BindOverrideFlags(overrides, flags, clientcmd.RecommendedConfigOverrideFlags(""))
	flags.StringVar(&p.driver, "driver", "stargate.csi.dev", "name of the CSI driver (the chart's driverName)")
	flags.StringVarP(&p.output, "output", "o", "", "json, or a table")
	p.load = clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, overrides)
	root.AddCommand(p.zones(), p.volumes(), p.systems(), p.fence(), p.doctor(), p.top())
	return root
}

// namespace returns the namespace of the options or of the context; "" with --all-namespaces.
func (p *plugin) namespace() (string, error) {
	if p.all {
		return "", nil
	}
	name, _, err := p.load.Namespace()
	return name, err
}

// gather connects to the cluster and reads its state.
func (p *plugin) gather(ctx context.Context, namespace string) (*kubectl.Facts, *rest.Config, kubernetes.Interface, error) {
	config, err := p.load.ClientConfig()
	if err != nil {
		return nil, nil, nil, err
	}
	config.UserAgent = "kubectl-stargate/" + version
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, nil, nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, requestLimit)
	defer cancel()
	facts, err := kubectl.Gather(ctx, client, p.driver, namespace)
	return facts, config, client, err
}

func (p *plugin) zones() *cobra.Command {
	return &cobra.Command{
		Use: "zones", Short: "Show each node's zone: its size, its largest possible volume, its state", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			facts, _, _, err := p.gather(c.Context(), "")
			if err != nil {
				return err
			}
			zones := facts.Zones()
			if p.output != "" {
				return kubectl.PrintJSON(p.out, zones)
			}
			return kubectl.PrintZones(p.out, zones)
		},
	}
}

func (p *plugin) volumes() *cobra.Command {
	c := &cobra.Command{
		Use: "volumes", Short: "Show volumes with their claims, nodes and pods", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			namespace, err := p.namespace()
			if err != nil {
				return err
			}
			facts, _, _, err := p.gather(c.Context(), namespace)
			if err != nil {
				return err
			}
			volumes := facts.VolumesOf(namespace)
			if p.output != "" {
				return kubectl.PrintJSON(p.out, volumes)
			}
			return kubectl.PrintVolumes(p.out, volumes)
		},
	}
	p.allNamespaces(c)
	return c
}

func (p *plugin) systems() *cobra.Command {
	var open bool
	c := &cobra.Command{
		Use: "systems CLAIM", Short: "Show the systems that use a claim's volume: VMs, nodes, servers", Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			namespace, err := p.namespace()
			if err != nil {
				return err
			}
			facts, config, client, err := p.gather(c.Context(), namespace)
			if err != nil {
				return err
			}
			o := kubectl.SystemsOptions{JSON: p.output != "", Open: open}
			return facts.Systems(c.Context(), kubectl.Exec{Config: config, Client: client}, namespace, args[0], o, p.out, p.errs)
		},
	}
	c.Flags().BoolVar(&open, "open", false, "show the files that each system has open")
	return c
}

func (p *plugin) fence() *cobra.Command {
	var force bool
	c := &cobra.Command{
		Use: "fence CLAIM SYSTEM", Short: "Fence a silent system of a claim's volume, so that others recover it",
		Long: "Fences a system of a claim's volume. SYSTEM is its slot, its name or the UUID of its VM, as\n" +
			"`kubectl stargate systems CLAIM` shows them. A system with a heartbeat is refused.",
		Args: cobra.ExactArgs(2),
		RunE: func(c *cobra.Command, args []string) error {
			namespace, err := p.namespace()
			if err != nil {
				return err
			}
			facts, config, client, err := p.gather(c.Context(), namespace)
			if err != nil {
				return err
			}
			return facts.Fence(c.Context(), kubectl.Exec{Config: config, Client: client}, namespace, args[0], args[1], force, p.out, p.errs)
		},
	}
	c.Flags().BoolVar(&force, "force", false, "fence a system that may still store: this can damage the volume")
	return c
}

func (p *plugin) doctor() *cobra.Command {
	c := &cobra.Command{
		Use: "doctor [pvc/NAME | pod/NAME | vm/NAME | node/NAME]", Short: "Explain why an object waits or is refused, with a command that mends the cause",
		Long: "Examines one object, or everything that the driver serves in the namespace. It prints each\n" +
			"problem in one sentence, with a command. The exit status is 1 if there is a problem.",
		Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			namespace, err := p.namespace()
			if err != nil {
				return err
			}
			var subject kubectl.Subject
			if len(args) > 0 {
				if p.all {
					return errors.New("--all-namespaces examines everything: leave out " + args[0])
				}
				if subject, err = kubectl.ParseSubject(namespace, args[0]); err != nil {
					return err
				}
			}
			facts, _, _, err := p.gather(c.Context(), namespace)
			if err != nil {
				return err
			}
			if facts.Installed && !facts.Exists(subject) {
				return fmt.Errorf("there is no %s in namespace %s", args[0], namespace)
			}
			found := facts.Doctor(subject)
			if p.output != "" {
				err = kubectl.PrintJSON(p.out, append([]kubectl.Finding{}, found...))
			} else {
				err = kubectl.PrintFindings(p.out, found)
			}
			if err == nil && len(found) > 0 {
				return errProblems
			}
			return err
		},
	}
	p.allNamespaces(c)
	return c
}

func (p *plugin) top() *cobra.Command {
	interval, count := 2*time.Second, 0
	c := &cobra.Command{
		Use: "top", Short: "Show the reads and writes of each volume, repeatedly", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if interval < time.Second {
				return errors.New("--interval must be at least 1s")
			}
			namespace, err := p.namespace()
			if err != nil {
				return err
			}
			for i := 0; count == 0 || i < count; i++ {
				facts, _, client, err := p.gather(c.Context(), namespace)
				if err != nil {
					return err
				}
				uses, err := facts.Top(c.Context(), kubectl.Proxy{Client: client}, interval, namespace)
				switch {
				case c.Context().Err() != nil:
					return nil // the user has pressed Ctrl-C, which is the normal end
				case err != nil && uses == nil:
					return err
				case err != nil:
					fmt.Fprintln(p.errs, "kubectl stargate:", err)
				}
				if p.output != "" {
					err = kubectl.PrintJSON(p.out, uses)
				} else {
					if i > 0 {
						fmt.Fprintln(p.out)
					}
					err = kubectl.PrintUses(p.out, uses)
				}
				if err != nil {
					return err
				}
			}
			return nil
		},
	}
	p.allNamespaces(c)
	c.Flags().DurationVar(&interval, "interval", interval, "time between two measurements")
	c.Flags().IntVar(&count, "count", count, "end after this many tables (0: never)")
	return c
}

func (p *plugin) allNamespaces(c *cobra.Command) {
	c.Flags().BoolVarP(&p.all, "all-namespaces", "A", false, "show all namespaces")
}
