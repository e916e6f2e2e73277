//! What a user does and gets: the real image in real pods with the chart's own rights, from nothing to nothing.
//!
//! Needs `make image`.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on has failed"
)]

#[path = "support/install.rs"]
mod support;

use std::collections::BTreeSet;

use futures::StreamExt;
use k8s_openapi::api::authorization::v1::{ResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec};
use kube::api::PostParams;
use kube::discovery::Discovery;
use kube::{Api, Client};
use liqo_kit::rbac::{NODE_LEASES, Rule, Scope};
use liqo_sandbox::ClusterSpec;
use support::{CLUSTER, Said, World, everything, settled, until, until_as_before};

/// The API server's own limit for a user is far above this.
const AT_ONCE: usize = 16;
const ACCOUNT: &str = "system:serviceaccount:liqo:liqo-controller-manager";
const VERBS: [&str; 8] = ["get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"];
/// By these, rights grow; each has a meaning for few resources.
const POWERS: [(&str, &[&str]); 5] = [
    ("bind", &["clusterroles", "roles"]),
    ("escalate", &["clusterroles", "roles"]),
    ("impersonate", &["users", "groups", "serviceaccounts", "uids", "userextras/scopes"]),
    ("approve", &["signers"]),
    ("sign", &["signers"]),
];
/// Whoever had one of these had all.
const POWERFUL: [&str; 4] = [
    "cluster-admin",
    "system:masters",
    "kubernetes.io/kube-apiserver-client",
    "kubernetes.io/kubelet-serving",
];

/// The groups of resources that only rules know, and no API server lists.
fn group_of(resource: &str) -> &'static str {
    match resource {
        "signers" => "certificates.k8s.io",
        "uids" | "userextras/scopes" => "authentication.k8s.io",
        "clusterroles" | "roles" => "rbac.authorization.k8s.io",
        _ => "",
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn from_nothing_to_nothing() {
    let world = World::start(ClusterSpec::real(CLUSTER, 1)).await;
    let before = settled(&world.client().await).await;
    checks_pass_before_anything_is_there(&world);
    a_failed_installation_says_why_and_is_put_right_by_the_next(&world);
    installed_it_is_well(&world);
    again_changes_nothing(&world).await;
    the_account_may_do_what_its_code_needs_and_nothing_else(&world).await;
    two_replicas_share_the_work(&world);
    a_lost_key_is_told(&world);
    world.ok(&["uninstall", "--purge", "--yes"]).tells(&["liqo is gone, with everything of it"]);
    until_as_before(&world.client().await, &before).await;
}

fn install<'a>(more: &[&'a str]) -> Vec<&'a str> {
    static ARCHIVE: std::sync::LazyLock<String> =
        std::sync::LazyLock::new(|| liqo_sandbox::testing::product_image().display().to_string());
    [&["install", "sandbox", "--image-archive", ARCHIVE.as_str()], more].concat()
}

fn checks_pass_before_anything_is_there(world: &World) {
    let said = world.ok(&["check", "--pre"]);
    assert!(!said.out.contains('✗'), "{said}");
}

/// The reason is told, and the next run goes on from there. (More reasons: `install_failing.rs`.)
fn a_failed_installation_says_why_and_is_put_right_by_the_next(world: &World) {
    // Like a node whose disk is full. (That taint itself is taken off again at once by Kubernetes.)
    let node = format!("{CLUSTER}-1");
    world.kubectl(&["taint", "node", &node, "example.com/disk-full=yes:NoSchedule"]);
    world.fails_telling(
        &install(&["--timeout", "8"]),
        &[
            "pod liqo-controller-manager-",
            "no node takes it",
            "node alpha-1 has taint example.com/disk-full=yes:NoSchedule",
            "run the same command again",
        ],
    );
    world.kubectl(&["taint", "node", &node, "example.com/disk-full-"]);
}

fn installed_it_is_well(world: &World) {
    world.ok(&install(&[])).tells(&["the manager is ready", "is installed in namespace liqo and ready"]);
    let check = world.ok(&["check"]);
    assert!(!check.out.contains('✗') && check.out.contains("all objects tell the same identity"), "{check}");
    let status = world.ok(&["status"]);
    assert!(status.out.contains("Autonomous") && status.out.contains("1/1"), "{status}");
    let version = world.ok(&["version", "-o", "json"]);
    assert!(version.out.contains(env!("CARGO_PKG_VERSION")), "{version}");
    // Where all is slow, more is tried again, and told.
    let logs = world.ok(&["logs", "--tail", "10000"]);
    assert!(logs.out.contains("the cluster's identity is established"), "{logs}");
    let pod = world.kubectl(&["-n", "liqo", "get", "pods", "-o", "jsonpath={.items[0].metadata.name}"]);
    let raw = |path: &str| {
        world.kubectl(&["get", "--raw", &format!("/api/v1/namespaces/liqo/pods/{pod}:8080/proxy/{path}")])
    };
    assert!(raw("metrics").contains("liqo_manager_leader 1"));
    it_is_nobody_and_has_nothing_to_write_to(world, &pod);
}

