//! Makes what a caller was granted, one write after the other.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Node, Secret};
use k8s_openapi::api::events::v1::Event;
use k8s_openapi::api::rbac::v1::{ClusterRoleBinding, Role, RoleBinding, Subject};
use kube::api::{ListParams, Patch};
use kube::{Api, ResourceExt};
use liqo_api::credentials::REMOTE_CERTIFICATE_SECRET;
use liqo_api::names::ClusterId;
use liqo_api::{ForeignCluster, annotations, labels};
use liqo_kit::{Key, Shared};
use serde_json::json;

use super::address::{CONTROL_PLANE, api_server_from, api_server_of};
use super::judge::{Grant, Reason, Refusal};
use super::plan::{Facts, Known, Next, going_away, namespace_taken, next};
use crate::index::{Index, PeerBinding, PeerRole, Signing, Tenant, cluster_id};
use crate::objects::{self, CSR_DIGEST, EVENT_NAMESPACE, PEER_ROLE, Report};
use crate::tokens::{AdmittedBy, Record, denied_name, secret_name, text_of};
use crate::wire::{Answer, key_to_base64, to_base64};
use crate::{Clock, Settings};

mod requests;

use requests::{all, applying, deleting, patching, posting, put, within};

/// How long everything but the signing may take.
pub(super) const AROUND: Duration = Duration::from_secs(10);
/// More rounds than there are steps, for those that another writer disturbs.
const MAX_ROUNDS: usize = 48;

/// What is needed to do it.
#[derive(Clone)]
pub(crate) struct Executor {
    pub(crate) client: kube::Client,
    pub(crate) index: Shared<Index>,
    pub(crate) settings: Settings,
}

/// Why a step did not work. Callers learn no more than that; people find it in the log.
#[derive(Debug)]
pub(crate) enum Trouble {
    /// The caller's namespace, with what is left of an earlier peering.
    GoingAway,
    Other(String),
}

impl Trouble {
    pub(super) fn because(words: impl Into<String>) -> Self {
        Self::Other(words.into())
    }
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::GoingAway => f.write_str("its namespace is just being removed"),
            Self::Other(words) => f.write_str(words),
        }
    }
}

enum Stop {
    Refused(Refusal),
    Trouble(Trouble),
}

impl From<Refusal> for Stop {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

impl From<Trouble> for Stop {
    fn from(trouble: Trouble) -> Self {
        match trouble {
            Trouble::GoingAway => Self::Refused(going_away()),
            trouble @ Trouble::Other(_) => Self::Trouble(trouble),
        }
    }
}

/// What a caller gets, and whether it is new here.
pub(crate) struct Done {
    pub(crate) answer: Answer,
    pub(crate) cluster: Option<Known>,
    pub(crate) first_time: bool,
}

impl Executor {
    /// Does all that is missing and returns the answer.
    pub(crate) async fn execute(&self, grant: &Grant) -> Result<Done, Refusal> {
        let patience = self.settings.limits.certificate + AROUND;
        let done = match tokio::time::timeout(patience, self.run(grant)).await {
            Ok(done) => done,
            Err(_) => Err(Trouble::because(format!("it took longer than {} s", patience.as_secs())).into()),
        };
        done.map_err(|stop| match stop {
            Stop::Refused(refusal) => refusal,
            Stop::Trouble(trouble) => {
                tracing::warn!(peer = %grant.peer.id, %trouble, "cannot give a certificate");
                Refusal::new(Reason::Failed, format!("this cluster cannot give a certificate now: {trouble}"))
            }
        })
    }

