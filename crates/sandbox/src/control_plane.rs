//! The command lines of a control plane. It runs in the network of the cluster's first machine.

use std::ffi::OsString;
use std::fs;
use std::path::Path;

use crate::component::Component;
use crate::error::{FileContext, Result};
use crate::plan::{API_PORT, ClusterPlan, ETCD_PORT, Place};

/// Hollow nodes carry this annotation, by which kwok knows which nodes are its own.
pub(crate) const HOLLOW_ANNOTATION: (&str, &str) = ("kwok.x-k8s.io/node", "fake");

/// How hollow nodes and their pods behave.
const KWOK_STAGES: &str = "kwok-stages.yaml";

/// What an audited API server writes down: who did what to which object with which result, and no content, which
/// would be secrets too. Each request once: when it has been answered, or when a watch has begun and ended.
const AUDIT_POLICY: &str = "apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules: [{level: Metadata}]
";
/// The name of its file in the cluster's directory.
const AUDIT_POLICY_FILE: &str = "audit-policy.yaml";
/// Larger than any test's or benchmark's log: at this size the API server would go on in another file.
const AUDIT_LOG_MEGABYTES: u32 = 4096;

/// Program and arguments of one part of the control plane.
pub(crate) fn argv(place: &Place, cluster: &ClusterPlan, component: Component) -> Vec<OsString> {
    let arguments = match component {
        Component::Etcd => etcd(cluster),
        Component::Apiserver => apiserver(cluster),
        Component::ControllerManager => controller_manager(cluster),
        Component::Scheduler => scheduler(cluster),
        Component::Kwok => kwok(cluster),
        Component::Node | Component::Containerd | Component::Kubelet | Component::KubeProxy => vec![],
    };
    let program = place.bin().join(component.program()).into_os_string();
    std::iter::once(program).chain(arguments.into_iter().map(OsString::from)).collect()
}

/// Files that the control plane reads.
pub(crate) fn write_files(cluster: &ClusterPlan) -> Result<()> {
    let data = cluster.dir.join("etcd");
    fs::create_dir_all(&data).at("create", &data)?;
    if cluster.spec.audit {
        let policy = cluster.dir.join(AUDIT_POLICY_FILE);
        fs::write(&policy, AUDIT_POLICY).at("write", &policy)?;
    }
    let stages = cluster.dir.join(KWOK_STAGES);
    fs::write(&stages, include_str!("../manifests/kwok-stages.yaml")).at("write", &stages)
}

fn etcd(cluster: &ClusterPlan) -> Vec<String> {
    let (pki, address) = (cluster.pki(), cluster.first_machine().address);
    let client = format!("https://127.0.0.1:{ETCD_PORT},https://{address}:{ETCD_PORT}");
    vec![
        format!("--name={}", cluster.name()),
        flag("--data-dir", &cluster.dir.join("etcd")),
        format!("--listen-client-urls={client}"),
        format!("--advertise-client-urls=https://{address}:{ETCD_PORT}"),
        "--listen-peer-urls=https://127.0.0.1:2380".into(),
        "--initial-advertise-peer-urls=https://127.0.0.1:2380".into(),
        format!("--initial-cluster={}=https://127.0.0.1:2380", cluster.name()),
        "--client-cert-auth".into(),
        "--peer-client-cert-auth".into(),
        flag("--trusted-ca-file", &pki.join("etcd-ca.crt")),
        flag("--cert-file", &pki.join("etcd.crt")),
        flag("--key-file", &pki.join("etcd.key")),
        flag("--peer-trusted-ca-file", &pki.join("etcd-ca.crt")),
        flag("--peer-cert-file", &pki.join("etcd.crt")),
        flag("--peer-key-file", &pki.join("etcd.key")),
        // The data need not survive a power cut, and fsync on a shared disk costs seconds per start.
        "--unsafe-no-fsync".into(),
        "--log-level=warn".into(),
    ]
}

