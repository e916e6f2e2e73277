//! What a peer may write at a real API server: its own, and nothing else, whatever its role allows.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on has failed")]

#[path = "support/installed.rs"]
mod support;

use std::collections::BTreeMap;
use std::time::Duration;

use kube::api::{ApiResource, DeleteParams, DynamicObject, GroupVersionKind, Patch, PatchParams, PostParams};
use kube::{Api, Client, Config};
use liqo_authentication::PEER_RULES;
use liqo_chart::{Chart, Release};
use liqo_kit::rbac::Rule;
use liqo_sandbox::ClusterSpec;
use serde::Deserialize;
use serde_json::{Value, json};
use support::{Installed, put};
use tokio::time::{Instant, sleep};

const NAMESPACE: &str = "liqo-tenant-peer";
const PEER: &str = "peer-id";
const US: &str = "our-id";
const KINDS: [&str; 5] = ["resourcerequests", "resourceoffers", "contracts", "namespacemaps", "leases"];
/// A policy is in force some time after it was created; a loaded machine needs longer.
const DEADLINE: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_millis(100);

#[derive(Deserialize)]
struct Table {
    base: BTreeMap<String, Value>,
    world: BTreeMap<String, BTreeMap<String, Value>>,
    #[serde(flatten)]
    attempts: BTreeMap<String, Vec<Attempt>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Attempt {
    what: String,
    create: Option<String>,
    apply: Option<String>,
    change: Option<String>,
    replace: Option<String>,
    status: Option<String>,
    delete: Option<String>,
    set: Option<Value>,
    policy: Option<String>,
    role: Option<String>,
    kind: Option<String>,
}

#[tokio::test(flavor = "multi_thread")]
async fn a_peer_writes_what_is_its_own_and_nothing_else() {
    let table: Table = serde_saphyr::from_str(include_str!("admission/attempts.yaml")).unwrap();
    // With a controller manager, which checks the policy's expressions.
    let installed = Installed::start_with(ClusterSpec::hollow("one", 1)).await;
    let admin = installed.cluster().client().await;
    prepare(&installed, &admin, &table).await;
    let peer = impersonating(&installed, PEER, &["liqo.io"]).await;
    until_in_force(&peer, &table).await;

    let mut wrong = Vec::new();
    for (kind, attempt) in table.attempts() {
        wrong.extend(attempt.wrong(&peer, kind, &table.base[kind], false).await);
    }
    // The same with every right there is: the policy stands by itself.
    let resources =
        "--resource=*.discovery.liqo.io,*.sharing.liqo.io,*.virtualkubelet.liqo.io,*.coordination.k8s.io";
    installed.kubectl(&["create", "clusterrole", "all", "--verb=*", resources]);
    bind(&installed, "all", PEER);
    until_bound(&peer).await;
    for (kind, attempt) in table.attempts().filter(|(_, attempt)| attempt.role.is_some()) {
        wrong.extend(attempt.wrong(&peer, kind, &table.base[kind], true).await);
    }
    assert!(wrong.is_empty(), "{} surprises:\n{}", wrong.len(), wrong.join("\n"));

    nobody_else_is_bothered(&installed, &admin, &table).await;
    the_policy_has_no_mistake(&admin).await;
}

impl Table {
    fn attempts(&self) -> impl Iterator<Item = (&'static str, &Attempt)> {
        KINDS.into_iter().flat_map(|kind| self.attempts[kind].iter().map(move |attempt| (kind, attempt)))
    }
}

/// An object of a kind with something merged in.
fn object(base: &Value, name: &str, set: Option<&Value>) -> Value {
    let mut object = base.clone();
    if let Some(set) = set {
        merge(&mut object, set);
    }
    object["metadata"]["name"] = json!(name);
    object
}

fn merge(target: &mut Value, patch: &Value) {
    match patch {
        Value::Object(fields) => {
            if !target.is_object() {
                *target = json!({});
            }
            fields.iter().for_each(|(name, value)| merge(&mut target[name], value));
        }
        other => *target = other.clone(),
    }
}

async fn prepare(installed: &Installed, admin: &Client, table: &Table) {
    installed.kubectl(&["create", "namespace", NAMESPACE]);
    for (kind, objects) in &table.world {
        for (name, set) in objects {
            put(admin, &object(&table.base[kind], name, Some(set))).await;
        }
    }
    let release = Release {
        name: "liqo".into(),
        namespace: "liqo".into(),
        service: "liqoctl".into(),
        is_upgrade: false,
        revision: 1,
        kubernetes_version: String::new(),
        api_versions: vec![],
    };
    let rendered = Chart::embedded().render(&release, &json!({})).unwrap();
    for kind in ["ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"] {
        let is_meant = |object: &&Value| object["kind"] == kind && object["metadata"]["name"] == "liqo-peers";
        put(admin, rendered.iter().find(is_meant).unwrap()).await;
    }
    let rule = |rule: &Rule| json!({ "apiGroups": rule.groups, "resources": rule.resources, "resourceNames": rule.names, "verbs": rule.verbs });
    let rules: Vec<Value> = PEER_RULES.iter().map(rule).collect();
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "rules": rules,
        "metadata": { "name": "peer", "namespace": NAMESPACE },
    });
    put(admin, &role).await;
    let user = format!("--user={PEER}");
    installed.kubectl(&["-n", NAMESPACE, "create", "rolebinding", "peer", "--role=peer", &user]);
}