    async fn run(&self, grant: &Grant) -> Result<Done, Stop> {
        // First what may fail without leaving anything behind.
        let (api_server_url, api_server_ca) = self.api_server().await?;
        let mut facts = self.facts(grant).await?;
        let first_time = facts.tenant.as_ref().is_none_or(|tenant| tenant.admitted_by.is_none());
        for _ in 0..MAX_ROUNDS {
            let step = next(&facts, grant)?;
            tracing::debug!(peer = %grant.peer.id, step = step.word(), "missing");
            if let Next::Done(certificate) = step {
                let namespace = facts.tenant.map(|tenant| tenant.name).unwrap_or_default();
                let certificate = to_base64(certificate);
                let answer = Answer { namespace, certificate, api_server_url, api_server_ca };
                return Ok(Done { answer, cluster: facts.cluster, first_time });
            }
            self.perform(step, grant, &mut facts).await?;
        }
        Err(Trouble::because("others keep changing what it needs").into())
    }

    /// The URL of our API server and the authority that vouches for it, as peers are told.
    async fn api_server(&self) -> Result<(String, Option<String>), Trouble> {
        let (configured, ca) = {
            let index = self.index.read();
            let configured = self.settings.api_server.clone().or_else(|| index.api_server.clone());
            (configured, index.root_ca.clone())
        };
        let url = match configured {
            Some(setting) => api_server_from(&setting).map_err(Trouble::Other)?,
            None => {
                let chosen = ListParams::default().labels(CONTROL_PLANE);
                let nodes = within(Api::<Node>::all(self.client.clone()).list(&chosen)).await?;
                api_server_of(&nodes.items).ok_or_else(|| {
                    Trouble::because(
                        "the address of its API server is not known; its administrator can set apiServer.address",
                    )
                })?
            }
        };
        if self.settings.public_api_server {
            return Ok((url, None));
        }
        let ca = ca.ok_or_else(|| Trouble::because("the authority of its API server is not known"))?;
        Ok((url, Some(to_base64(ca))))
    }

    /// What there is, as the watches told; what is not watched is read.
    async fn facts(&self, grant: &Grant) -> Result<Facts, Trouble> {
        let mut facts = {
            let index = self.index.read();
            let tenant = index.tenant_of(&grant.peer.id).cloned();
            let key = tenant.as_ref().map(|tenant| Key::namespaced(&tenant.name, PEER_ROLE));
            let csr = Key::cluster(&objects::csr_name(&grant.peer, &grant.csr));
            Facts {
                token: match &grant.by {
                    AdmittedBy::Token(id) => index.book.peers.get(id).cloned(),
                    AdmittedBy::Own | AdmittedBy::Open => None,
                },
                cluster: index.cluster_of(&grant.peer.id).map(known),
                role: key.as_ref().and_then(|key| index.roles.get(key)).cloned(),
                binding: key.as_ref().and_then(|key| index.bindings.get(key)).cloned(),
                denied: index.denied.get(grant.peer.id.as_str()).map(|denied| denied.uid.clone()),
                signing: index.requests.get(&csr).cloned(),
                tenant,
                ..Facts::default()
            }
        };
        if let Some(tenant) = &facts.tenant {
            let kept = self.namespaced::<Secret>(&tenant.name);
            let kept = within(kept.get_opt(REMOTE_CERTIFICATE_SECRET)).await?;
            facts.issued = kept.and_then(|secret| text_of(&secret, CSR_DIGEST));
        }
        Ok(facts)
    }

    fn namespaced<K>(&self, namespace: &str) -> Api<K>
    where
        K: kube::Resource<DynamicType = (), Scope = kube::core::NamespaceResourceScope>,
    {
        Api::namespaced(self.client.clone(), namespace)
    }

    fn cluster_wide<K: kube::Resource<DynamicType = ()>>(&self) -> Api<K> {
        Api::all(self.client.clone())
    }