fn apiserver(cluster: &ClusterPlan) -> Vec<String> {
    let (pki, address) = (cluster.pki(), cluster.first_machine().address);
    let mut arguments = vec![
        format!("--advertise-address={address}"),
        format!("--secure-port={API_PORT}"),
        format!("--etcd-servers=https://127.0.0.1:{ETCD_PORT}"),
        flag("--etcd-cafile", &pki.join("etcd-ca.crt")),
        flag("--etcd-certfile", &pki.join("etcd-client.crt")),
        flag("--etcd-keyfile", &pki.join("etcd-client.key")),
        format!("--service-cluster-ip-range={}", cluster.spec.service_cidr),
        "--authorization-mode=Node,RBAC".into(),
        "--enable-admission-plugins=NodeRestriction".into(),
        "--allow-privileged=true".into(),
        "--anonymous-auth=true".into(),
        flag("--client-ca-file", &pki.join("ca.crt")),
        flag("--tls-cert-file", &pki.join("apiserver.crt")),
        flag("--tls-private-key-file", &pki.join("apiserver.key")),
        flag("--kubelet-certificate-authority", &pki.join("ca.crt")),
        flag("--kubelet-client-certificate", &pki.join("apiserver-kubelet-client.crt")),
        flag("--kubelet-client-key", &pki.join("apiserver-kubelet-client.key")),
        "--kubelet-preferred-address-types=InternalIP".into(),
        "--service-account-issuer=https://kubernetes.default.svc.cluster.local".into(),
        flag("--service-account-key-file", &pki.join("service-accounts.pub")),
        flag("--service-account-signing-key-file", &pki.join("service-accounts.key")),
        flag("--requestheader-client-ca-file", &pki.join("front-proxy-ca.crt")),
        "--requestheader-allowed-names=front-proxy-client".into(),
        "--requestheader-username-headers=X-Remote-User".into(),
        "--requestheader-group-headers=X-Remote-Group".into(),
        "--requestheader-extra-headers-prefix=X-Remote-Extra-".into(),
        flag("--proxy-client-cert-file", &pki.join("front-proxy-client.crt")),
        flag("--proxy-client-key-file", &pki.join("front-proxy-client.key")),
        "--enable-aggregator-routing=true".into(),
        // A sandbox is stopped often; nobody needs its connections drained for a minute.
        "--shutdown-delay-duration=0s".into(),
        "--shutdown-send-retry-after=false".into(),
        "--profiling=false".into(),
    ];
    if cluster.spec.audit {
        arguments.extend([
            flag("--audit-policy-file", &cluster.dir.join(AUDIT_POLICY_FILE)),
            flag("--audit-log-path", &cluster.audit_log()),
            format!("--audit-log-maxsize={AUDIT_LOG_MEGABYTES}"),
        ]);
    }
    arguments
}

fn controller_manager(cluster: &ClusterPlan) -> Vec<String> {
    let pki = cluster.pki();
    let kubeconfig = cluster.dir.join("controller-manager.kubeconfig");
    let mut arguments = vec![
        flag("--kubeconfig", &kubeconfig),
        flag("--authentication-kubeconfig", &kubeconfig),
        flag("--authorization-kubeconfig", &kubeconfig),
        "--leader-elect=false".into(),
        "--use-service-account-credentials=true".into(),
        "--controllers=*,bootstrapsigner,tokencleaner".into(),
        flag("--root-ca-file", &pki.join("ca.crt")),
        flag("--service-account-private-key-file", &pki.join("service-accounts.key")),
        flag("--cluster-signing-cert-file", &pki.join("ca.crt")),
        flag("--cluster-signing-key-file", &pki.join("ca.key")),
        flag("--tls-cert-file", &pki.join("controller-manager.crt")),
        flag("--tls-private-key-file", &pki.join("controller-manager.key")),
        flag("--client-ca-file", &pki.join("ca.crt")),
        "--allocate-node-cidrs=true".into(),
        format!("--cluster-cidr={}", cluster.spec.pod_cidr),
        format!("--node-cidr-mask-size={}", cluster.spec.node_prefix()),
        // Its default is a directory of the whole machine, which it would make and leave.
        flag("--flex-volume-plugin-dir", &cluster.dir.join("volume-plugins")),
        format!("--service-cluster-ip-range={}", cluster.spec.service_cidr),
        "--profiling=false".into(),
    ];
    arguments.extend(client_rate(cluster));
    arguments
}

/// How many requests a second a controller may make, where that was said.
fn client_rate(cluster: &ClusterPlan) -> Vec<String> {
    let rate = cluster.spec.client_rate;
    rate.map(|rate| vec![format!("--kube-api-qps={rate}"), format!("--kube-api-burst={rate}")])
        .unwrap_or_default()
}

fn scheduler(cluster: &ClusterPlan) -> Vec<String> {
    let pki = cluster.pki();
    let kubeconfig = cluster.dir.join("scheduler.kubeconfig");
    let mut arguments = vec![
        flag("--kubeconfig", &kubeconfig),
        flag("--authentication-kubeconfig", &kubeconfig),
        flag("--authorization-kubeconfig", &kubeconfig),
        flag("--tls-cert-file", &pki.join("scheduler.crt")),
        flag("--tls-private-key-file", &pki.join("scheduler.key")),
        flag("--client-ca-file", &pki.join("ca.crt")),
        "--leader-elect=false".into(),
        "--profiling=false".into(),
    ];
    arguments.extend(client_rate(cluster));
    arguments
}

fn kwok(cluster: &ClusterPlan) -> Vec<String> {
    let (key, value) = HOLLOW_ANNOTATION;
    vec![
        flag("--kubeconfig", &cluster.dir.join("kwok.kubeconfig")),
        "--manage-all-nodes=false".into(),
        format!("--manage-nodes-with-annotation-selector={key}={value}"),
        "--node-lease-duration-seconds=40".into(),
        format!("--node-ip={}", cluster.first_machine().address),
        "--server-address=127.0.0.1:10247".into(),
        flag("--config", &cluster.dir.join(KWOK_STAGES)),
        "--v=WARN".into(),
    ]
}

fn flag(name: &str, path: &Path) -> String {
    format!("{name}={}", path.display())
}
