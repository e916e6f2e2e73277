//! A provider as its consumer keeps it: a contract, and our identity there.

#![allow(dead_code, reason = "each test uses a part of it")]

use k8s_openapi::ByteString;
use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use k8s_openapi::api::core::v1::Secret;
use kube::api::{Patch, PatchParams, PostParams};
use kube::{Api, ResourceExt};
use liqo_api::Contract;
use liqo_core::canonical::Digest;
use liqo_core::contract::{Clauses, Enforcement, Party, PublicKey, ServiceLevel, Terms};
use liqo_core::pools::{Pool, Pools};
use liqo_core::{Format, Quantity, Span};
use liqo_sandbox::TestCluster;
use serde_json::json;

use crate::world::{ME, PLACE, eventually, put};

/// Certificate and key, as PEM.
pub(crate) type Certified = (String, String);

/// A client certificate, signed by the cluster.
pub(crate) async fn certify(client: &kube::Client, user: &str) -> Certified {
    let key = rcgen::KeyPair::generate().unwrap();
    let mut parameters = rcgen::CertificateParams::default();
    parameters.distinguished_name = rcgen::DistinguishedName::new();
    parameters.distinguished_name.push(rcgen::DnType::CommonName, user);
    let pem = parameters.serialize_request(&key).unwrap().pem().unwrap();
    let request = json!({
        "metadata": { "generateName": "test-" },
        "spec": {
            "request": ByteString(pem.into_bytes()),
            "signerName": "kubernetes.io/kube-apiserver-client",
            "usages": ["digital signature", "client auth"],
        },
    });
    let requests: Api<CertificateSigningRequest> = Api::all(client.clone());
    let request = serde_json::from_value(request).unwrap();
    let name = requests.create(&PostParams::default(), &request).await.unwrap().name_any();
    let approval =
        json!({ "status": { "conditions": [{ "type": "Approved", "status": "True", "reason": "Test" }] } });
    requests.patch_approval(&name, &PatchParams::default(), &Patch::Merge(approval)).await.unwrap();
    let certificate = eventually("certificate", || async {
        let status = requests.get(&name).await.map_err(|error| error.to_string())?.status.unwrap_or_default();
        status.certificate.ok_or_else(|| format!("{:?}", status.conditions))
    })
    .await;
    (String::from_utf8(certificate.0).unwrap(), key.serialize_pem())
}

/// The certificate of the cluster's administrator.
pub(crate) async fn administrator(cluster: &TestCluster<'_>) -> Certified {
    let user = serde_json::to_value(cluster.config().await.auth_info).unwrap();
    let text = |field: &str| {
        let bytes: ByteString = serde_json::from_value(user[field].clone()).unwrap();
        String::from_utf8(bytes.0).unwrap()
    };
    (text("client-certificate-data"), text("client-key-data"))
}

/// How a cluster is reached, for others.
pub(crate) struct Reached {
    pub(crate) url: String,
    pub(crate) ca: String,
}

impl Reached {
    pub(crate) async fn of(cluster: &TestCluster<'_>) -> Self {
        let config = cluster.config().await;
        let ca = config.root_cert.unwrap_or_default();
        let ca = ca.iter().map(|der| pem("CERTIFICATE", der)).collect();
        Self { url: config.cluster_url.to_string(), ca }
    }
}

fn pem(tag: &str, der: &[u8]) -> String {
    let text = serde_json::to_value(ByteString(der.to_vec())).unwrap();
    let text = text.as_str().unwrap().as_bytes();
    let lines: Vec<_> = text.chunks(64).map(|line| String::from_utf8_lossy(line).into_owned()).collect();
    format!("-----BEGIN {tag}-----\n{}\n-----END {tag}-----\n", lines.join("\n"))
}

/// A provider, as the consumer keeps it.
pub(crate) struct Lender {
    pub(crate) id: String,
    pub(crate) name: String,
    /// Our namespace for it.
    pub(crate) namespace: String,
}

impl Lender {
    pub(crate) fn new(number: usize, name: &str) -> Self {
        Self::at(number, name, &format!("liqo-tenant-{name}"))
    }

    pub(crate) fn at(number: usize, name: &str, namespace: &str) -> Self {
        let id = format!("22222222-0000-4000-8000-{number:012}");
        Self { id, name: name.to_owned(), namespace: namespace.to_owned() }
    }

    fn contract(&self) -> String {
        format!("contract-{}", self.name)
    }

    pub(crate) fn node(&self) -> String {
        format!("liqo-{}", self.name)
    }