    async fn perform(&self, step: Next, grant: &Grant, facts: &mut Facts) -> Result<(), Stop> {
        let namespace = facts.tenant.as_ref().map(|tenant| tenant.name.clone()).unwrap_or_default();
        match step {
            Next::Done(_) => {}
            Next::CheckUser => self.check_user(&grant.peer.id, facts).await?,
            Next::UseToken { resource_version } => self.use_token(grant, &resource_version, facts).await?,
            Next::CreateTenant => self.create_tenant(grant, facts).await?,
            Next::MarkTenant { resource_version } => {
                let mut patch = json!({ "metadata": { "annotations": self.tenant_annotations(grant) } });
                patch["metadata"]["annotations"][annotations::PUT_OUT] = serde_json::Value::Null;
                patch["metadata"]["resourceVersion"] = json!(resource_version);
                let namespaces = self.cluster_wide::<Namespace>();
                let written = put(namespaces.patch(&namespace, &patching(), &Patch::Merge(patch))).await?;
                self.take_tenant(written, &namespace, facts).await?;
            }
            Next::CreateCluster => self.create_cluster(grant, facts).await?,
            Next::CreateRole | Next::FixRole => {
                let role = objects::peer_role(&grant.peer.id, &namespace);
                let roles = self.namespaced::<Role>(&namespace);
                let written = within(roles.patch(PEER_ROLE, &applying(), &Patch::Apply(&role))).await?;
                facts.role = PeerRole::read(&written);
            }
            Next::CreateBinding => {
                let binding = objects::peer_role_binding(&grant.peer.id, &namespace);
                let bindings = self.namespaced::<RoleBinding>(&namespace);
                let written = match put(bindings.create(&posting(), &binding)).await? {
                    Some(binding) => Some(binding),
                    None => within(bindings.get_opt(PEER_ROLE)).await?,
                };
                facts.binding = written.as_ref().and_then(PeerBinding::read);
            }
            Next::DeleteBinding { uid } => {
                let bindings = self.namespaced::<RoleBinding>(&namespace);
                put(bindings.delete(PEER_ROLE, &deleting(&uid))).await?;
                let left = within(bindings.get_opt(PEER_ROLE)).await?;
                facts.binding = left.as_ref().and_then(PeerBinding::read);
            }
            Next::DeleteDenied { uid } => {
                let maps = self.namespaced::<ConfigMap>(self.settings.namespace.as_str());
                put(maps.delete(&denied_name(&grant.peer.id), &deleting(&uid))).await?;
                facts.denied = None;
            }
            Next::CreateSigning => self.create_signing(grant, facts).await?,
            Next::Approve => self.approve(grant, facts).await?,
            Next::AwaitCertificate => facts.signing = Some(self.await_certificate(grant).await?),
            Next::KeepCertificate(certificate) => {
                let secret = objects::remote_certificate(&grant.peer, &namespace, &grant.csr, &certificate);
                let secrets = self.namespaced::<Secret>(&namespace);
                let patch = Patch::Apply(&secret);
                within(secrets.patch(REMOTE_CERTIFICATE_SECRET, &applying(), &patch)).await?;
                facts.kept = true;
            }
        }
        Ok(())
    }

    /// A certificate makes its holder the user that it names. If somebody gave rights to a user of that name, the caller would
    /// get them.
    async fn check_user(&self, peer: &ClusterId, facts: &mut Facts) -> Result<(), Stop> {
        let (bindings, cluster_wide) =
            (self.cluster_wide::<RoleBinding>(), self.cluster_wide::<ClusterRoleBinding>());
        let (bindings, cluster_wide) = tokio::try_join!(all(&bindings), all(&cluster_wide))?;
        let is_ours = |binding: &&RoleBinding| {
            binding.name_any() == PEER_ROLE && binding.labels().contains_key(labels::CLUSTER_ID)
        };
        let in_namespaces = bindings.iter().filter(|binding| !is_ours(binding));
        let mut subjects = in_namespaces
            .map(|binding| binding.subjects.as_deref())
            .chain(cluster_wide.iter().map(|binding| binding.subjects.as_deref()));
        if subjects.any(|subjects| names_user(subjects, peer)) {
            tracing::warn!(%peer, "a cluster with the name of a user is refused");
            let text = format!("{peer} is the name of a user of this cluster; another cluster ID is needed");
            return Err(Refusal::new(Reason::UserName, text).into());
        }
        facts.user_checked = true;
        Ok(())
    }

