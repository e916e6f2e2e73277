//! Reading everything, and taking the secrets out of it.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::{Node, Pod, Secret};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Api;
use kube::api::{DynamicObject, ListParams};
use serde::Serialize;
use serde_json::{Value, json};

use super::kinds::{self, Kind, Place};
use super::{Bundle, LARGEST_LOG, nodes};
use crate::check::{self, World};
use crate::facts::Server;
use crate::installation::{self, Installation, Unread};
use crate::logs::{LogRequest, Remark, Source, Told};
use crate::redact::{Redactor, secret_values};
use crate::status::summarise;
use crate::version::{Build, Versions};

/// Lines of each log; a bug is seldom further away.
const LOG_LINES: u32 = 10_000;

/// Objects of a kind, as they were read.
struct Found {
    kind: Kind,
    objects: Result<Vec<Value>, Unread>,
}

impl Installation {
    /// Collects everything, `progress` being told what is read.
    pub async fn bundle(&self, server: &Server, progress: &mut dyn FnMut(&str)) -> Bundle {
        progress("what runs, and what is wrong");
        let (facts, hello) = tokio::join!(Box::pin(self.facts(server)), self.hello());
        let client = Build::this();
        let report = check::evaluate(&World::new(&facts, &hello));
        let status = summarise(&facts, &hello, &report, client.version);
        let versions = Versions { client, cluster: Some(self.versions(&server.version).await) };

        progress("objects");
        let definitions = facts.definitions.clone().unwrap_or_default();
        let kinds = kinds::built_in().into_iter().chain(kinds::defined(&definitions));
        let found = futures::future::join_all(kinds.map(|kind| self.find(kind))).await;
        let redactor = redactor(&found, status.cluster.as_ref().map(|it| (it.name.as_str(), it.id.as_str())));

        let mut bundle = Bundle::new(hello.now, &server.version, &self.namespace);
        bundle.json(&redactor, "versions.json", "versions of liqoctl, the manager and Kubernetes", &versions);
        bundle.json(&redactor, "status.json", "what liqoctl status tells", &status);
        bundle.json(&redactor, "check.json", "what liqoctl check tells", &report);
        let lines: Vec<String> =
            report.sections.iter().flat_map(|it| &it.findings).map(ToString::to_string).collect();
        bundle.add("check.txt", "the same for people", redactor.text(&(lines.join("\n") + "\n")));
        match &facts.definitions {
            Ok(definitions) => bundle.yaml(
                &redactor,
                "kinds.yaml",
                "our kinds, in short",
                definitions.iter().map(kind_summary),
            ),
            Err(why) => bundle.problem("customresourcedefinitions", why),
        }
        let namespace = facts.namespace.iter().filter_map(|it| serde_json::to_value(it).ok());
        bundle.yaml(&redactor, "namespace.yaml", "the namespace of liqo", namespace);
        self.add_nodes(&mut bundle, &redactor).await;
        for Found { kind, objects } in found {
            bundle.add_objects(&redactor, &kind, objects);
        }
        progress("logs");
        self.add_logs(&mut bundle, &redactor, facts.pods.as_deref().unwrap_or_default()).await;
        bundle
    }

    async fn find(&self, kind: Kind) -> Found {
        let client = self.client.clone();
        let api: Api<DynamicObject> = match kind.place {
            Place::Namespace => Api::namespaced_with(client, &self.namespace, &kind.resource),
            Place::Labelled | Place::Everywhere => Api::all_with(client, &kind.resource),
        };
        let parameters = ListParams::default().labels(kind.place.labels());
        let listed = installation::list(&api, &parameters, &kind.resource.plural).await;
        let resource = &kind.resource;
        let objects =
            listed.map(|objects| objects.into_iter().filter_map(|object| typed(object, resource)).collect());
        Found { kind, objects }
    }

    async fn add_nodes(&self, bundle: &mut Bundle, redactor: &Redactor) {
        match self.list_global::<Node>("").await {
            Ok(found) => {
                bundle.yaml(redactor, "nodes.yaml", "nodes, in short", found.iter().map(nodes::summary));
            }
            Err(why) => bundle.problem("nodes", &why),
        }
    }

    async fn add_logs(&self, bundle: &mut Bundle, redactor: &Redactor, pods: &[Pod]) {
        let restarted = |pod: &str| {
            let status = pods
                .iter()
                .find(|it| it.metadata.name.as_deref() == Some(pod))
                .and_then(|it| it.status.as_ref());
            let containers = status.and_then(|status| status.container_statuses.as_ref());
            containers.into_iter().flatten().any(|container| container.restart_count > 0)
        };
        for pod in pods.iter().filter_map(|pod| pod.metadata.name.as_deref()) {
            self.add_log(bundle, redactor, pod, false).await;
            if restarted(pod) {
                self.add_log(bundle, redactor, pod, true).await;
            }
        }
    }

