//! A real node: a set of namespaces in which containerd, the kubelet and kube-proxy believe they have a machine.
//!
//! Its init sees private `/run`, `/var/lib` and `/var/log`, so everything that a kubelet leaves around (mounts,
//! sockets, shims, container processes) is inside, and killing the init takes all of it away at once.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use crate::cgroups;
use crate::component::{Component, Part};
use crate::error::{FileContext, Result, SandboxError};
use crate::image::{self, ImageName};
use crate::network;
use crate::plan::{ClusterPlan, MachinePlan, Place};
use crate::process::{self, Inside, Launch};

/// Sysctls that a kubelet insists on and would otherwise change for the whole machine.
const PROTECTED_SYSCTLS: [(&str, &str); 3] =
    [("vm/overcommit_memory", "1"), ("kernel/panic", "10"), ("kernel/panic_on_oops", "1")];
/// Where distributions put CNI plugins; the first that exists counts.
pub(crate) const CNI_DIRECTORIES: [&str; 2] = ["/usr/lib/cni", "/opt/cni/bin"];
/// containerd's socket inside the node.
pub(crate) const CONTAINERD_SOCKET: &str = "/run/containerd/containerd.sock";

/// The part of a machine's node that `component` is.
fn part(machine: &MachinePlan, component: Component) -> Part {
    Part { component, node: Some(machine.number) }
}

/// The node's init, seen from this machine; none if the node is down.
pub(crate) fn init(place: &Place, cluster: &ClusterPlan, machine: &MachinePlan) -> Option<i32> {
    let mark = part(machine, Component::Node).mark(cluster);
    process::of(&place.root())
        .into_iter()
        .find(|process| process.part == mark && process.inner_pid == 1)
        .map(|process| process.pid)
}

/// The namespaces of a running node.
pub(crate) fn inside(place: &Place, cluster: &ClusterPlan, machine: &MachinePlan) -> Result<Inside> {
    init(place, cluster, machine).map(Inside::Node).ok_or_else(|| SandboxError::Command {
        what: format!("entering node {}", machine.node_name),
        reason: format!(
            "it is down. Start it: liqoctl sandbox start {} node-{}",
            cluster.name(),
            machine.number
        ),
    })
}

/// Writes the configuration of the node's components.
pub(crate) fn write_files(
    place: &Place,
    cluster: &ClusterPlan,
    machine: &MachinePlan,
    hidden: &[PathBuf],
) -> Result<()> {
    for dir in ["kubelet", "containerd", "cni", "cni-conf", "log", "sysctl"] {
        let dir = machine.dir.join(dir);
        fs::create_dir_all(&dir).at("create", &dir)?;
    }
    for (name, value) in PROTECTED_SYSCTLS {
        write(&machine.dir.join("sysctl").join(name.replace('/', "-")), value)?;
    }
    write(&machine.dir.join("resolv.conf"), "")?;
    write(&machine.dir.join("init.sh"), &init_script(place, machine, hidden))?;
    write(&machine.dir.join("containerd.toml"), &containerd_config(machine))?;
    write(&machine.dir.join("cni-template.json"), CNI_TEMPLATE)?;
    write(&machine.dir.join("kubelet.yaml"), &kubelet_config(place, cluster, machine))?;
    write(&machine.dir.join("kube-proxy.yaml"), &kube_proxy_config(cluster, machine))
}

fn write(path: &Path, text: &str) -> Result<()> {
    fs::write(path, text).at("write", path)
}

