use std::sync::Arc;

use liqo_api::ForeignCluster;
use liqo_kit::{Index, Key};
use serde_json::{Value, json};

use super::super::writes;
use super::*;
use crate::book::Answer;

mod properties;
mod vouched;

/// The objects, who was found, and the time; steps are made as an API server makes them.
struct Model {
    objects: BTreeMap<String, Value>,
    claims: Vec<Claim>,
    incumbents: Incumbents,
    made: BTreeSet<String>,
    lan: Active,
    wan: Active,
    now: i64,
    versions: u64,
}

fn fingerprint(certificate: &str) -> Fingerprint {
    Fingerprint::of_certificate(certificate.as_bytes())
}

/// A cluster `id` of name `edge` at this URL, which shows this certificate.
fn claim(id: &str, url: &str, certificate: &str) -> Claim {
    Claim {
        source: Source::Lan,
        answer: Answer {
            identity: Identity { id: id.parse().unwrap(), name: "edge".parse().unwrap() },
            url: url.to_owned(),
            fingerprint: fingerprint(certificate),
        },
        is_pinned: true,
        ttl: 90,
        seen: Timestamp::UNIX_EPOCH,
        order: 0,
        withdrawn: None,
    }
}

fn by_dns(domain: &str, claim: Claim) -> Claim {
    Claim { source: Source::Wan(Arc::from(domain)), ..claim }
}

/// As in `kubectl patch --type merge`.
fn merge(object: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else { return object.clone_from(patch) };
    if !object.is_object() {
        *object = json!({});
    }
    for (key, value) in patch {
        match value {
            Value::Null => drop(object.as_object_mut().unwrap().remove(key)),
            value => merge(&mut object[key.as_str()], value),
        }
    }
}

impl Model {
    fn new() -> Self {
        Self {
            objects: BTreeMap::new(),
            claims: Vec::new(),
            incumbents: Incumbents::new(),
            made: BTreeSet::new(),
            lan: Active::Listening,
            wan: Active::Listening,
            now: 1_000_000,
            versions: 0,
        }
    }

    /// These clusters are seen now.
    fn seeing(mut self, claims: impl IntoIterator<Item = Claim>) -> Self {
        self.see(claims);
        self
    }

    fn see(&mut self, claims: impl IntoIterator<Item = Claim>) {
        let seen = Timestamp::from_second(self.now).unwrap();
        let claims = claims.into_iter().enumerate();
        self.claims = claims.map(|(order, claim)| Claim { seen, order: order as u64, ..claim }).collect();
    }

    fn with(mut self, name: &str, kind: &str, spec: &Value) -> Self {
        let labels = json!({ "discovery.liqo.io/discovery-type": kind });
        self.put(name, json!({ "metadata": { "name": name, "labels": labels }, "spec": spec }));
        self
    }

    fn put(&mut self, name: &str, mut object: Value) {
        self.versions += 1;
        let created = Timestamp::from_second(self.now).unwrap().to_string();
        let meta = &mut object["metadata"];
        if meta["uid"].is_null() {
            meta["uid"] = format!("uid-{}", self.versions).into();
            meta["creationTimestamp"] = created.into();
        }
        meta["resourceVersion"] = self.versions.to_string().into();
        self.objects.insert(name.to_owned(), object);
    }

    fn change(&mut self, name: &str, patch: &Value) {
        let mut object = self.objects[name].clone();
        merge(&mut object, patch);
        self.put(name, object);
    }

    fn engage(&mut self, name: &str) {
        let conditions = json!([{ "type": "OutgoingPeering", "status": "Established" }]);
        self.change(name, &json!({ "status": { "peeringConditions": conditions } }));
    }

    fn peers(&self) -> Peers {
        let mut peers = Peers::default();
        for (name, object) in &self.objects {
            let object: ForeignCluster = serde_json::from_value(object.clone()).unwrap();
            peers.apply(&Key::cluster(name), Peer::read(&object));
        }
        peers.synced();
        peers
    }

