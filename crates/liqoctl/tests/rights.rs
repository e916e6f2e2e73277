//! Two real clusters with liqo installed: each right of its manager is used in the life of a peering with offloading, and
//! nothing that it tries is forbidden.
//!
//! Needs `make image`.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test can do nothing else about it")]

#[path = "support/pair.rs"]
mod pair;

use std::collections::BTreeSet;
use std::time::Duration;

use liqo_kit::rbac::{NODE_LEASES, Rule, Scope};
use liqo_sandbox::{ClusterSpec, TestSandbox, testing};
use pair::{CONSUMER, PROVIDER, Pair};
use serde_json::Value;
use tokio::time::Instant;

const MANAGER: &str = "system:serviceaccount:liqo:liqo-controller-manager";
const NAMESPACE: &str = "liqo";
const NODE: &str = "liqo-provider";
/// A machine may be ten times busier than ours.
const SOON: Duration = Duration::from_secs(60);

/// Rights that no request shows: the API server looks at them when something else is asked for.
const LOOKED_AT: &[(&str, &str)] = &[
    // A request for a certificate is approved.
    ("approve", "signers"),
    // A consumer is given its role.
    ("bind", "clusterroles"),
];

/// Rights for moments that no scenario brings about: what a request of a peer was to make was just made, by another request
/// of the same peer or by another replica, and is read.
const RARE: &[(&str, &str, Scope)] = &[
    ("get", "foreignclusters", Scope::Cluster),
    ("get", "namespaces", Scope::Cluster),
    ("get", "rolebindings", Scope::Cluster),
];

#[tokio::test(flavor = "multi_thread")]
async fn every_right_is_used_in_the_life_of_a_peering_and_none_is_missing() {
    // Fails here rather than in the middle.
    testing::product_image();
    let clusters = [CONSUMER, PROVIDER].map(|name| ClusterSpec::real(name, 1).audited());
    let pair = Pair { sandbox: TestSandbox::start(clusters).await };
    for cluster in [CONSUMER, PROVIDER] {
        pair.ok(cluster, &["install", "sandbox"]);
    }
    a_domain_is_searched(&pair);
    share(&pair, "share: {percentage: 50}");
    pair.apply(PROVIDER, CLASS);
    a_token_that_is_gone_is_refused(&pair);
    add(&pair);
    let remote = an_application_runs_there(&pair);
    its_doors_are_asked_with_a_token(&pair);
    volumes_are_where_their_consumers_are(&pair);
    what_is_wrong_there_is_told(&pair);
    what_others_spoil_is_put_right(&pair, &remote);
    the_provider_changes_its_mind(&pair, &remote);
    the_application_comes_home(&pair, &remote);
    a_label_is_enough(&pair);
    offers_are_decided_by_hand(&pair);
    credentials_are_made_anew(&pair);
    they_part_and_come_back(&pair);
    whoever_is_put_out_comes_back_with_another_token(&pair);
    a_lost_key_is_told(&pair);
    every_right_is_used(&pair);
}

/// One that does not exist.
fn a_domain_is_searched(pair: &Pair) {
    let domain = "apiVersion: discovery.liqo.io/v1alpha1\nkind: SearchDomain\nmetadata: {name: nowhere}\nspec: {domain: nowhere.invalid}\n";
    pair.apply(CONSUMER, domain);
    let searched = "--for=jsonpath={.status.conditions[0].type}";
    pair.kubectl(CONSUMER, &["wait", searched, "searchdomain/nowhere", "--timeout=60s"]);
}

/// What the provider shares, from now on.
fn share(pair: &Pair, spec: &str) {
    let policy = format!(
        "apiVersion: sharing.liqo.io/v1alpha1\nkind: SharingPolicy\nmetadata: {{name: some}}\nspec: {{{spec}}}\n"
    );
    pair.apply(PROVIDER, &policy);
}

/// The command that the provider prints for others.
fn add_command(pair: &Pair) -> Vec<String> {
    let command = pair.ok(PROVIDER, &["generate-add-command", "--only-command"]);
    command.out.split_whitespace().skip(1).map(str::to_owned).collect()
}

/// Adds the provider by it.
fn add(pair: &Pair) {
    let command = add_command(pair);
    let words: Vec<&str> = command.iter().map(String::as_str).collect();
    pair.ok(CONSUMER, &words).tells(&["contract: c-"]);
}