/// The kernel says so, not the manifest.
fn it_is_nobody_and_has_nothing_to_write_to(world: &World, pod: &str) {
    let path = ["-n", "liqo", "get", "pod", pod, "-o", "jsonpath={.metadata.uid}"];
    let uid = world.kubectl(&path);
    let process = process_of(&uid, "liqo").unwrap_or_else(|| panic!("no process of pod {uid}"));
    let read = |file: &str| std::fs::read_to_string(process.join(file)).unwrap();
    let status = read("status");
    let field = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default();
        line.split_whitespace().map(str::to_owned).collect::<Vec<_>>()
    };
    for name in ["Uid:", "Gid:"] {
        let ids = field(name);
        assert!(ids.len() == 4 && ids.iter().all(|id| id != "0"), "{name} {ids:?}");
    }
    assert_eq!((field("CapEff:"), field("NoNewPrivs:")), (vec!["0000000000000000".into()], vec!["1".into()]));
    let mounts = read("mounts");
    let options = |place: &str| {
        let line = mounts.lines().find(|line| line.split(' ').nth(1) == Some(place));
        line.and_then(|line| line.split(' ').nth(3)).unwrap_or_default().to_owned()
    };
    assert!(options("/").split(',').any(|one| one == "ro"), "the root can be written to:\n{mounts}");
}

/// The process of this name that a pod's cgroup holds.
fn process_of(uid: &str, name: &str) -> Option<std::path::PathBuf> {
    let all = std::fs::read_dir("/proc").unwrap().filter_map(Result::ok).map(|entry| entry.path());
    let read =
        |path: &std::path::Path, file: &str| std::fs::read_to_string(path.join(file)).unwrap_or_default();
    let uid = [uid.to_owned(), uid.replace('-', "_")];
    all.into_iter().find(|path| {
        let held = read(path, "cgroup");
        uid.iter().any(|uid| held.contains(uid)) && read(path, "comm").trim() == name
    })
}

async fn again_changes_nothing(world: &World) {
    let client = world.client().await;
    let ours = |all: std::collections::BTreeMap<String, String>| -> Vec<(String, String)> {
        all.into_iter().filter(|(name, _)| !name.starts_with("Lease") && !name.starts_with("Pod ")).collect()
    };
    // Kubernetes goes on making what belongs to Services.
    let before = ours(settled(&client).await);
    world.ok(&install(&[])).tells(&["nothing to change"]);
    assert_eq!(ours(everything(&client).await), before);
}

/// Asks the API server about every verb on every resource, and on names that are none of the manager's business.
async fn the_account_may_do_what_its_code_needs_and_nothing_else(world: &World) {
    let client = world.client().await;
    let mut resources: Vec<(String, String, bool)> = Vec::new();
    let discovery = Discovery::new(client.clone()).run().await.unwrap();
    for group in discovery.groups() {
        for (resource, capabilities) in group.recommended_resources() {
            let namespaced = capabilities.scope == kube::discovery::Scope::Namespaced;
            resources.push((resource.group.clone(), resource.plural.clone(), namespaced));
            for (sub, _) in &capabilities.subresources {
                let name = sub.plural.clone();
                let name = if name.contains('/') { name } else { format!("{}/{name}", resource.plural) };
                resources.push((resource.group.clone(), name, namespaced));
            }
        }
    }
    assert!(resources.len() > 60, "{resources:?}");
    let rules = liqo::manager::rules();
    let mut questions = Vec::new();
    for (group, resource, namespaced) in &resources {
        let namespaces: &[&str] =
            if *namespaced { &["liqo", "kube-system", NODE_LEASES, "default"] } else { &[""] };
        for (verb, namespace) in VERBS.iter().flat_map(|verb| namespaces.iter().map(move |ns| (*verb, *ns))) {
            let names = names_of(&rules, resource).into_iter();
            questions.extend(names.map(|name| (group.as_str(), resource.as_str(), verb, namespace, name)));
        }
    }
    for (verb, resource) in POWERS.iter().flat_map(|(verb, all)| all.iter().map(move |one| (*verb, *one))) {
        let namespaces: &[&str] =
            if matches!(resource, "roles" | "serviceaccounts") { &["liqo", "kube-system"] } else { &[""] };
        for namespace in namespaces {
            let names = names_of(&rules, resource).into_iter().chain(POWERFUL.map(str::to_owned));
            questions.extend(names.map(|name| (group_of(resource), resource, verb, *namespace, name)));
        }
    }
    let asked = questions.len();
    let answers: Vec<_> = futures::stream::iter(questions)
        .map(|(group, resource, verb, namespace, name)| {
            let client = &client;
            async move {
                let allowed = may(client, group, resource, verb, namespace, &name).await;
                (allowed, group, resource, verb, namespace, name)
            }
        })
        .buffer_unordered(AT_ONCE)
        .collect()
        .await;
    let (mut wrong, mut granted) = (Vec::new(), BTreeSet::new());
    for (allowed, group, resource, verb, namespace, name) in answers {
        let needed = rules.iter().any(|rule| needs(rule, group, resource, verb, namespace, &name));
        if allowed != needed {
            wrong
                .push(format!("{verb} {group}/{resource} {namespace}/{name}: may {allowed}, needs {needed}"));
        } else if allowed {
            granted.insert(format!("{verb} {group}/{resource}"));
        }
    }
    eprintln!("{asked} questions; granted: {granted:?}");
    assert!(wrong.is_empty(), "{} of {asked} answers are wrong:\n{}", wrong.len(), wrong.join("\n"));
    assert!(granted.len() > 5, "{granted:?}");
}