    fn plan(&self) -> (Vec<Step>, Vec<Report>) {
        plan(World {
            own: &"own".parse().unwrap(),
            claims: &self.claims,
            peers: &self.peers(),
            incumbents: &self.incumbents,
            made: &self.made,
            lan: self.lan,
            wan: self.wan,
            now: Timestamp::from_second(self.now).unwrap(),
        })
    }

    /// Makes one step; returns it in short.
    fn make(&mut self, step: &Step) -> String {
        let name = step.name().to_owned();
        match step {
            Step::Create { identity, found, .. } => {
                assert!(!self.objects.contains_key(&name), "{name} exists");
                let object = writes::foreign_cluster(&name, identity.clone(), found);
                self.put(&name, serde_json::to_value(object).unwrap());
                format!("create {name}")
            }
            Step::Refresh { found, .. } => {
                self.change(&name, &writes::patch(found));
                format!("refresh {name}")
            }
            Step::Mark { peer } => {
                let now = Timestamp::from_second(self.now).unwrap();
                self.change(&name, &writes::mark(peer, now));
                format!("mark {name}")
            }
            Step::Delete { .. } => {
                self.objects.remove(&name);
                format!("delete {name}")
            }
            Step::Ask { .. } => format!("ask {name}"),
        }
    }

    /// Plans and makes everything that is planned.
    fn run(&mut self) -> Vec<String> {
        let steps = self.plan().0;
        steps.iter().map(|step| self.make(step)).collect()
    }

    fn pass(&mut self, seconds: i64) -> Vec<String> {
        self.now += seconds;
        self.run()
    }

    fn reasons(&self) -> Vec<&'static str> {
        self.plan().1.iter().map(|report| report.reason).collect()
    }

    fn field(&self, name: &str, path: &str) -> String {
        let value = self.objects[name].pointer(path).cloned().unwrap_or_default();
        value.as_str().map_or_else(|| value.to_string(), str::to_owned)
    }

    /// The first one was asked and showed this certificate, or did not answer so many times.
    fn asked(&mut self, name: &str, shown: Option<&str>, deaths: u32) {
        let url = self.field(name, "/spec/foreignAuthUrl");
        let asked = Timestamp::from_second(self.now).unwrap();
        self.incumbents
            .insert(name.to_owned(), Incumbent { url, shown: shown.map(fingerprint), deaths, asked });
    }
}

const URL: &str = "https://10.0.0.1:31520";
const OTHER_URL: &str = "https://10.0.0.2:31520";
/// The unique name of a cluster `edge` with the ID `a`.
const NAME: &str = "edge-ca9781";
const LABELS: &str = "/metadata/labels/discovery.liqo.io~1";