    /// Keeps our identity there.
    pub(crate) async fn know(&self, consumer: &kube::Client, at: &Reached, (certificate, key): &Certified) {
        let object = json!({
            "apiVersion": "v1", "kind": "Secret",
            "metadata": {
                "name": format!("liqo-identity-{}", self.name),
                "namespace": self.namespace,
                "labels": { "discovery.liqo.io/cluster-id": self.id, "discovery.liqo.io/local-identity": "true" },
            },
        });
        let mut secret: Secret = serde_json::from_value(object).unwrap();
        let content = [
            ("private-key", key.as_str()),
            ("certificate", certificate),
            ("apiServerUrl", &at.url),
            ("apiServerCa", &at.ca),
            ("namespace", PLACE),
        ];
        secret.string_data = Some(content.map(|(key, value)| (key.to_owned(), value.to_owned())).into());
        let secrets: Api<Secret> = Api::namespaced(consumer.clone(), &self.namespace);
        secrets.create(&PostParams::default(), &secret).await.unwrap();
    }

    /// Has a contract over so much in force.
    pub(crate) async fn lend(&self, consumer: &kube::Client, resources: &[(&str, &str)]) {
        self.agree(consumer, &self.terms(resources, Pools::new())).await;
    }

    /// Has a contract over these pools in force, each with so many cores.
    pub(crate) async fn lend_pools(&self, consumer: &kube::Client, pools: &[(&str, i64)]) {
        let pool = |(name, cores): &(&str, i64)| {
            let amounts = [("cpu", *cores), ("memory", 1 << 30), ("pods", 10)];
            let amount = |amount| Quantity::from_units(amount, Format::DecimalSi);
            let resources =
                amounts.map(|(name, it)| (name.parse().unwrap(), amount(it))).into_iter().collect();
            let labels = [("tier".to_owned(), format!("of-{name}"))].into();
            (name.parse().unwrap(), Pool { resources, labels })
        };
        let pools: Pools = pools.iter().map(pool).collect();
        let sum = liqo_core::pools::sum(&pools);
        let texts: Vec<(String, String)> =
            sum.iter().map(|(name, amount)| (name.to_string(), amount.to_string())).collect();
        let texts: Vec<(&str, &str)> =
            texts.iter().map(|(name, amount)| (name.as_str(), amount.as_str())).collect();
        self.agree(consumer, &self.terms(&texts, pools)).await;
    }

    async fn agree(&self, consumer: &kube::Client, terms: &Terms) {
        let text = String::from_utf8(terms.canonical().to_vec()).unwrap();
        let signature = format!("ed25519:{}", "ab".repeat(64));
        let object = json!({
            "apiVersion": "sharing.liqo.io/v1alpha1", "kind": "Contract",
            "metadata": { "name": self.contract(), "namespace": self.namespace },
            "spec": { "providerID": self.id, "consumerID": ME, "terms": text, "consumerSignature": signature },
            "status": {
                "phase": "Active",
                "agreed": {
                    "terms": text, "consumerSignature": signature, "providerSignature": signature,
                    "time": "2026-01-01T00:00:00Z",
                },
            },
        });
        put(consumer, &object).await;
    }

    fn terms(&self, resources: &[(&str, &str)], pools: Pools) -> Terms {
        let party = |id: &str, name: &str, key| Party {
            id: id.parse().unwrap(),
            name: name.parse().unwrap(),
            key: PublicKey::new([key; 32]),
        };
        let amount = |(name, amount): &(&str, &str)| (name.parse().unwrap(), amount.parse().unwrap());
        Terms::new(Clauses {
            contract: "c-1".parse().unwrap(),
            sequence: 0,
            predecessor: None,
            provider: party(&self.id, &self.name, 1),
            consumer: party(ME, "us", 2),
            resources: resources.iter().map(amount).collect(),
            pools,
            prices: None,
            not_before: "2026-01-01T00:00:00Z".parse().unwrap(),
            not_after: "2126-01-01T00:00:00Z".parse().unwrap(),
            renewal: Some(Span::clamped(86_400)),
            enforcement: Enforcement::Hard,
            service_level: ServiceLevel::default(),
            offer: Digest::of("test", b"offer"),
        })
        .unwrap()
    }

    /// Ends the contract.
    pub(crate) async fn end(&self, consumer: &kube::Client) {
        let contracts: Api<Contract> = Api::namespaced(consumer.clone(), &self.namespace);
        let patch = json!({ "spec": { "ended": { "time": "2026-01-02T00:00:00Z", "reason": "Asked" } } });
        contracts.patch(&self.contract(), &PatchParams::default(), &Patch::Merge(&patch)).await.unwrap();
    }
}