/// It is looked for: it might have been made a moment ago.
fn a_token_that_is_gone_is_refused(pair: &Pair) {
    let made = pair.json(PROVIDER, &["token", "create"]);
    let gone = ["delete", "secret", "-l", "authentication.liqo.io/peer-token=true"];
    pair.kubectl(PROVIDER, &[&["-n", NAMESPACE][..], &gone].concat());
    let command = add_command(pair);
    let own = command.iter().skip_while(|word| *word != "--token").nth(1).unwrap();
    let with_it = |word| if word == own { made["token"].as_str().unwrap() } else { word };
    let mut words: Vec<&str> = command.iter().map(|word| with_it(word.as_str())).collect();
    words.extend(["--timeout", "10s"]);
    pair.fails(CONSUMER, &words);
}

/// With all kinds that go along; returns the namespace's name at the provider.
fn an_application_runs_there(pair: &Pair) -> String {
    pair.kubectl(CONSUMER, &["wait", "--for=create", "node", NODE, "--timeout=60s"]);
    pair.kubectl(CONSUMER, &["wait", "--for=condition=Ready", "node", NODE, "--timeout=60s"]);
    pair.kubectl(CONSUMER, &["create", "namespace", "shop"]);
    pair.ok(CONSUMER, &["offload", "namespace", "shop", "--pod-offloading-strategy", "Remote"]);
    pair.apply(CONSUMER, APPLICATION);
    pair.kubectl(CONSUMER, &["-n", "shop", "rollout", "status", "deployment/shop", "--timeout=90s"]);
    pair.kubectl(CONSUMER, &["-n", "shop", "wait", "--for=condition=Complete", "job/count", "--timeout=60s"]);
    let log = pair.kubectl(CONSUMER, &["-n", "shop", "logs", "deployment/shop"]);
    assert!(!log.is_empty());
    let name = "jsonpath={.status.remoteNamespaceName}";
    let remote =
        pair.kubectl(CONSUMER, &["-n", "shop", "get", "namespaceoffloading", "offloading", "-o", name]);
    a_pod_is_changed_while_it_runs(pair, &remote);
    remote
}

fn a_pod_is_changed_while_it_runs(pair: &Pair, remote: &str) {
    let name = ["-n", "shop", "get", "pods", "-l", "app=shop", "-o", "jsonpath={.items[0].metadata.name}"];
    let pod = format!("pod/{}", pair.kubectl(CONSUMER, &name));
    let changes = [
        ("", r#"{"metadata":{"labels":{"colour":"green"}}}"#, ".metadata.labels.colour}=green"),
        (
            "resize",
            r#"{"spec":{"containers":[{"name":"app","resources":{"requests":{"cpu":"15m"}}}]}}"#,
            ".spec.containers[0].resources.requests.cpu}=15m",
        ),
        (
            "ephemeralcontainers",
            r#"{"spec":{"ephemeralContainers":[{"name":"looker","image":"localhost/liqo/sandbox-app:1",
                "imagePullPolicy":"Never"}]}}"#,
            ".spec.ephemeralContainers[0].name}=looker",
        ),
    ];
    for (part, patch, seen) in changes {
        let mut words = vec!["-n", "shop", "patch", &pod, "--type=strategic", "-p", patch];
        words.extend(["--subresource", part].into_iter().filter(|_| !part.is_empty()));
        pair.kubectl(CONSUMER, &words);
        let seen = format!("--for=jsonpath={{{seen}");
        pair.kubectl(PROVIDER, &["-n", remote, "wait", &pod, &seen, "--timeout=60s"]);
    }
}

/// The API server shows a certificate; others, such as those who collect metrics, show a token.
fn its_doors_are_asked_with_a_token(pair: &Pair) {
    let token = pair.kubectl(CONSUMER, &["-n", "shop", "create", "token", "default"]);
    let address = "jsonpath={.status.addresses[?(@.type==\"InternalIP\")].address}";
    let address = pair.kubectl(CONSUMER, &["get", "node", NODE, "-o", address]);
    let header = format!("Authorization: Bearer {}", token.trim());
    let url = format!("https://{address}:10250/pods");
    let ask = ["curl", "-sSk", "-o", "/dev/null", "-w", "%{http_code}", "-H", &header, &url];
    let output = pair.sandbox.cluster(CONSUMER).exec_command(1, ask).unwrap().output().unwrap();
    // Known, and not allowed.
    assert_eq!(String::from_utf8_lossy(&output.stdout), "403", "{output:?}");
}