fn bind(installed: &Installed, role: &str, user: &str) {
    let (role, to) = (format!("--clusterrole={role}"), format!("--user={user}"));
    installed.kubectl(&["-n", NAMESPACE, "create", "rolebinding", user, &role, &to]);
}

/// A client that the API server takes for somebody else.
async fn impersonating(installed: &Installed, user: &str, groups: &[&str]) -> Client {
    let kubeconfig = kube::config::Kubeconfig::read_from(installed.kubeconfig()).unwrap();
    let mut config = Config::from_custom_kubeconfig(kubeconfig, &Default::default()).await.unwrap();
    config.auth_info.impersonate = Some(user.to_owned());
    let groups = groups.iter().chain(&["system:authenticated"]).map(ToString::to_string);
    config.auth_info.impersonate_groups = Some(groups.collect());
    Client::try_from(config).unwrap()
}

async fn until_in_force(peer: &Client, table: &Table) {
    let deadline = Instant::now() + DEADLINE;
    let dry_run = PostParams { dry_run: true, ..PostParams::default() };
    let copy = json!({ "metadata": { "labels": { "liqo.io/replicated": "true" } } });
    let copy = parse(object(&table.base["resourcerequests"], "x", Some(&copy)));
    loop {
        let said = api(peer, "resourcerequests").create(&dry_run, &copy).await.map(drop);
        if said.as_ref().is_err_and(|error| error.to_string().contains("liqo-peers")) {
            return;
        }
        assert!(Instant::now() < deadline, "the policy is not in force: {said:?}");
        sleep(PAUSE).await;
    }
}

async fn until_bound(user: &Client) {
    let deadline = Instant::now() + DEADLINE;
    loop {
        match api(user, "contracts").delete("c-not-there", &DeleteParams::default()).await {
            Err(kube::Error::Api(status)) if status.code == 404 => return,
            said => assert!(Instant::now() < deadline, "the role is not bound: {said:?}"),
        }
        sleep(PAUSE).await;
    }
}

fn parse(object: Value) -> DynamicObject {
    serde_json::from_value(object).unwrap()
}

fn api(client: &Client, plural: &str) -> Api<DynamicObject> {
    let (group, version, kind) = match plural {
        "resourcerequests" => ("discovery.liqo.io", "v1alpha1", "ResourceRequest"),
        "resourceoffers" => ("sharing.liqo.io", "v1alpha1", "ResourceOffer"),
        "namespacemaps" => ("virtualkubelet.liqo.io", "v1alpha1", "NamespaceMap"),
        "leases" => ("coordination.k8s.io", "v1", "Lease"),
        _ => ("sharing.liqo.io", "v1alpha1", "Contract"),
    };
    let resource = ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk(group, version, kind), plural);
    Api::namespaced_with(client.clone(), NAMESPACE, &resource)
}