    async fn use_token(&self, grant: &Grant, version: &str, facts: &mut Facts) -> Result<(), Trouble> {
        let AdmittedBy::Token(id) = &grant.by else { return Ok(()) };
        let secrets = self.namespaced::<Secret>(self.settings.namespace.as_str());
        let mut patch = Record::use_patch(&grant.peer.id, self.clock().now());
        patch["metadata"]["resourceVersion"] = json!(version);
        let written = put(secrets.patch(&secret_name(id), &patching(), &Patch::Merge(patch))).await?;
        let secret = match written {
            Some(secret) => Some(secret),
            None => within(secrets.get_opt(&secret_name(id))).await?,
        };
        facts.token = secret.as_ref().and_then(Record::read);
        Ok(())
    }

    /// What is kept of a token, if there is one.
    pub(crate) async fn read_token(&self, id: &str) -> Option<Record> {
        let secrets = self.namespaced::<Secret>(self.settings.namespace.as_str());
        let found = within(secrets.get_opt(&secret_name(id))).await;
        found
            .inspect_err(|trouble| tracing::warn!(%trouble, "cannot read a token"))
            .ok()?
            .as_ref()
            .and_then(Record::read)
    }

    fn clock(&self) -> &Clock {
        &self.settings.clock
    }

    fn tenant_annotations(&self, grant: &Grant) -> BTreeMap<String, String> {
        let by = (annotations::ADMITTED_BY.to_owned(), grant.by.as_str().to_owned());
        let key = grant.key.as_ref();
        let key = key.map(|key| (annotations::PEER_PUBLIC_KEY.to_owned(), key_to_base64(key)));
        [by].into_iter().chain(key).collect()
    }

    async fn create_tenant(&self, grant: &Grant, facts: &mut Facts) -> Result<(), Stop> {
        let namespace = objects::tenant_namespace(&grant.peer, self.tenant_annotations(grant));
        let namespaces = self.cluster_wide::<Namespace>();
        let written = put(namespaces.create(&posting(), &namespace)).await?;
        self.take_tenant(written, &namespace.name_any(), facts).await
    }

    /// Takes over what was written, or what is there instead.
    async fn take_tenant(
        &self,
        written: Option<Namespace>,
        name: &str,
        facts: &mut Facts,
    ) -> Result<(), Stop> {
        let found = match written {
            Some(namespace) => Some(namespace),
            None => within(self.cluster_wide::<Namespace>().get_opt(name)).await?,
        };
        facts.tenant = match found {
            None => None,
            Some(namespace) => Some(Tenant::read(&namespace).ok_or_else(|| {
                let text = format!(
                    "the namespace {name} exists here already and was not made for a peer; it must be removed first"
                );
                Refusal::new(Reason::NamespaceTaken, text)
            })?),
        };
        Ok(())
    }

    /// Named after the cluster, or if another cluster has that name, with digits behind it.
    async fn create_cluster(&self, grant: &Grant, facts: &mut Facts) -> Result<(), Stop> {
        let clusters = self.cluster_wide::<ForeignCluster>();
        for name in [grant.peer.name.to_string(), grant.peer.unique_name()] {
            let cluster = objects::incoming_cluster(&grant.peer, &name);
            let found = match put(clusters.create(&posting(), &cluster)).await? {
                Some(cluster) => Some(cluster),
                None => within(clusters.get_opt(&name)).await?,
            };
            let ours = |cluster: &ForeignCluster| cluster_id(cluster) == Some(grant.peer.id.as_str());
            if let Some(cluster) = found.filter(ours) {
                facts.cluster = Some(known(&cluster));
                return Ok(());
            }
        }
        Err(namespace_taken(&grant.peer.unique_name(), &grant.peer.id).into())
    }