/// `-n`: mount would otherwise keep notes in a directory of this machine.
fn init_script(place: &Place, machine: &MachinePlan, hidden: &[PathBuf]) -> String {
    let node = machine.dir.display();
    let mut script = String::from(
        "set -e\nmount -n --make-rprivate /\numount -n -R /run/netns 2>/dev/null || true\nmount -n -t tmpfs tmpfs /mnt\n",
    );
    // What the tmpfs below would hide is held in /mnt until it can be put back.
    for (number, dir) in hidden.iter().enumerate() {
        script += &format!("mkdir /mnt/{number}\nmount -n --bind '{}' /mnt/{number}\n", dir.display());
    }
    script += "mount -n -t tmpfs -o mode=755 tmpfs /run\nmkdir -p /run/containerd /run/netns /run/lock\n\
               mount -n -t tmpfs -o mode=755 tmpfs /var/lib\n";
    for (number, dir) in hidden.iter().enumerate() {
        let dir = dir.display();
        script += &format!("mkdir -p '{dir}'\nmount -n --bind /mnt/{number} '{dir}'\n");
    }
    script += "umount -n -l /mnt\n";
    for dir in ["kubelet", "containerd", "cni"] {
        script += &format!("mkdir -p /var/lib/{dir}\nmount -n --bind '{node}/{dir}' /var/lib/{dir}\n");
    }
    script += &format!("mount -n --bind '{node}/log' /var/log\n");
    for (name, _) in PROTECTED_SYSCTLS {
        script += &format!("mount -n --bind '{node}/sysctl/{}' /proc/sys/{name}\n", name.replace('/', "-"));
    }
    script += &format!(
        "echo {} > /proc/sys/kernel/hostname\nmount -n --make-rshared /\necho ready\n",
        machine.node_name
    );
    script + &format!("exec '{}' > /dev/null\n", place.bin().join("pause").display())
}

fn containerd_config(machine: &MachinePlan) -> String {
    let plugins = CNI_DIRECTORIES.iter().find(|dir| Path::new(dir).exists()).unwrap_or(&CNI_DIRECTORIES[0]);
    let node = machine.dir.display();
    format!(
        r#"version = 2
root = "/var/lib/containerd"
state = "/run/containerd"
oom_score = 0
disabled_plugins = [
  "io.containerd.snapshotter.v1.aufs", "io.containerd.snapshotter.v1.btrfs", "io.containerd.snapshotter.v1.devmapper",
  "io.containerd.snapshotter.v1.zfs", "io.containerd.internal.v1.opt", "io.containerd.internal.v1.tracing",
]
[grpc]
  address = "{CONTAINERD_SOCKET}"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{pause}"
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
      SystemdCgroup = false
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "{plugins}"
    conf_dir = "{node}/cni-conf"
    conf_template = "{node}/cni-template.json"
"#,
        pause = image::PAUSE_NAME,
    )
}

/// containerd fills in the node's share of the pod network, so no CNI daemon is needed.
const CNI_TEMPLATE: &str = r#"{
  "cniVersion": "0.4.0",
  "name": "sandbox",
  "plugins": [
    {
      "type": "bridge", "bridge": "cni0", "isGateway": true, "ipMasq": false, "hairpinMode": true,
      "ipam": {
        "type": "host-local", "dataDir": "/var/lib/cni",
        "ranges": [[{"subnet": "{{.PodCIDR}}"}]], "routes": [{"dst": "0.0.0.0/0"}]
      }
    },
    {"type": "portmap", "capabilities": {"portMappings": true}}
  ]
}
"#;

fn kubelet_config(place: &Place, cluster: &ClusterPlan, machine: &MachinePlan) -> String {
    format!(
        "apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
authentication:
  anonymous: {{enabled: false}}
  webhook: {{enabled: true}}
  x509: {{clientCAFile: {pki}/ca.crt}}
authorization: {{mode: Webhook}}
tlsCertFile: {node}/kubelet.crt
tlsPrivateKeyFile: {node}/kubelet.key
cgroupDriver: cgroupfs
cgroupRoot: /{cgroup}
cgroupsPerQOS: true
enforceNodeAllocatable: [none]
failCgroupV1: false
failSwapOn: false
clusterDNS: [{dns}]
clusterDomain: cluster.local
resolvConf: {node}/resolv.conf
containerRuntimeEndpoint: unix://{CONTAINERD_SOCKET}
oomScoreAdj: 0
makeIPTablesUtilChains: false
localStorageCapacityIsolation: true
serializeImagePulls: false
# The disk is shared with everything else on the machine; a sandbox must not evict pods because of others.
evictionHard: {{memory.available: 100Mi, nodefs.available: 1%, imagefs.available: 1%, nodefs.inodesFree: 1%}}
# Its default is a directory of the whole machine, which the kubelet would make and leave.
volumePluginDir: /var/lib/kubelet/volume-plugins
imageGCHighThresholdPercent: 100
imageGCLowThresholdPercent: 99
# The kubelet would otherwise wait this long before it tells the API server that the network is there.
nodeStatusUpdateFrequency: 4s
",
        pki = cluster.pki().display(),
        node = machine.dir.display(),
        cgroup = cgroups::of_node(place, machine).display(),
        dns = cluster.dns_service(),
    )
}

