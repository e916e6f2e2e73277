use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::Secret;
use liqo_api::names::Identity;
use liqo_kit::Index as _;
use rustls::RootCertStore;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::ServerCertVerifier;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use serde_json::Value;

use super::review::{Answer, Request, answer};
use super::*;
use crate::index::Index;
use crate::settings::Settings;

/// The leader, the Secret and the API server's configuration, in memory.
struct House {
    settings: Settings,
    now: Timestamp,
    index: Index,
    secret: Value,
    version: u64,
}

impl House {
    fn new() -> Self {
        let settings = Settings::new("liqo".parse().unwrap(), "manager-0");
        let now = Timestamp::from_second(1_800_000_000).unwrap();
        Self { settings, now, index: Index::default(), secret: Value::Null, version: 0 }
    }

    fn configured(mut self) -> Self {
        self.configure(Vec::new());
        self
    }

    fn configure(&mut self, bundle: Vec<u8>) {
        let configured = Configured { bundles: vec![("mutate-pods.liqo.io".to_owned(), bundle)] };
        self.index.apply(&Key::cluster(CONFIGURATION), configured);
    }

    fn plan(&self) -> Vec<Step> {
        let me = Identity { id: "a".parse().unwrap(), name: "a".parse().unwrap() };
        let view = View { index: &self.index, me: &me, settings: &self.settings, now: self.now };
        plan(&view).steps
    }

    /// Carries out the first step; returns what it is called.
    fn step(&mut self) -> Option<&'static str> {
        let step = self.plan().into_iter().next()?;
        match &step.deed {
            Deed::CreateCertificate => {
                self.secret = serde_json::to_value(create(&self.settings, self.now).unwrap()).unwrap();
            }
            Deed::ReplaceCertificate { .. } => self.merge(&replace(&self.settings, self.now).unwrap()),
            Deed::StageCertificate { authorities, .. } => {
                self.merge(&stage(&self.settings, authorities, self.now).unwrap());
            }
            Deed::Merge { patch, .. } => self.merge(patch),
            Deed::Apply(object) => {
                let bundle = object["webhooks"][0]["clientConfig"]["caBundle"].as_str().unwrap();
                self.configure(STANDARD.decode(bundle).unwrap());
                return Some(step.what);
            }
            other => panic!("{other:?}"),
        }
        self.see();
        Some(step.what)
    }

    fn merge(&mut self, patch: &Value) {
        for (key, value) in patch["data"].as_object().unwrap() {
            if value.is_null() {
                self.secret["data"].as_object_mut().unwrap().remove(key);
            } else {
                self.secret["data"][key] = value.clone();
            }
        }
    }

    fn see(&mut self) {
        self.version += 1;
        self.secret["metadata"]["resourceVersion"] = json!(self.version.to_string());
        let secret: Secret = serde_json::from_value(self.secret.clone()).unwrap();
        self.index.apply(&Key::namespaced("liqo", SERVICE), Kept::read(&secret));
    }

    /// Whether the API server believes what the webhook shows now.
    fn is_believed(&self) -> bool {
        let kept = self.index.kept.as_ref().unwrap();
        let trusted = &self.index.configured.as_ref().unwrap().bundles[0].1;
        let mut roots = RootCertStore::empty();
        for authority in CertificateDer::pem_slice_iter(trusted) {
            roots.add(authority.unwrap()).unwrap();
        }
        let provider = rustls::crypto::aws_lc_rs::default_provider();
        let verifier =
            WebPkiServerVerifier::builder_with_provider(roots.into(), provider.into()).build().unwrap();
        let shown = CertificateDer::from_pem_slice(&kept.shown.as_ref().unwrap().chain).unwrap();
        let name = ServerName::try_from("liqo-webhook.liqo.svc").unwrap();
        let seconds = u64::try_from(self.now.as_second()).unwrap();
        let now = UnixTime::since_unix_epoch(std::time::Duration::from_secs(seconds));
        verifier.verify_server_cert(&shown, &[], &name, &[], now).is_ok()
    }
}

#[test]
fn a_certificate_is_made_once_and_the_api_server_told_whom_to_trust() {
    let mut house = House::new().configured();
    assert_eq!([house.step(), house.step(), house.step()], [Some("certify"), Some("trust"), None]);
    assert!(house.is_believed());
}