/// The names that rules speak of, one that they do not, and none at all.
fn names_of(rules: &[Rule], resource: &str) -> Vec<String> {
    let named = rules.iter().filter(|rule| rule.resources.contains(&resource)).flat_map(|rule| rule.names);
    named.map(|name| (*name).to_owned()).chain(["somebody-elses".to_owned(), String::new()]).collect()
}

fn needs(rule: &Rule, group: &str, resource: &str, verb: &str, namespace: &str, name: &str) -> bool {
    rule.groups.contains(&group)
        && rule.resources.contains(&resource)
        && rule.verbs.contains(&verb)
        && (rule.names.is_empty() || rule.names.contains(&name))
        && match rule.scope {
            Scope::Cluster => true,
            Scope::Namespace => namespace == "liqo",
            Scope::NodeLeases => namespace == NODE_LEASES,
        }
}

async fn may(client: &Client, group: &str, resource: &str, verb: &str, namespace: &str, name: &str) -> bool {
    let some = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    let (resource, subresource) = resource.split_once('/').unwrap_or((resource, ""));
    let review = SubjectAccessReview {
        spec: SubjectAccessReviewSpec {
            user: Some(ACCOUNT.to_owned()),
            groups: Some(vec![
                "system:serviceaccounts".into(),
                "system:serviceaccounts:liqo".into(),
                "system:authenticated".into(),
            ]),
            resource_attributes: Some(ResourceAttributes {
                group: some(group),
                resource: some(resource),
                subresource: some(subresource),
                verb: some(verb),
                namespace: some(namespace),
                name: some(name),
                ..Default::default()
            }),
            ..Default::default()
        },
        ..Default::default()
    };
    let answer =
        Api::<SubjectAccessReview>::all(client.clone()).create(&PostParams::default(), &review).await;
    // What every account may do is not of our making.
    let everybody = resource.starts_with("self");
    answer.unwrap().status.is_some_and(|status| status.allowed) && !everybody
}

fn two_replicas_share_the_work(world: &World) {
    world.ok(&install(&["--enable-ha"])).tells(&["the manager is ready"]);
    let leader = || {
        world.kubectl(&[
            "-n",
            "liqo",
            "get",
            "lease",
            "liqo-controller-manager",
            "-o",
            "jsonpath={.spec.holderIdentity}",
        ])
    };
    // The old leader may still be ending, or may just have given it back.
    let mut first = String::new();
    until("one of those that stay leads", || {
        first = leader();
        let pod = first.split('_').next().unwrap();
        let ending = "jsonpath={.metadata.name}{.metadata.deletionTimestamp}";
        let found = ["-n", "liqo", "get", "pods", "--ignore-not-found", "-o", ending];
        let stays = !pod.is_empty() && world.kubectl(&[&found[..4], &[pod], &found[4..]].concat()) == pod;
        if stays { Ok(()) } else { Err(format!("{first:?} leads")) }
    });
    let pod = first.split('_').next().unwrap().to_owned();
    world.kubectl(&["-n", "liqo", "delete", "pod", &pod, "--grace-period=0", "--force"]);
    until("another one leads", || {
        let now = leader();
        if now != first && !now.is_empty() { Ok(()) } else { Err(format!("{now:?} leads")) }
    });
    let check = Said::of(&world.run(&["check", "--wait", "60s"]));
    assert_eq!(check.code, Some(0), "{check}");
    world.ok(&install(&["--set", "enableHA=false"])).tells(&["the manager is ready"]);
}

fn a_lost_key_is_told(world: &World) {
    let backup = world.kubectl(&["-n", "liqo", "get", "secret", "liqo-identity", "-o", "yaml"]);
    world.kubectl(&["-n", "liqo", "delete", "secret", "liqo-identity"]);
    until("check tells of the lost key", || {
        let check = Said::of(&world.run(&["check"]));
        let told = check.code == Some(1) && check.out.contains("liqo-identity");
        if told { Ok(()) } else { Err(check.to_string()) }
    });
    world.apply(&backup);
    let check = Said::of(&world.run(&["check", "--wait", "60s"]));
    assert_eq!(check.code, Some(0), "{check}");
}