#[test]
fn a_found_cluster_gets_a_foreign_cluster_as_documented() {
    let mut model = Model::new().seeing([claim("a", URL, "one")]);
    assert_eq!(model.run(), [format!("create {NAME}")]);
    let get = |path: &str| model.field(NAME, path);
    assert_eq!(get(&format!("{LABELS}cluster-id")), "a");
    assert_eq!(get(&format!("{LABELS}discovery-type")), "LAN");
    assert_eq!(get(&format!("{LABELS}searchdomain")), "null");
    assert_eq!(get("/metadata/annotations/LastUpdate"), "1000000");
    assert_eq!(get("/spec/clusterIdentity"), r#"{"clusterID":"a","clusterName":"edge"}"#);
    assert_eq!(get("/spec/foreignAuthUrl"), URL);
    assert_eq!(get("/spec/authFingerprint"), fingerprint("one").to_string());
    assert_eq!((get("/spec/ttl"), get("/spec/outgoingPeeringEnabled")), ("90".to_owned(), "Auto".to_owned()));
    assert!(model.run().is_empty(), "nothing is left to do");
}

#[test]
fn a_cluster_found_by_dns_carries_its_search_domain() {
    let mut model = Model::new().seeing([by_dns("example", claim("a", URL, "one"))]);
    model.run();
    assert_eq!(model.field(NAME, &format!("{LABELS}discovery-type")), "WAN");
    assert_eq!(model.field(NAME, &format!("{LABELS}searchdomain")), "example");
}

#[test]
fn a_record_without_fingerprint_pins_nothing() {
    let mut model = Model::new().seeing([Claim { is_pinned: false, ..claim("a", URL, "one") }]);
    model.run();
    assert_eq!(model.field(NAME, "/spec/authFingerprint"), "null");
    assert!(model.run().is_empty());
    model.see([claim("a", URL, "one")]);
    assert_eq!(model.run(), [format!("refresh {NAME}")], "the peer was upgraded and tells it now");
    assert_eq!(model.field(NAME, "/spec/authFingerprint"), fingerprint("one").to_string());
}

#[test]
fn it_is_refreshed_when_half_its_lifetime_has_passed() {
    let mut model = Model::new().seeing([claim("a", URL, "one")]);
    model.run();
    for _ in 0..44 {
        model.now += 1;
        model.see([claim("a", URL, "one")]);
        assert!(model.run().is_empty());
    }
    model.now += 1;
    model.see([claim("a", URL, "one")]);
    assert_eq!(model.run(), [format!("refresh {NAME}")]);
    assert_eq!(model.field(NAME, "/metadata/annotations/LastUpdate"), "1000045");
}

#[test]
fn what_people_changed_stays() {
    let mut model = Model::new().seeing([claim("a", URL, "one")]);
    model.run();
    let theirs =
        json!({ "spec": { "outgoingPeeringEnabled": "No" }, "metadata": { "labels": { "tier": "gold" } } });
    model.change(NAME, &theirs);
    model.now += 60;
    model.see([claim("a", URL, "one")]);
    assert_eq!(model.run(), [format!("refresh {NAME}")]);
    assert_eq!(model.field(NAME, "/spec/outgoingPeeringEnabled"), "No");
    assert_eq!(model.field(NAME, "/metadata/labels/tier"), "gold");
}

#[test]
fn who_is_not_heard_of_is_deleted_at_the_end_of_its_lifetime() {
    let mut model = Model::new().seeing([claim("a", URL, "one")]);
    model.run();
    model.claims.clear();
    assert!(model.pass(89).is_empty());
    assert_eq!(model.pass(1), [format!("delete {NAME}")]);
}

#[test]
fn an_active_peering_keeps_it_and_it_is_marked_until_it_is_heard_of_again() {
    let mut model = Model::new().seeing([claim("a", URL, "one")]);
    model.run();
    model.engage(NAME);
    model.claims.clear();
    model.now += 90;
    assert_eq!(model.reasons(), ["NoLongerAdvertised"]);
    assert_eq!(model.run(), [format!("mark {NAME}")]);
    assert_eq!(
        model.field(NAME, "/metadata/annotations/discovery.liqo.io~1unadvertised-since"),
        "1970-01-12T13:46:40Z"
    );
    assert!(model.pass(1000).is_empty() && model.reasons().is_empty(), "it is told once");
    model.see([claim("a", URL, "one")]);
    assert_eq!(model.run(), [format!("refresh {NAME}")]);
    assert_eq!(model.field(NAME, "/metadata/annotations/discovery.liqo.io~1unadvertised-since"), "null");
}

#[test]
fn after_a_goodbye_it_goes_soon_unless_it_comes_back() {
    let gone = |seconds| Claim { withdrawn: Some(Duration::from_secs(seconds)), ..claim("a", URL, "one") };
    let mut model = Model::new().seeing([claim("a", URL, "one")]);
    model.run();
    model.see([gone(4)]);
    assert!(model.run().is_empty());
    model.see([claim("a", URL, "one")]);
    assert!(model.run().is_empty(), "it restarted");
    model.see([gone(5)]);
    assert_eq!(model.run(), [format!("delete {NAME}")]);
    assert!(model.run().is_empty(), "who said goodbye is not made again");
    // Another record of the same cluster still stands: it speaks IPv4 and IPv6, say.
    model.see([claim("a", URL, "one")]);
    model.run();
    model.see([gone(5), claim("a", URL, "one")]);
    assert!(model.run().is_empty());
}

#[test]
fn nothing_ends_before_there_was_time_to_listen_or_before_the_objects_are_known() {
    let mut model = Model::new().seeing([claim("a", URL, "one")]);
    model.run();
    model.claims.clear();
    model.lan = Active::Warming;
    assert!(model.pass(1000).is_empty());
    model.lan = Active::Listening;
    let world = World {
        own: &"own".parse().unwrap(),
        claims: &model.claims,
        peers: &Peers::default(),
        incumbents: &model.incumbents,
        made: &model.made,
        lan: model.lan,
        wan: model.wan,
        now: Timestamp::from_second(model.now).unwrap(),
    };
    assert!(plan(world).0.is_empty());
    assert_eq!(model.run(), [format!("delete {NAME}")]);
}

#[test]
fn what_another_process_looks_after_is_left_a_minute_longer() {
    let mut model = Model::new().seeing([claim("a", URL, "one")]);
    model.run();
    model.claims.clear();
    model.lan = Active::Elsewhere;
    assert!(model.pass(149).is_empty());
    assert_eq!(model.pass(1), [format!("delete {NAME}")]);
}

#[test]
fn what_people_and_peers_made_is_never_touched_nor_made_twice() {
    for kind in ["Manual", "IncomingPeering", "anything"] {
        let known = json!({ "clusterIdentity": { "clusterID": "a" }, "foreignAuthUrl": URL, "ttl": 1 });
        let mut model = Model::new().with("mine", kind, &known).seeing([claim("a", URL, "one")]);
        assert!(model.run().is_empty(), "{kind}");
        // Its ID is not known yet, but it is at the same place.
        let unknown = json!({ "foreignAuthUrl": format!("{URL}/") });
        let mut model = Model::new().with("mine", kind, &unknown).seeing([claim("a", URL, "one")]);
        assert!(model.run().is_empty(), "{kind}");
        model.claims.clear();
        assert!(model.pass(100_000).is_empty(), "{kind}");
    }
}

#[test]
fn clusters_of_equal_name_get_an_object_each() {
    let mut model = Model::new().seeing([claim("a", URL, "one"), claim("b", OTHER_URL, "two")]);
    assert_eq!(model.run(), [format!("create {NAME}"), "create edge-3e23e8".to_owned()]);
    assert!(model.run().is_empty() && model.reasons().is_empty());
}

#[test]
fn a_taken_name_keeps_nobody_out() {
    // Somebody tried out IDs until the unique name was that of `a`.
    let taken = json!({ "clusterIdentity": { "clusterID": "squatter" }, "foreignAuthUrl": OTHER_URL });
    let mut model = Model::new().with(NAME, "Manual", &taken).seeing([claim("a", URL, "one")]);
    assert_eq!(model.run(), ["create edge-ca978112ca1bbdca"]);
    assert!(model.run().is_empty());
}

#[test]
fn our_own_cluster_is_not_found() {
    assert!(Model::new().seeing([claim("own", URL, "one")]).run().is_empty());
}

#[test]
fn a_second_claim_of_an_id_is_refused_while_the_first_is_alive() {
    let (first, second) = (claim("a", URL, "one"), claim("a", OTHER_URL, "two"));
    let mut model = Model::new().seeing([first.clone(), second.clone()]);
    assert_eq!(model.run(), [format!("create {NAME}")]);
    assert!(model.run().is_empty());
    assert_eq!(model.reasons(), ["ClusterIDTaken"]);
    assert!(model.plan().1[0].message.contains(OTHER_URL));
    // In the other order, too: the object decides who was first.
    model.see([second, first]);
    assert!(model.run().is_empty());
    assert_eq!(model.reasons(), ["ClusterIDTaken"]);
    assert_eq!(model.field(NAME, "/spec/foreignAuthUrl"), URL);
}

#[test]
fn who_holds_an_id_and_is_not_heard_of_is_asked_before_another_takes_its_place() {
    let mut model = Model::new().seeing([claim("a", URL, "one")]);
    model.run();
    model.see([claim("a", OTHER_URL, "two")]);
    assert_eq!(model.run(), [format!("ask {NAME}")]);
    model.asked(NAME, Some("one"), 0);
    assert!(model.run().is_empty());
    assert_eq!(model.reasons(), ["ClusterIDTaken"]);
    // It answers no more: asked again, and only the second silence counts.
    model.now += 60;
    model.asked(NAME, None, 1);
    assert!(model.run().is_empty() && model.reasons().is_empty());
    assert_eq!(model.pass(5), [format!("ask {NAME}")]);
    model.asked(NAME, None, 2);
    assert_eq!(model.run(), [format!("refresh {NAME}")]);
    assert_eq!(model.field(NAME, "/spec/foreignAuthUrl"), OTHER_URL);
    assert_eq!(model.field(NAME, "/spec/authFingerprint"), fingerprint("two").to_string());
    assert!(model.run().is_empty());
}

#[test]
fn nobody_takes_the_place_of_a_cluster_that_is_trusted() {
    let mut model = Model::new().seeing([claim("a", URL, "one")]);
    model.run();
    model.engage(NAME);
    model.see([claim("a", OTHER_URL, "two")]);
    model.run();
    model.asked(NAME, None, 5);
    assert!(model.run().is_empty());
    assert_eq!(model.field(NAME, "/spec/foreignAuthUrl"), URL);
    // Nor does it keep the object fresh.
    assert_eq!(model.pass(100), [format!("ask {NAME}"), format!("mark {NAME}")]);
}

#[test]
fn the_same_cluster_at_another_place_is_followed_when_it_left_the_first() {
    let mut model = Model::new().seeing([claim("a", URL, "one")]);
    model.run();
    model.engage(NAME);
    // It has the same certificate: this is no second cluster.
    model.see([claim("a", OTHER_URL, "one")]);
    assert_eq!(model.run(), [format!("ask {NAME}")]);
    model.asked(NAME, Some("one"), 0);
    assert!(model.run().is_empty() && model.reasons().is_empty());
    assert_eq!(model.field(NAME, "/spec/foreignAuthUrl"), URL, "both answer: it stays");
    model.asked(NAME, None, 2);
    assert_eq!(model.run(), [format!("refresh {NAME}")]);
    assert_eq!(model.field(NAME, "/spec/foreignAuthUrl"), OTHER_URL);
}

#[test]
fn a_cluster_with_two_addresses_is_one_cluster() {
    let both = || [claim("a", URL, "one"), claim("a", OTHER_URL, "one")];
    let mut model = Model::new().seeing(both());
    assert_eq!(model.run(), [format!("create {NAME}")]);
    for _ in 0..10 {
        model.now += 20;
        model.see(both());
        model.run();
        assert_eq!(model.field(NAME, "/spec/foreignAuthUrl"), URL);
        assert!(model.reasons().is_empty());
    }
}

#[test]
fn a_new_certificate_is_taken_over_only_while_nothing_depends_on_the_former() {
    let mut model = Model::new().seeing([claim("a", URL, "one")]);
    model.run();
    model.see([claim("a", URL, "two")]);
    assert_eq!(model.run(), [format!("refresh {NAME}")]);
    assert_eq!(model.field(NAME, "/spec/authFingerprint"), fingerprint("two").to_string());
    let trusted = json!([{ "type": "AuthenticationStatus", "status": "Established" }]);
    model.change(NAME, &json!({ "status": { "peeringConditions": trusted } }));
    model.see([claim("a", URL, "three")]);
    assert!(model.run().is_empty());
    assert_eq!(model.reasons(), ["CertificateChanged"]);
}

#[test]
fn a_claim_against_a_cluster_made_by_hand_is_reported_too() {
    let known =
        json!({ "clusterIdentity": { "clusterID": "a" }, "foreignAuthUrl": "https://auth.example.com:443/" });
    let mut model = Model::new().with("mine", "Manual", &known);
    model.see([claim("a", OTHER_URL, "two")]);
    assert_eq!(model.run(), ["ask mine"]);
    model.asked("mine", Some("one"), 0);
    assert_eq!((model.run().len(), model.reasons()), (0, vec!["ClusterIDTaken"]));
    model.asked("mine", Some("two"), 0);
    assert_eq!(
        (model.run().len(), model.reasons().len()),
        (0, 0),
        "it is the same cluster under another name"
    );
    model.asked("mine", None, 7);
    assert_eq!((model.run().len(), model.reasons().len()), (0, 0));
}

#[test]
fn another_source_takes_over_what_its_own_has_let_go() {
    let mut model = Model::new().seeing([claim("a", URL, "one"), by_dns("example", claim("a", URL, "one"))]);
    assert_eq!(model.run(), [format!("create {NAME}")]);
    model.see([by_dns("example", claim("a", URL, "one"))]);
    assert!(model.run().is_empty(), "it was found on the local network");
    model.now += 90;
    model.see([by_dns("example", claim("a", URL, "one"))]);
    assert_eq!(model.run(), [format!("refresh {NAME}")]);
    assert_eq!(model.field(NAME, &format!("{LABELS}discovery-type")), "WAN");
    assert_eq!(model.field(NAME, &format!("{LABELS}searchdomain")), "example");
}

#[test]
fn lifetimes_that_a_cache_counts_down_cause_no_writes() {
    let seen = |ttl| Claim { ttl, ..by_dns("example", claim("a", URL, "one")) };
    let mut model = Model::new().seeing([seen(300)]);
    model.run();
    for ttl in [280, 150, 80, 300, 90] {
        model.see([seen(ttl)]);
        assert!(model.run().is_empty(), "{ttl}");
    }
    model.see([seen(600)]);
    assert_eq!(model.run(), [format!("refresh {NAME}")]);
    model.see([seen(60)]);
    assert_eq!(model.run(), [format!("refresh {NAME}")]);
    assert_eq!(model.field(NAME, "/spec/ttl"), "60");
}

#[test]
fn a_clock_that_jumps_neither_kills_nor_preserves() {
    let mut model = Model::new().seeing([claim("a", URL, "one")]);
    model.run();
    // Who is heard of is refreshed, however long ago that seems.
    model.now += 1_000_000;
    model.see([claim("a", URL, "one")]);
    assert_eq!(model.run(), [format!("refresh {NAME}")]);
    // An hour back: what is advertised goes on, what is not ends.
    model.now -= 3600;
    model.see([claim("a", URL, "one")]);
    assert_eq!(model.run(), [format!("refresh {NAME}")]);
    model.claims.clear();
    assert_eq!(model.pass(90), [format!("delete {NAME}")]);
}

#[test]
fn what_is_made_is_told_once_it_is_there() {
    let mut model = Model::new().seeing([by_dns("example", claim("a", URL, "one"))]);
    model.made.insert(NAME.to_owned());
    assert!(model.reasons().is_empty());
    model.run();
    assert_eq!(model.reasons(), ["Discovered"]);
    assert_eq!(
        model.plan().1[0].message,
        format!("Found by DNS, through the SearchDomain example, at {URL}.")
    );
}

#[test]
fn an_object_that_is_being_deleted_is_left_alone_and_not_replaced_before_it_is_gone() {
    let mut model = Model::new().seeing([claim("a", URL, "one")]);
    model.run();
    model.change(NAME, &json!({ "metadata": { "deletionTimestamp": "2026-01-01T00:00:00Z" } }));
    model.now += 1000;
    model.see([claim("a", URL, "one")]);
    assert!(model.run().is_empty());
    model.objects.clear();
    assert_eq!(model.run(), [format!("create {NAME}")]);
}

#[test]
fn of_two_objects_for_one_id_the_younger_ends_with_its_lifetime() {
    let mut model = Model::new().seeing([claim("a", URL, "one")]);
    model.run();
    let mut twin = model.objects[NAME].clone();
    merge(&mut twin, &json!({ "metadata": { "name": "twin", "uid": null } }));
    model.now += 1;
    model.put("twin", twin);
    model.now += 90;
    model.see([claim("a", URL, "one")]);
    assert_eq!(model.run(), [format!("refresh {NAME}"), "delete twin".to_owned()]);
}