/// The claims say which node was chosen, as the scheduler would.
fn volumes_are_where_their_consumers_are(pair: &Pair) {
    let physical = ["get", "nodes", "-l", "!liqo.io/type", "-o", "jsonpath={.items[0].metadata.name}"];
    let physical = pair.kubectl(CONSUMER, &physical);
    for (name, node) in [("there", NODE), ("here", physical.as_str()), ("kept", NODE)] {
        let skip = if name == "kept" { "liqo.io/skip-reflection: \"true\"" } else { "note: none" };
        let notes = format!("{{volume.kubernetes.io/selected-node: {node}, {skip}}}");
        let metadata = format!("{{name: {name}, namespace: shop, annotations: {notes}}}");
        let spec =
            "{storageClassName: liqo, accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Mi}}}";
        pair.apply(
            CONSUMER,
            &format!("apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {metadata}\nspec: {spec}\n"),
        );
    }
    a_real_volume_is_given(pair);
    let bound = "--for=jsonpath={.status.phase}=Bound";
    for claim in ["pvc/there", "pvc/here"] {
        pair.kubectl(CONSUMER, &["-n", "shop", "wait", bound, claim, "--timeout=60s"]);
    }
    eventually("the scheduler is asked again", || {
        let kept = pair.kubectl(CONSUMER, &["-n", "shop", "get", "pvc", "kept", "-o", "yaml"]);
        if kept.contains("selected-node: liqo") { Err(kept) } else { Ok(()) }
    });
    pair.kubectl(CONSUMER, &["-n", "shop", "delete", "pvc", "there", "here", "kept"]);
    for left in
        [&["get", "pv", "-l", "liqo.io/managed-by=storage"][..], &["-n", "liqo-storage", "get", "pvc"]]
    {
        eventually("nothing is left", || {
            let left = pair.kubectl(CONSUMER, &[left, &["-o", "name"]].concat());
            if left.is_empty() { Ok(()) } else { Err(left) }
        });
    }
}

/// By hand: the sandbox has nobody who makes volumes.
fn a_real_volume_is_given(pair: &Pair) {
    pair.kubectl(CONSUMER, &["wait", "--for=create", "namespace/liqo-storage", "--timeout=60s"]);
    let all = ["-n", "liqo-storage", "get", "pvc", "-o", "jsonpath={.items[*].metadata.name}"];
    eventually("the real claim", || {
        let names = pair.kubectl(CONSUMER, &all);
        if names.is_empty() { Err("no claim".to_owned()) } else { Ok(()) }
    });
    let name = pair.kubectl(CONSUMER, &all);
    let claim = format!("{{name: {name}, namespace: liqo-storage}}");
    let spec = "capacity: {storage: 1Mi}, accessModes: [ReadWriteOnce], hostPath: {path: /tmp/given}";
    pair.apply(
        CONSUMER,
        &format!(
            "apiVersion: v1\nkind: PersistentVolume\nmetadata: {{name: given}}\nspec: {{claimRef: {claim}, {spec}}}\n"
        ),
    );
}

/// An image that nobody has.
fn what_is_wrong_there_is_told(pair: &Pair) {
    let resources = "resources: {requests: {cpu: 10m, memory: 8Mi}, limits: {memory: 8Mi}}";
    let container = format!("{{name: app, image: localhost/nothing:1, imagePullPolicy: Never, {resources}}}");
    pair.apply(
        CONSUMER,
        &format!(
            "apiVersion: v1\nkind: Pod\nmetadata: {{name: broken, namespace: shop}}\nspec: {{containers: [{container}]}}\n"
        ),
    );
    eventually("the event is told", || {
        let about =
            ["-n", "shop", "get", "events", "--field-selector", "involvedObject.name=broken,type=Warning"];
        let by = ["-o", "jsonpath={.items[*].source.component}"];
        let tellers = pair.kubectl(CONSUMER, &[&about[..], &by].concat());
        if tellers.contains("kubelet") { Ok(()) } else { Err(tellers) }
    });
    pair.kubectl(CONSUMER, &["-n", "shop", "delete", "pod", "broken"]);
}

