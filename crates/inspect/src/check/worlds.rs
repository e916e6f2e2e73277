//! Worlds for tests: a healthy installation, and ways to spoil it.

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::definitions::WANTED;
use super::rights::Rights;
use super::{Report, World, evaluate};
use crate::facts::{Facts, Hello, Read, Server};
use crate::installation::{MANAGER, Unread};
use crate::status::{Status, summarise};
use crate::webhook::Webhook;
use liqo_install::finding::{Finding, Outcome};

pub(crate) const VERSION: &str = "0.1.0";

/// The objects of a cluster, and what the user may not see of them.
pub(crate) struct Cluster {
    pub(crate) objects: Vec<Value>,
    pub(crate) definitions: Vec<CustomResourceDefinition>,
    pub(crate) webhooks: Vec<Webhook>,
    pub(crate) elsewhere: Vec<String>,
    pub(crate) version: String,
    pub(crate) ahead: i64,
    forbidden: Vec<&'static str>,
    now: Timestamp,
}

/// The objects of `testdata/healthy.yaml`.
pub(crate) fn healthy() -> Cluster {
    let now: Timestamp = "2030-06-01T12:00:00Z".parse().unwrap();
    let rights = Rights::wanted().unwrap();
    let text = include_str!("../../testdata/healthy.yaml")
        .replace("CLUSTER_RULES", &serde_json::to_string(&rights.cluster).unwrap())
        .replace("NAMESPACE_RULES", &serde_json::to_string(&rights.namespace).unwrap())
        .replace("VERSION", VERSION)
        .replace("OLD", &(now - SignedDuration::from_hours(10)).to_string())
        .replace("NOW", "2030-06-01T12:00:00.000000Z");
    let mut definitions = WANTED.clone();
    for definition in &mut definitions {
        definition.status = serde_json::from_value(json!({"conditions": [
            {"type": "NamesAccepted", "status": "True"}, {"type": "Established", "status": "True"}
        ]}))
        .unwrap();
    }
    Cluster {
        objects: serde_saphyr::from_multiple(&text).unwrap(),
        definitions,
        webhooks: vec![],
        elsewhere: vec![],
        version: "v1.34.4".into(),
        ahead: 0,
        forbidden: vec![],
        now,
    }
}

impl Cluster {
    /// Changes the objects of a kind.
    pub(crate) fn change(mut self, kind: &str, change: impl Fn(&mut Value)) -> Self {
        let mut found = self.objects.iter_mut().filter(|object| object["kind"] == kind).peekable();
        assert!(found.peek().is_some(), "there is no {kind}");
        found.for_each(change);
        self
    }

    /// Sets a field by its JSON pointer.
    pub(crate) fn set(self, kind: &str, pointer: &str, value: &Value) -> Self {
        self.change(kind, |object| {
            let (parent, field) = pointer.rsplit_once('/').unwrap();
            let parent = object.pointer_mut(parent).unwrap_or_else(|| panic!("{kind} has no {parent}"));
            match field.parse::<usize>() {
                Ok(index) => parent[index] = value.clone(),
                Err(_) => parent[field] = value.clone(),
            }
        })
    }

    /// Removes an object.
    pub(crate) fn without(mut self, kind: &str, name: &str) -> Self {
        let before = self.objects.len();
        self.objects.retain(|object| object["kind"] != kind || object["metadata"]["name"] != name);
        assert!(self.objects.len() < before, "there is no {kind} {name}");
        self
    }

    /// Adds an object.
    pub(crate) fn with(mut self, object: Value) -> Self {
        self.objects.push(object);
        self
    }

    /// The user may not read objects of a kind.
    pub(crate) fn forbid(mut self, kind: &'static str) -> Self {
        self.forbidden.push(kind);
        self
    }

    /// Time passes.
    pub(crate) fn later(mut self, seconds: i64) -> Self {
        self.now += SignedDuration::from_secs(seconds);
        self
    }

    fn all<T: DeserializeOwned>(&self, kind: &str, keep: impl Fn(&Value) -> bool) -> Read<Vec<T>> {
        if self.forbidden.contains(&kind) {
            let reason = format!(
                "x is forbidden: User \"eve\" cannot list resource \"{kind}\" in API group \"g\" in the namespace \"liqo\""
            );
            return Err(Unread::Forbidden { what: kind.to_owned(), reason });
        }
        let found = self.objects.iter().filter(|object| object["kind"] == kind && keep(object));
        Ok(found.map(|object| serde_json::from_value(object.clone()).unwrap()).collect())
    }

    fn one<T: DeserializeOwned>(&self, kind: &str, name: &str) -> Read<T> {
        let found = self.all(kind, |object| object["metadata"]["name"] == name)?;
        found.into_iter().next().ok_or_else(|| Unread::Absent { what: format!("{kind} {name}") })
    }

    fn facts(&self) -> Facts {
        let everything = |_: &Value| true;
        let ours = |object: &Value| object["metadata"]["labels"]["app.kubernetes.io/part-of"] == "liqo-rs";
        Facts {
            namespace_name: "liqo".into(),
            server: Server { address: "https://10.0.0.1:6443".into(), version: self.version.clone() },
            namespace: self.one("Namespace", "liqo"),
            definitions: Ok(self.definitions.clone()),
            manager: self.one("Deployment", MANAGER),
            elsewhere: self.elsewhere.clone(),
            pods: self.all("Pod", ours),
            events: self.all("Event", everything),
            lease: self.one("Lease", MANAGER),
            account: self.one("ServiceAccount", MANAGER),
            cluster_role: self.one("ClusterRole", MANAGER),
            cluster_binding: self.one("ClusterRoleBinding", MANAGER),
            role: self.one("Role", MANAGER),
            binding: self.one("RoleBinding", MANAGER),
            identity: self.one("ConfigMap", "clusterid-configmap"),
            key: self.one("Secret", "liqo-identity"),
            network: self.one("ConfigMap", "liqo-network"),
            config: self.one("ClusterConfig", "liqo"),
            policies: self.all("NetworkPolicy", everything),
            flow_schemas: self.all("FlowSchema", ours),
            webhooks: Ok(self.webhooks.clone()),
            peers: self.all("ForeignCluster", everything),
            auth_service: self.one("Service", "liqo-auth"),
            nodes: self.all("Node", everything),
            discovery: self.one("Deployment", "liqo-discovery"),
        }
    }

    fn hello(&self) -> Hello {
        Hello { now: self.now, ahead: Some(self.ahead), user: Some("admin".into()) }
    }

    pub(crate) fn report(&self) -> Report {
        evaluate(&World { facts: &self.facts(), hello: &self.hello(), client: VERSION })
    }

    pub(crate) fn status(&self) -> Status {
        summarise(&self.facts(), &self.hello(), &self.report(), VERSION)
    }

    /// The only thing that is not as it should be; all else must be.
    pub(crate) fn only_problem(&self) -> Finding {
        let report = self.report();
        let problems = report.problems();
        assert_eq!(problems.len(), 1, "{problems:#?}");
        let problem = problems[0].clone();
        assert_eq!(report.healthy, problem.result != Outcome::Failed);
        assert!(!problem.hint.is_empty() || problem.why.contains("not looked at"), "what to do? {problem}");
        assert!(!problem.docs_anchor.is_empty(), "where to read more? {problem}");
        problem
    }
}