    async fn create_signing(&self, grant: &Grant, facts: &mut Facts) -> Result<(), Trouble> {
        let lifetime = self.settings.certificate_lifetime;
        let request = objects::signing_request(&grant.peer, &grant.csr, lifetime);
        let requests = self.cluster_wide::<CertificateSigningRequest>();
        let found = match put(requests.create(&posting(), &request)).await? {
            Some(request) => Some(request),
            None => within(requests.get_opt(&request.name_any())).await?,
        };
        // One that is older and about something else is not ours to approve.
        let same = |found: &CertificateSigningRequest| found.spec.request == request.spec.request;
        facts.signing = found.filter(same).as_ref().map(Signing::read);
        Ok(())
    }

    async fn approve(&self, grant: &Grant, facts: &mut Facts) -> Result<(), Trouble> {
        let name = objects::csr_name(&grant.peer, &grant.csr);
        let approval = json!({ "status": { "conditions": [{
            "type": "Approved",
            "status": "True",
            "reason": "LiqoPeer",
            "message": format!("the cluster {} came in and asks for its own name", grant.peer.id),
            "lastUpdateTime": self.clock().now(),
        }] } });
        let requests = self.cluster_wide::<CertificateSigningRequest>();
        let written = put(requests.patch_approval(&name, &patching(), &Patch::Merge(approval))).await?;
        let found = match written {
            Some(request) => Some(request),
            None => within(requests.get_opt(&name)).await?,
        };
        facts.signing = found.as_ref().map(Signing::read);
        Ok(())
    }

    /// Waits for the watch to show the certificate.
    async fn await_certificate(&self, grant: &Grant) -> Result<Signing, Trouble> {
        let patience = self.settings.limits.certificate;
        tokio::time::timeout(patience, self.signed(grant)).await.map_err(|_| {
            Trouble::because(format!(
                "Kubernetes did not sign within {} s; the controller manager of its control plane must run the signer {}",
                patience.as_secs(),
                objects::SIGNER
            ))
        })
    }

    async fn signed(&self, grant: &Grant) -> Signing {
        let key = Key::cluster(&objects::csr_name(&grant.peer, &grant.csr));
        let mut changes = self.index.subscribe();
        loop {
            changes.borrow_and_update();
            let signing = self.index.read().requests.get(&key).cloned();
            if let Some(signing) = signing
                && (signing.certificate.is_some() || signing.failed.is_some())
            {
                return signing;
            }
            if changes.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }

    /// Makes an event. That it cannot be made changes nothing.
    pub(crate) async fn report(&self, report: &Report) {
        let events = self.namespaced::<Event>(EVENT_NAMESPACE);
        let event = objects::event(report, &self.settings.pod, self.clock().now());
        if let Err(trouble) = put(events.create(&posting(), &event)).await {
            tracing::warn!(%trouble, reason = report.reason, cluster = report.cluster, "cannot make an event");
        }
    }

    /// Notes on the tenant namespace that a claim was refused; the leader tells it on the ForeignCluster.
    pub(crate) async fn note_claim(&self, namespace: &str, annotation: String) {
        let patch = json!({ "metadata": { "annotations": { crate::index::CLAIM_REFUSED: annotation } } });
        let namespaces = self.cluster_wide::<Namespace>();
        if let Err(trouble) = put(namespaces.patch(namespace, &patching(), &Patch::Merge(patch))).await {
            tracing::warn!(%trouble, namespace, "cannot note that a claim was refused");
        }
    }
}

fn known(cluster: &ForeignCluster) -> Known {
    Known {
        name: cluster.name_any(),
        uid: cluster.uid().unwrap_or_default(),
        deleting: cluster.metadata.deletion_timestamp.is_some(),
    }
}

fn names_user(subjects: Option<&[Subject]>, peer: &ClusterId) -> bool {
    subjects.unwrap_or_default().iter().any(|subject| subject.kind == "User" && subject.name == peer.as_str())
}