/// Rights of the consumer, and what tells who a cluster is.
fn what_others_spoil_is_put_right(pair: &Pair, remote: &str) {
    let place = ["get", "namespaces", "-l", "discovery.liqo.io/tenant-namespace=true"];
    let place = pair.kubectl(PROVIDER, &[&place[..], &["-o", "jsonpath={.items[0].metadata.name}"]].concat());
    let nobody = ("{\"subjects\": []}", "{.subjects}", "");
    let no_key = (
        r#"{"metadata": {"annotations": {"liqo.io/key-fingerprint": null}}}"#,
        "{.metadata.annotations.liqo\\.io/key-fingerprint}",
        "",
    );
    let no_certificate = (r#"{"data": {"tls.crt": "bm9uZQ=="}}"#, "{.data.tls\\.crt}", "bm9uZQ==");
    let spoilt = [
        (PROVIDER, remote, "rolebinding/liqo-tenant", nobody),
        (PROVIDER, &place, "rolebinding/liqo-peer", nobody),
        (CONSUMER, NAMESPACE, "configmap/clusterid-configmap", no_key),
        (CONSUMER, NAMESPACE, "secret/liqo-webhook", no_certificate),
    ];
    for (cluster, namespace, object, (patch, path, state)) in spoilt {
        pair.kubectl(cluster, &["-n", namespace, "patch", object, "--type=merge", "-p", patch]);
        let path = format!("jsonpath={path}");
        eventually(&format!("{object} is as it should be"), || {
            let now = pair.kubectl(cluster, &["-n", namespace, "get", object, "-o", &path]);
            if now == state { Err(now) } else { Ok(()) }
        });
    }
}

/// Amounts, what pods may be, and whether the amounts are a limit.
fn the_provider_changes_its_mind(pair: &Pair, remote: &str) {
    let quota = || {
        let words = ["-n", remote, "get", "resourcequota", "liqo-contract", "-o", "jsonpath={.spec.hard}"];
        pair.kubectl(PROVIDER, &words)
    };
    let before = quota();
    share(pair, "share: {percentage: 20}, workloads: {podSecurity: Restricted}");
    eventually("another quota", || if quota() == before { Err(before.clone()) } else { Ok(()) });
    let level = "--for=jsonpath={.metadata.labels.pod-security\\.kubernetes\\.io/enforce}=restricted";
    pair.kubectl(PROVIDER, &["wait", level, "namespace", remote, "--timeout=60s"]);
    share(pair, "share: {percentage: 40}, enforcement: Soft");
    let gone = ["-n", remote, "wait", "--for=delete", "resourcequota/liqo-contract", "--timeout=60s"];
    pair.kubectl(PROVIDER, &gone);
}

/// A selector that means no cluster, then no offloading, and a drained node.
fn the_application_comes_home(pair: &Pair, remote: &str) {
    pair.ok(CONSUMER, &["offload", "namespace", "shop", "--selector", "there=nowhere", "--no-wait"]);
    pair.kubectl(PROVIDER, &["wait", "--for=delete", "namespace", remote, "--timeout=90s"]);
    pair.ok(CONSUMER, &["unoffload", "namespace", "shop", "--yes"]);
    pair.ok(CONSUMER, &["drain", "peer", PROVIDER]);
    pair.ok(CONSUMER, &["drain", "peer", PROVIDER, "--undo"]);
}

fn a_label_is_enough(pair: &Pair) {
    let offloading = "namespaceoffloading/offloading";
    pair.kubectl(CONSUMER, &["label", "namespace", "shop", "liqo.io/enabled=true"]);
    pair.kubectl(CONSUMER, &["-n", "shop", "wait", "--for=create", offloading, "--timeout=60s"]);
    pair.kubectl(CONSUMER, &["label", "namespace", "shop", "liqo.io/enabled-"]);
    pair.kubectl(CONSUMER, &["-n", "shop", "wait", "--for=delete", offloading, "--timeout=60s"]);
}

/// How the consumer calls the provider.
fn known(pair: &Pair) -> String {
    pair.json(CONSUMER, &["status", "peer", PROVIDER])["name"].as_str().unwrap().to_owned()
}

fn offers_are_decided_by_hand(pair: &Pair) {
    pair.ok(CONSUMER, &["unpeer", PROVIDER]);
    let name = known(pair);
    let by_hand = r#"{"spec": {"borrowing": {"automatic": false}}}"#;
    pair.kubectl(CONSUMER, &["patch", "foreigncluster", &name, "--type=merge", "-p", by_hand]);
    pair.fails(CONSUMER, &["peer", PROVIDER]).tells(&["somebody has to decide"]);
    pair.ok(CONSUMER, &["offer", "refuse", PROVIDER]).tells(&["refused"]);
    pair.ok(CONSUMER, &["offer", "accept", PROVIDER]).tells(&["contract: c-"]);
}

/// Our key at the peer, and the provider's own token.
fn credentials_are_made_anew(pair: &Pair) {
    let name = known(pair);
    let rotate = "authentication.liqo.io/rotate";
    pair.kubectl(CONSUMER, &["annotate", "foreigncluster", &name, &format!("{rotate}=now")]);
    eventually("the key is another", || {
        let cluster = pair.kubectl(CONSUMER, &["get", "foreigncluster", &name, "-o", "json"]);
        if cluster.contains(rotate) { Err(cluster) } else { Ok(()) }
    });
    pair.ok(PROVIDER, &["token", "rotate-own"]);
}

fn they_part_and_come_back(pair: &Pair) {
    pair.ok(CONSUMER, &["unpeer", PROVIDER]);
    pair.ok(CONSUMER, &["remove", "cluster", PROVIDER]);
    pair.until(PROVIDER, &["contract", "list", "-o", "json"], |said| said.out.trim() == "[]");
    let peer = ["peer", PROVIDER, "--remote-context", PROVIDER];
    pair.ok(CONSUMER, &peer).tells(&["contract: c-"]);
}

/// The provider removes the consumer, whose token it notes; with another one it may come back.
fn whoever_is_put_out_comes_back_with_another_token(pair: &Pair) {
    pair.ok(CONSUMER, &["remove", "cluster", PROVIDER]);
    add(pair);
    pair.ok(PROVIDER, &["remove", "cluster", CONSUMER]);
    pair.ok(CONSUMER, &["remove", "cluster", PROVIDER]);
    pair.ok(PROVIDER, &["token", "rotate-own"]);
    add(pair);
}

fn a_lost_key_is_told(pair: &Pair) {
    pair.kubectl(CONSUMER, &["-n", NAMESPACE, "delete", "secret", "liqo-identity"]);
    eventually("an event tells of the lost key", || {
        let events = pair.kubectl(CONSUMER, &["-n", NAMESPACE, "get", "events", "-o", "name"]);
        if events.contains("liqo-identity.") { Ok(()) } else { Err(events) }
    });
}

fn eventually(what: &str, look: impl Fn() -> Result<(), String>) {
    let deadline = Instant::now() + SOON;
    while let Err(state) = look() {
        assert!(Instant::now() < deadline, "not within {SOON:?}: {what}; now: {state}");
        std::thread::sleep(Duration::from_millis(200));
    }
}

/// What a manager asked for.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Request {
    verb: String,
    group: String,
    /// With its subresource.
    resource: String,
    /// Empty where it was about many.
    name: String,
    /// In the house's own namespace, or elsewhere.
    scope: Scope,
}