fn kube_proxy_config(cluster: &ClusterPlan, machine: &MachinePlan) -> String {
    format!(
        "apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
mode: nftables
clientConnection: {{kubeconfig: {dir}/kube-proxy.kubeconfig}}
clusterCIDR: {pods}
hostnameOverride: {name}
conntrack: {{maxPerCore: 0, min: 0, tcpEstablishedTimeout: 0s, tcpCloseWaitTimeout: 0s}}
oomScoreAdj: 0
",
        dir = cluster.dir.display(),
        pods = cluster.spec.pod_cidr,
        name = machine.node_name,
    )
}

/// Starts one component of a node; `Node` is the set of namespaces that the others live in.
pub(crate) fn start(
    place: &Place,
    cluster: &ClusterPlan,
    machine: &MachinePlan,
    component: Component,
) -> Result<()> {
    let root = place.root();
    let part = part(machine, component);
    let mark = part.mark(cluster);
    let log = part.log(cluster);
    if component == Component::Node {
        cgroups::clear(place, machine);
        let network = network::holder(&root, &network::holder_part(cluster, machine))?;
        let script = machine.dir.join("init.sh");
        let mut argv: Vec<OsString> =
            ["unshare", "--pid", "--fork", "--mount", "--uts", "--ipc", "--mount-proc", "sh"]
                .map(OsString::from)
                .into();
        argv.push(script.into());
        let launch =
            Launch { root: &root, part: &mark, inside: Inside::Network(network), argv, log, env: vec![] };
        return launch.start_and_hear_ready().map(drop);
    }
    let inside = inside(place, cluster, machine)?;
    let argv = argv(place, cluster, machine, component);
    Launch { root: &root, part: &mark, inside, argv, log, env: vec![] }.start()
}

fn argv(place: &Place, cluster: &ClusterPlan, machine: &MachinePlan, component: Component) -> Vec<OsString> {
    let node = machine.dir.display();
    let arguments: Vec<String> = match component {
        Component::Containerd => vec![format!("--config={node}/containerd.toml"), "--log-level=warn".into()],
        Component::Kubelet => vec![
            format!("--config={node}/kubelet.yaml"),
            format!("--kubeconfig={node}/kubelet.kubeconfig"),
            format!("--hostname-override={}", machine.node_name),
            format!("--node-ip={}", machine.address),
            format!("--node-labels=liqo.io/sandbox-cluster={}", cluster.name()),
        ],
        _ => vec![format!("--config={node}/kube-proxy.yaml")],
    };
    let program = match component {
        Component::Containerd => OsString::from("containerd"),
        other => place.bin().join(other.program()).into_os_string(),
    };
    std::iter::once(program).chain(arguments.into_iter().map(OsString::from)).collect()
}

/// Gives the node an image from an archive on this machine.
pub(crate) fn load_image(inside: Inside, archive: &Path) -> Result<()> {
    let what = format!("loading {}", archive.display());
    let file = fs::File::open(archive).at("open", archive)?;
    // By standard input: the node does not see every directory of this machine.
    let output = inside
        .command(["ctr", "--address", CONTAINERD_SOCKET, "-n", "k8s.io", "images", "import", "-"])
        .stdin(file)
        .output()
        .map_err(|error| SandboxError::Command { what: what.clone(), reason: error.to_string() })?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let reason = said.lines().last().unwrap_or("ctr did not say why").trim();
    Err(SandboxError::Command { what, reason: format!("{reason}. Is it an OCI or Docker image archive?") })
}

/// The digest of the image that the node has under a name; none if there is no such image.
pub(crate) fn image_digest(inside: Inside, name: &ImageName) -> Result<Option<String>> {
    let filter = format!("name=={name}");
    let list = ["ctr", "--address", CONTAINERD_SOCKET, "-n", "k8s.io", "images", "list", &filter];
    let output = inside.run(&format!("looking for the image {name}"), list, b"")?;
    Ok(digest_in(&String::from_utf8_lossy(&output.stdout), &name.to_string()))
}

/// The digest beside a name in ctr's table: the first column is the name, the third the digest.
fn digest_in(table: &str, name: &str) -> Option<String> {
    let mut lines = table.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let found = lines.find(|columns| columns.first() == Some(&name))?;
    found.get(2).map(|digest| (*digest).to_owned())
}

#[cfg(test)]
mod tests;
