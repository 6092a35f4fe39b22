# SPDX-License-Identifier: Apache-2.0
"""Suites that run in clusters on this machine, and suites of KubeVirt."""

import os
import subprocess

from cases import WHOLE, Case, header

from .base import CLUSTER, DEFAULT_KERNEL, setup, suites_of
from .kernels import node_case

suite = suites_of("clusters", "e2e")


# suite: its list in e2e/cluster/case, options of e2e/cluster/up, its dependencies, environment
CLUSTERS = {
    "k8s": ("", "", ("images",), {}),
    "k8s-dax": ("--dax", "--dax", ("images", "node"), {}),
    "k8s-module": ("--module", "--dax", ("images", "node"),
                   {"NODE_BUILDS": "1", "CLUSTER_LIMIT": "3600"}),
    "k8s-external": ("--external", "--dax", ("images-external", "node"),
                     {"ZONE_MIB": "5120", "CLUSTER_LIMIT": "10800"}),
    "k8s-kubevirt": ("--kubevirt", "", ("kubevirt", "cdi", "next"), {}),
    "k8s-kubevirt-kvm": ("--kvm", "--kvm", ("kubevirt", "node"), {}),
    "k8s-kubevirt-failures": ("--failures", "--kvm", ("kubevirt", "node"), {}),
}
ABOUT = {  # the time does not include compiling
    "k8s": ("20 min", "the chart from install to uninstall, in a local cluster"),
    "k8s-dax": ("24 min", "the same, with a VM as a node: reserved memory, LVM, module"),
    "k8s-module": ("1 h", "the same; the driver's pod builds the module by DKMS"),
    "k8s-external": ("1 h and more", "Kubernetes' own tests of storage drivers"),
    "k8s-kubevirt": ("1 h", "VMs of KubeVirt without KVM, on a zone of files"),
    "k8s-kubevirt-kvm": ("up to 36 min", "VMs of KubeVirt under KVM, on reserved memory"),
    "k8s-kubevirt-failures": ("45 min", "failures and changes while such VMs run"),
}


def cluster_setups(suite_name, waits, env):
    kubevirt = os.environ.get("KUBEVIRT") or "1.8"
    parts = "kubernetes sidecars kubevirt-" + kubevirt if "kubevirt" in waits else ""
    external = "images-external" in waits
    built = setup(f"{suite_name}-compiled", ["bash", "-c", " && ".join(
        [f"e2e/cluster/build {parts} >/dev/null"] +
        (["e2e/cluster/build cdi >/dev/null"] if "cdi" in waits else []) +
        (["e2e/cluster/build-tests >/dev/null"] if external else []))], limit=10800, env=env)
    last = setup(f"{suite_name}-images", ["e2e/cluster/make-images"] +
                 (["--external"] if external else []), needs=(built,), env=env)
    if "kubevirt" in waits:
        guest = ["--guest"] if "cdi" in waits else []
        last = setup(f"{suite_name}-machines", ["e2e/cluster/kubevirt-images", *guest],
                     needs=(last,), env=env)
    if "cdi" in waits:
        last = setup(f"{suite_name}-disks", ["e2e/cluster/cdi-images"], needs=(last,), env=env)
    if "next" in waits and kubevirt == "1.8":
        last = setup(f"{suite_name}-next", ["e2e/cluster/next-images"], needs=(last,), env=env)
    if "node" in waits:
        last = setup(f"{suite_name}-node", ["bash", "-c", 'e2e/rig fetch --pkgs "$(' +
                     'e2e/cluster/vm packages)" ' + DEFAULT_KERNEL], needs=(last,), env=env)
    return last


def cluster(suite_name):
    listed, options, waits, env = CLUSTERS[suite_name]
    last = cluster_setups(suite_name, waits, env)
    up = setup(f"{suite_name}-up", ["e2e/cluster/up", *options.split()], limit=1800, needs=(last,),
               undo=["e2e/cluster/down"], env={**env, "OWNER": str(os.getpid())})
    listing = subprocess.run(["e2e/cluster/case", *listed.split()], check=True, text=True,
                             stdout=subprocess.PIPE).stdout
    limit = int(env.get("CLUSTER_LIMIT") or os.environ.get("CLUSTER_LIMIT") or 2400)
    before, installs = (), ()
    for joined in listing.split():
        names = joined.split("+")  # these cases mostly wait for Kubernetes and run at the same time
        group = []
        for name in names:
            beside = {"BESIDE": " ".join(names[1:])}
            group.append(Case(f"{suite_name}/{name}", ["e2e/cluster/case", name], limit=limit,
                              weight=1 if len(names) > 1 else 2 * WHOLE, needs=(up,),
                              after=before, brings=installs,
                              env={**env, **beside}, inputs=CLUSTER))
        yield from group
        # All earlier cases, as ONLY= may leave out some of them.
        before += tuple(case.name for case in group)
        # The first case installs the chart; others install KubeVirt and CDI.
        installs = before[:1] + tuple(name for name in before if name.endswith("operator"))


for cluster_suite in CLUSTERS:
    groups = ["native", "csi", "image", "cluster", "tests"]
    if "kubevirt" in cluster_suite:
        groups += ["kubevirt", "machine"]
    suite(cluster_suite, *groups, takes=ABOUT[cluster_suite][0], about=ABOUT[cluster_suite][1])(
        lambda name=cluster_suite: cluster(name))


@suite("kubevirt", "native", "csi", "machine", "tests", takes="up to 36 min",
       about="no cluster: KubeVirt's own code, the hook, libvirt and QEMU")
def suite_kubevirt():
    path = "e2e/scenarios/kubevirt-domains.sh"
    yield Case("kubevirt/hook", ["mk/test/kubevirt"], limit=3600, weight=2 * WHOLE, inputs=CLUSTER)
    domains = node_case("kubevirt", path, "kubevirt-domains", header(path), DEFAULT_KERNEL)
    domains.after = ("kubevirt/hook",)
    yield domains