/// What the managers asked for, and what was forbidden.
fn requests(pair: &Pair) -> (BTreeSet<Request>, Vec<String>) {
    let (mut asked, mut forbidden) = (BTreeSet::new(), Vec::new());
    for cluster in [CONSUMER, PROVIDER] {
        let log = std::fs::read_to_string(pair.sandbox.cluster(cluster).audit_log()).unwrap();
        let events = log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        for event in events.filter(|event| event["user"]["username"] == MANAGER) {
            if event["annotations"]["authorization.k8s.io/decision"] == "allow" {
                asked.extend(verbs(&event).into_iter().map(|verb| request(&event, verb)));
            } else {
                forbidden.push(format!("{cluster}: {event}"));
            }
        }
    }
    (asked, forbidden)
}

fn verbs(event: &Value) -> Vec<&str> {
    let verb = event["verb"].as_str().unwrap_or_default();
    // What is applied and was not there is made, for which that right is needed as well.
    let is_made = verb == "patch" && event["responseStatus"]["code"] == 201;
    let mut verbs = vec![verb];
    verbs.extend(is_made.then_some("create"));
    // Lists are streamed where the server can do that; elsewhere the same code lists first.
    verbs.extend((verb == "watch").then_some("list"));
    verbs
}

fn request(event: &Value, verb: &str) -> Request {
    let object = &event["objectRef"];
    let text = |key: &str| object[key].as_str().unwrap_or_default().to_owned();
    let part = object["subresource"].as_str().map(|part| format!("/{part}")).unwrap_or_default();
    Request {
        verb: verb.to_owned(),
        group: text("apiGroup"),
        resource: format!("{}{part}", text("resource")),
        name: text("name"),
        scope: match object["namespace"].as_str() {
            Some(NAMESPACE) => Scope::Namespace,
            Some(NODE_LEASES) => Scope::NodeLeases,
            _ => Scope::Cluster,
        },
    }
}