    /// The logs of a pod's containers, each as a file.
    async fn add_log(&self, bundle: &mut Bundle, redactor: &Redactor, pod: &str, previous: bool) {
        let request = LogRequest {
            component: Some(pod.to_owned()),
            previous,
            tail: Some(LOG_LINES),
            ..LogRequest::default()
        };
        let mut logs: Vec<(Source, String)> = Vec::new();
        let mut problems = Vec::new();
        let read = self.logs(&request, |told: &Told| {
            match told {
                Told::Line(line) => {
                    let text = format!("{} {}\n", line.time, line.text);
                    match logs.iter_mut().find(|(source, _)| *source == line.source) {
                        Some((_, log)) => keep_end(log, &text),
                        None => logs.push((line.source.clone(), text)),
                    }
                }
                Told::Remark(Remark::Unreadable { source, why }) => {
                    problems.push((format!("log of {}/{}", source.pod, source.container), why.clone()));
                }
                Told::Sources(_) | Told::Remark(Remark::StandbyLeftOut { .. }) => {}
            }
            Ok(())
        });
        let failed = read.await.err();
        let (suffix, which) = if previous { (".previous", ", before its last restart") } else { ("", "") };
        for (source, log) in logs {
            let path = format!("logs/{}/{}{suffix}.log", source.pod, source.container);
            bundle.add(path, format!("the end of the log{which}"), redactor.log(&log));
        }
        if let Some(error) = failed.filter(|_| problems.is_empty()) {
            bundle.problem(format!("log of {pod}{which}"), &error);
        }
        for (what, why) in problems {
            bundle.problem(format!("{what}{which}"), &redactor.text(&why));
        }
    }
}

/// Appends, and drops the beginning when it becomes too long.
pub(super) fn keep_end(log: &mut String, more: &str) {
    log.push_str(more);
    if log.len() > 2 * LARGEST_LOG {
        cut_beginning(log);
    }
}

fn cut_beginning(log: &mut String) {
    let surplus = log.len().saturating_sub(LARGEST_LOG);
    let at = log[log.ceil_char_boundary(surplus)..]
        .find('\n')
        .map_or(log.len(), |end| log.ceil_char_boundary(surplus) + end + 1);
    log.drain(..at);
}

/// Kind and version are left out in lists.
fn typed(object: DynamicObject, resource: &kube::api::ApiResource) -> Option<Value> {
    let mut value = serde_json::to_value(object).ok()?;
    value["apiVersion"] = Value::String(resource.api_version.clone());
    value["kind"] = Value::String(resource.kind.clone());
    Some(value)
}

/// What the Secrets hold is secret wherever else it is; what objects are called is not.
fn redactor(found: &[Found], cluster: Option<(&str, &str)>) -> Redactor {
    let mut public: BTreeSet<String> = BTreeSet::new();
    public.extend(cluster.into_iter().flat_map(|(name, id)| [name.to_owned(), id.to_owned()]));
    let mut secrets: Vec<Secret> = Vec::new();
    for object in found.iter().filter_map(|found| found.objects.as_ref().ok()).flatten() {
        let metadata = &object["metadata"];
        let labels = metadata["labels"].as_object().into_iter().flat_map(|labels| labels.values());
        let names = [&metadata["name"], &metadata["namespace"], &object["kind"]];
        public.extend(names.into_iter().chain(labels).filter_map(Value::as_str).map(str::to_owned));
        if object["kind"] == "Secret" {
            secrets.extend(serde_json::from_value(object.clone()));
        }
    }
    Redactor::new(&secret_values(&secrets, &public))
}

fn kind_summary(definition: &CustomResourceDefinition) -> Value {
    let versions = definition.spec.versions.iter();
    let versions: Vec<Value> =
        versions.map(|it| json!({"name": it.name, "served": it.served, "storage": it.storage})).collect();
    let status = definition.status.as_ref();
    json!({
        "name": definition.metadata.name, "labels": definition.metadata.labels, "versions": versions,
        "conditions": status.and_then(|status| status.conditions.as_ref()),
        "storedVersions": status.map(|status| &status.stored_versions),
        "deletionTimestamp": definition.metadata.deletion_timestamp,
    })
}

impl Bundle {
    fn add_objects(&mut self, redactor: &Redactor, kind: &Kind, objects: Result<Vec<Value>, Unread>) {
        let resource = &kind.resource;
        let name = match resource.group.as_str() {
            "" => resource.plural.clone(),
            group => format!("{}.{group}", resource.plural),
        };
        match objects {
            Ok(objects) if objects.is_empty() => {}
            Ok(objects) => {
                let about = format!("{} objects of kind {}", objects.len(), resource.kind);
                self.yaml(redactor, &format!("objects/{name}.yaml"), &about, objects.into_iter());
            }
            // Kinds that this cluster does not know have no objects.
            Err(why) if why.is_absent() => {}
            Err(why) => self.problem(name, &why),
        }
    }

    fn json(&mut self, redactor: &Redactor, path: &str, about: &str, value: &impl Serialize) {
        let text = serde_json::to_value(value).and_then(|mut value| {
            redactor.object(&mut value);
            serde_json::to_string_pretty(&value)
        });
        match text {
            Ok(text) => self.add(path, about, text + "\n"),
            Err(error) => self.problem(path, &error),
        }
    }

    fn yaml(&mut self, redactor: &Redactor, path: &str, about: &str, values: impl Iterator<Item = Value>) {
        let mut text = String::new();
        for mut value in values {
            redactor.object(&mut value);
            match serde_saphyr::to_string(&value) {
                Ok(one) => text += &format!("---\n{one}"),
                Err(error) => self.problem(format!("an object of {path}"), &error),
            }
        }
        self.add(path, about, text);
    }
}