#[test]
fn a_renewal_is_never_shown_before_it_is_trusted() {
    let mut house = House::new().configured();
    while house.step().is_some() {}
    house.now += SignedDuration::from_hours(250 * 24);
    let mut steps = Vec::new();
    for year in 0..5 {
        while let Some(step) = house.step() {
            steps.push(step);
            assert!(house.is_believed(), "after {steps:?} in year {year}");
        }
        assert_eq!(steps, ["renew", "trust", "show"], "in year {year}");
        steps.clear();
        // What is trusted does not grow for ever.
        let authorities = &house.index.kept.as_ref().unwrap().authorities;
        assert_eq!(CertificateDer::pem_slice_iter(authorities).count(), 2);
        house.now += SignedDuration::from_hours(250 * 24);
    }
}

#[test]
fn what_cannot_be_used_is_replaced() {
    let mut house = House::new().configured();
    while house.step().is_some() {}
    house.secret["data"]["tls.crt"] = json!("bm90IGEgY2VydGlmaWNhdGU=");
    house.see();
    assert_eq!([house.step(), house.step(), house.step()], [Some("certify"), Some("trust"), None]);
    assert!(house.is_believed());
}

#[test]
fn without_a_configuration_there_is_nobody_to_tell() {
    let mut house = House::new();
    assert_eq!([house.step(), house.step()], [Some("certify"), None]);
}

fn question(namespace: &str) -> Request {
    let object = serde_json::from_value(json!({ "metadata": {}, "spec": {} })).unwrap();
    Request { uid: "1".to_owned(), namespace: namespace.to_owned(), object: Some(object) }
}

fn offloaded(spec: &Value) -> Index {
    let mut index = Index::default();
    let object = json!({
        "apiVersion": "offloading.liqo.io/v1alpha1", "kind": "NamespaceOffloading",
        "metadata": { "name": "offloading", "namespace": "shop" }, "spec": spec,
    });
    let object: liqo_api::NamespaceOffloading = serde_json::from_value(object).unwrap();
    index.apply(&Key::namespaced("shop", "offloading"), object);
    index
}

fn refusal(answer: &Answer) -> (u16, &str) {
    match answer {
        Answer::Refused { code, message } => (*code, message),
        Answer::Placed(patch) => panic!("placed: {patch:?}"),
    }
}

#[test]
fn whoever_is_not_sure_refuses() {
    let index = offloaded(&json!({}));
    assert_eq!(answer(&index, true, &question("shop")).word(), "placed");
    let early = answer(&index, false, &question("shop"));
    assert_eq!(refusal(&early).0, 503);
    let unknown = answer(&index, true, &question("bank"));
    assert!(refusal(&unknown).1.contains("namespace bank is marked as offloaded"));
    let invalid = offloaded(&json!({ "clusterSelector": { "nodeSelectorTerms": [{}] } }));
    assert_eq!(refusal(&answer(&invalid, true, &question("shop"))).0, 422);
    let empty = Request { object: None, ..question("shop") };
    assert_eq!(refusal(&answer(&index, true, &empty)).0, 400);
}

#[test]
fn answers_read_as_the_api_server_wants_them() {
    let review = Answer::Placed(vec![json!({ "op": "add" })]).into_review("7");
    assert_eq!((&review["kind"], &review["response"]["uid"]), (&json!("AdmissionReview"), &json!("7")));
    assert_eq!(review["response"]["patchType"], "JSONPatch");
    let patch = STANDARD.decode(review["response"]["patch"].as_str().unwrap()).unwrap();
    assert_eq!(patch, br#"[{"op":"add"}]"#);
    let nothing = Answer::Placed(Vec::new()).into_review("7");
    assert_eq!(nothing["response"], json!({ "uid": "7", "allowed": true }));
    let refused = Answer::Refused { code: 503, message: "later".to_owned() }.into_review("7");
    assert_eq!(refused["response"]["status"], json!({ "code": 503, "message": "later" }));
}

#[test]
fn a_namespace_that_comes_home_places_nothing() {
    let mut index = offloaded(&json!({ "podOffloadingStrategy": "Remote" }));
    let mut offloading = index.offloadings["shop"].clone();
    offloading.metadata.deletion_timestamp =
        Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(Timestamp::UNIX_EPOCH));
    index.apply(&Key::namespaced("shop", "offloading"), offloading);
    assert_eq!(answer(&index, true, &question("shop")).word(), "untouched");
}