impl Attempt {
    /// How the outcome differs from the expected one; `all` if every right is there.
    async fn wrong(&self, client: &Client, plural: &str, base: &Value, all: bool) -> Option<String> {
        let said = match self.write(&api(client, plural), base).await {
            Ok(()) => "accepted".to_owned(),
            Err(error) => error.to_string(),
        };
        let by_policy = said.contains("ValidatingAdmissionPolicy 'liqo-peers'");
        let right = match (&self.policy, &self.role, &self.kind) {
            (Some(words), ..) => by_policy && said.contains(words),
            (_, Some(words), _) if all => by_policy && said.contains(words),
            (_, Some(_), _) => said.contains("cannot ") && said.contains(PEER) && !by_policy,
            (_, _, Some(words)) => said.contains(words),
            _ => said == "accepted",
        };
        (!right).then(|| format!("{plural}: the peer {}: {said}", self.what))
    }

    async fn write(&self, api: &Api<DynamicObject>, base: &Value) -> Result<(), kube::Error> {
        let set = self.set.clone().unwrap_or_else(|| json!({}));
        let (patch, post) = (PatchParams::default(), PostParams::default());
        let object = |name: &str| object(base, name, self.set.as_ref());
        if let Some(name) = &self.create {
            return api.create(&post, &parse(object(name))).await.map(drop);
        }
        if let Some(name) = &self.apply {
            let object = object(name);
            return api.patch(name, &PatchParams::apply("peer"), &Patch::Apply(&object)).await.map(drop);
        }
        if let Some(name) = &self.change {
            return api.patch(name, &patch, &Patch::Merge(&set)).await.map(drop);
        }
        if let Some(name) = &self.status {
            let status = json!({ "status": set });
            return api.patch_status(name, &patch, &Patch::Merge(&status)).await.map(drop);
        }
        if let Some(name) = &self.replace {
            let mut object = object(name);
            object["metadata"]["resourceVersion"] = json!(api.get(name).await?.metadata.resource_version);
            return api.replace(name, &post, &parse(object)).await.map(drop);
        }
        api.delete(self.delete.as_deref().unwrap(), &DeleteParams::default()).await.map(drop)
    }
}

/// Administrators, the manager and users without the group write as before.
async fn nobody_else_is_bothered(installed: &Installed, admin: &Client, table: &Table) {
    let set = json!({
        "metadata": { "finalizers": ["example.com/hold"], "labels": { "liqo.io/replicated": "true" } },
        "spec": { "clusterIdentity": { "clusterID": "another-id" } },
    });
    let requests = api(admin, "resourcerequests");
    let free = object(&table.base["resourcerequests"], "free", Some(&set));
    requests.create(&PostParams::default(), &parse(free)).await.unwrap();
    let let_go = Patch::Merge(json!({ "metadata": { "finalizers": null } }));
    requests.patch("free", &PatchParams::default(), &let_go).await.unwrap();
    requests.delete("free", &DeleteParams::default()).await.unwrap();

    bind(installed, "all", US);
    let user = impersonating(installed, US, &[]).await;
    until_bound(&user).await;
    let contract = object(&table.base["contracts"], "c-of-a-user", None);
    api(&user, "contracts").create(&PostParams::default(), &parse(contract)).await.unwrap();
}

/// The API server checks the policy's expressions against the kinds, and notes what cannot work.
async fn the_policy_has_no_mistake(admin: &Client) {
    let gvk = GroupVersionKind::gvk("admissionregistration.k8s.io", "v1", "ValidatingAdmissionPolicy");
    let resource = ApiResource::from_gvk_with_plural(&gvk, "validatingadmissionpolicies");
    let api: Api<DynamicObject> = Api::all_with(admin.clone(), &resource);
    let deadline = Instant::now() + DEADLINE;
    loop {
        let status = api.get("liqo-peers").await.unwrap().data["status"].clone();
        if !status["observedGeneration"].is_null() {
            assert!(status["typeChecking"]["expressionWarnings"].is_null(), "{status:#}");
            return;
        }
        assert!(Instant::now() < deadline, "the policy was not looked at: {status:#}");
        sleep(PAUSE).await;
    }
}