fn every_right_is_used(pair: &Pair) {
    // The managers still do what follows from the last step.
    eventually("every right is used", || {
        let unused = unused(pair);
        if unused.is_empty() { Ok(()) } else { Err(format!("nobody asked to\n{}", unused.join("\n"))) }
    });
}

/// The rights that nobody has used up to now; nothing may have been forbidden.
fn unused(pair: &Pair) -> Vec<String> {
    let (asked, forbidden) = requests(pair);
    assert!(forbidden.is_empty(), "{}", forbidden.join("\n"));
    let mut unused = BTreeSet::new();
    for rule in liqo::manager::rules() {
        for (verb, resource) in
            rule.verbs.iter().flat_map(|verb| rule.resources.iter().map(move |it| (*verb, *it)))
        {
            let is_used = asked.iter().any(|request| needs(request, &rule, verb, resource));
            if !is_used && !is_not_shown(&rule, verb, resource) {
                unused.insert(format!("{verb} {resource} ({:?}): {}", rule.scope, rule.why));
            }
        }
    }
    unused.into_iter().collect()
}

/// Where a right in the house's own namespace would do, that in the whole cluster is not needed.
fn needs(request: &Request, rule: &Rule, verb: &str, resource: &str) -> bool {
    request.verb == verb
        && request.resource == resource
        && request.scope == rule.scope
        && rule.groups.contains(&request.group.as_str())
        && (rule.names.is_empty() || rule.names.contains(&request.name.as_str()))
}

fn is_not_shown(rule: &Rule, verb: &str, resource: &str) -> bool {
    // Nobody can give what it has not got.
    let is_given = liqo_authentication::PEER_RULES.iter().any(|given| {
        (given.groups, given.resources, given.names, given.verbs)
            == (rule.groups, rule.resources, rule.names, rule.verbs)
    });
    is_given || LOOKED_AT.contains(&(verb, resource)) || RARE.contains(&(verb, resource, rule.scope))
}

/// A storage class to offer; nobody makes volumes of it.
const CLASS: &str = "
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: fast}
provisioner: example.com/nobody
volumeBindingMode: WaitForFirstConsumer
";

const APPLICATION: &str = "
apiVersion: v1
kind: ConfigMap
metadata: {name: shop, namespace: shop}
data: {name: from the config map}
---
apiVersion: v1
kind: Secret
metadata: {name: shop, namespace: shop}
stringData: {word: open sesame}
---
apiVersion: v1
kind: Service
metadata: {name: shop, namespace: shop}
spec:
  selector: {app: shop}
  ports: [{port: 80, targetPort: 8080}]
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: shop, namespace: shop}
spec:
  defaultBackend: {service: {name: shop, port: {number: 80}}}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: shop, namespace: shop}
spec:
  storageClassName: liqo
  accessModes: [ReadWriteOnce]
  resources: {requests: {storage: 1Mi}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: shop, namespace: shop}
spec:
  selector: {matchLabels: {app: shop}}
  template:
    metadata: {labels: {app: shop}}
    spec:
      terminationGracePeriodSeconds: 1
      containers:
      - name: app
        image: localhost/liqo/sandbox-app:1
        imagePullPolicy: Never
        env:
        - {name: CLUSTER_NAME, valueFrom: {configMapKeyRef: {name: shop, key: name}}}
        - {name: WORD, valueFrom: {secretKeyRef: {name: shop, key: word}}}
        readinessProbe: {httpGet: {path: /healthz, port: 8080}, periodSeconds: 1}
        resources: {requests: {cpu: 10m, memory: 8Mi}, limits: {memory: 32Mi}}
---
apiVersion: batch/v1
kind: Job
metadata: {name: count, namespace: shop}
spec:
  template:
    spec:
      restartPolicy: Never
      containers:
      - name: app
        image: localhost/liqo/sandbox-app:1
        imagePullPolicy: Never
        args: [exit, \"0\"]
        resources: {requests: {cpu: 10m, memory: 8Mi}, limits: {memory: 32Mi}}
";
