use liqo_api::{ClusterConfigStatus, ClusterIdentity, WorkingMode};

use super::*;
use crate::identity::Wanted;
use crate::index::Kept;

mod properties;

/// A cluster with some of the objects.
pub(super) struct World {
    pub(super) index: Index,
    pub(super) settings: Settings,
}

fn now() -> Timestamp {
    "2026-01-02T03:04:05Z".parse().unwrap()
}

pub(super) fn settings() -> Settings {
    Settings {
        namespace: "liqo".parse().unwrap(),
        wanted: Wanted::default(),
        version: "0.1.0".to_owned(),
        capabilities: vec!["identity".to_owned()],
        pod: "manager-0".to_owned(),
    }
}

pub(super) fn identity(id: &str, name: &str) -> Arc<Identity> {
    let wanted = Wanted { id: Some(id.parse().unwrap()), name: Some(name.parse().unwrap()) };
    Arc::new(Identity::generate(&wanted).unwrap())
}

fn published(identity: &Identity) -> Published {
    Published {
        uid: "uid-of-the-config-map".to_owned(),
        resource_version: "7".to_owned(),
        identity: Some(identity.cluster_identity()),
        fingerprint: Some(identity.public_key().fingerprint()),
        labelled: true,
    }
}

impl World {
    /// Everything was seen, and nothing is there.
    fn empty() -> Self {
        let mut index = Index::default();
        index.secret.synced = true;
        index.config_map.synced = true;
        index.cluster_config.synced = true;
        Self { index, settings: settings() }
    }

    fn secret(mut self, identity: &Arc<Identity>) -> Self {
        self.index.secret.object =
            Some(Kept { uid: "uid-of-the-secret".to_owned(), identity: Ok(Arc::clone(identity)) });
        self
    }

    fn broken_secret(mut self) -> Self {
        self.index.secret.object = Some(Kept {
            uid: "uid-of-the-secret".to_owned(),
            identity: Err("its key private-key is missing".to_owned()),
        });
        self
    }

    fn config_map(mut self, published: Published) -> Self {
        self.index.config_map.object = Some(published);
        self
    }

    fn cluster_config(mut self, status: ClusterConfigStatus) -> Self {
        self.index.cluster_config.object =
            Some(Told { resource_version: "9".to_owned(), generation: Some(1), status });
        self
    }

    fn wanted(mut self, id: Option<&str>, name: Option<&str>) -> Self {
        self.settings.wanted =
            Wanted { id: id.map(|id| id.parse().unwrap()), name: name.map(|name| name.parse().unwrap()) };
        self
    }

    fn plan(&self) -> Vec<Step> {
        plan(&self.index, &self.settings, now())
    }

    /// The plan in words.
    fn steps(&self) -> Vec<String> {
        self.plan().iter().map(in_words).collect()
    }

    fn refusal(&self) -> Refusal {
        match judge(&self.index, &self.settings, now()) {
            Verdict::Refused(refusal) => refusal,
            other => panic!("not refused: {other:?}"),
        }
    }

    /// Does what the plan says until nothing is left; returns the steps.
    fn settle(mut self) -> (Self, Vec<String>) {
        let mut steps = Vec::new();
        while let Some(step) = self.plan().into_iter().next() {
            steps.push(in_words(&step));
            assert!(steps.len() < 10, "no end: {steps:?}");
            self = self.done(step);
        }
        (self, steps)
    }

    fn done(mut self, step: Step) -> Self {
        match step {
            Step::CreateSecret => {
                let identity = Arc::new(Identity::generate(&self.settings.wanted).unwrap());
                self.secret(&identity)
            }
            Step::CreateConfigMap(identity) => self.config_map(published(&identity)),
            Step::MarkConfigMap { fingerprint, .. } => {
                let marked = self.index.config_map.object.as_mut().unwrap();
                marked.fingerprint = Some(fingerprint);
                marked.labelled = true;
                self
            }
            Step::CreateClusterConfig => self.cluster_config(ClusterConfigStatus::default()),
            Step::WriteStatus { status, .. } => self.cluster_config(*status),
            Step::Report(report) => {
                self.index.reported.insert(report.name);
                self
            }
        }
    }

    fn status(&self) -> &ClusterConfigStatus {
        &self.index.cluster_config.object.as_ref().unwrap().status
    }

    /// A condition as `status reason`.
    fn condition(&self, aspect: &str) -> String {
        let found = self.status().conditions.iter().find(|condition| condition.type_ == aspect);
        found.map(|it| format!("{} {}", it.status, it.reason)).unwrap_or_default()
    }
}

fn in_words(step: &Step) -> String {
    match step {
        Step::CreateSecret => "create Secret".to_owned(),
        Step::CreateConfigMap(identity) => format!("create ConfigMap {}", identity.name),
        Step::MarkConfigMap { .. } => "mark ConfigMap".to_owned(),
        Step::CreateClusterConfig => "create ClusterConfig".to_owned(),
        Step::WriteStatus { .. } => "write status".to_owned(),
        Step::Report(report) => format!("report {}", report.reason),
    }
}

#[test]
fn nothing_is_decided_before_secret_and_config_map_were_seen() {
    let identity = identity("a-1", "a");
    for (secret, config_map) in [(false, false), (true, false), (false, true)] {
        let mut world = World::empty().config_map(published(&identity));
        world.index.secret.synced = secret;
        world.index.config_map.synced = config_map;
        assert!(world.plan().is_empty(), "{secret} {config_map}");
        assert!(matches!(judge(&world.index, &world.settings, now()), Verdict::Unknown));
    }
}

#[test]
fn the_first_start_makes_the_secret_then_the_config_map_then_the_cluster_config_and_its_status() {
    let (world, steps) = World::empty().wanted(None, Some("milan")).settle();
    let expected = ["create Secret", "create ConfigMap milan", "create ClusterConfig", "write status"]
        .map(str::to_owned);
    assert_eq!(steps, expected);
    let kept = world.index.secret.object.as_ref().unwrap().identity.as_ref().unwrap();
    let status = world.status();
    assert_eq!(status.cluster_identity, Some(kept.cluster_identity()));
    assert_eq!(status.public_key, Some(kept.public_key().to_pem()));
    assert_eq!(status.fingerprint, Some(kept.public_key().fingerprint()));
    assert_eq!(status.working_mode, Some(WorkingMode::Autonomous));
    assert_eq!((status.version.as_deref(), status.leader.as_deref()), (Some("0.1.0"), Some("manager-0")));
    assert_eq!(status.capabilities, ["identity"]);
    assert_eq!(world.condition("IdentityReady"), "True Established");
    assert_eq!(world.condition("Ready"), "True Operating");
    assert!(status.conditions.iter().all(|condition| condition.observed_generation == Some(1)));
}

#[test]
fn without_the_definitions_the_identity_is_made_all_the_same() {
    let mut world = World::empty();
    world.index.cluster_config.synced = false;
    let (_, steps) = world.settle();
    assert_eq!(steps.len(), 2, "{steps:?}");
}

#[test]
fn a_lost_config_map_is_made_again_from_the_secret_also_when_the_flags_are_refused() {
    let identity = identity("a-1", "a");
    let world = World::empty().secret(&identity);
    assert_eq!(world.steps(), ["create ConfigMap a"]);
    let world = World::empty().secret(&identity).wanted(None, Some("b"));
    assert_eq!(world.steps(), ["create ConfigMap a"]);
}

#[test]
fn a_config_map_without_labels_or_fingerprint_gets_them() {
    let identity = identity("a-1", "a");
    let bare = Published { fingerprint: None, ..published(&identity) };
    assert_eq!(World::empty().secret(&identity).config_map(bare).steps(), ["mark ConfigMap"]);
    let unlabelled = Published { labelled: false, ..published(&identity) };
    assert_eq!(World::empty().secret(&identity).config_map(unlabelled).steps(), ["mark ConfigMap"]);
}

/// Every world in which no identity may be made, changed or taken back.
fn refused_worlds() -> Vec<(&'static str, World, Reason)> {
    refused_worlds_of(&identity("a-1", "a"))
}

fn refused_worlds_of(a: &Arc<Identity>) -> Vec<(&'static str, World, Reason)> {
    let other_name = Published { identity: Some(id_and_name("a-1", "b")), ..published(a) };
    let other_id = Published { identity: Some(id_and_name("a-2", "a")), ..published(a) };
    let no_identity = Published { identity: None, ..published(a) };
    let other_key = published(&identity("a-1", "a"));
    let both = || World::empty().secret(a).config_map(published(a));
    vec![
        ("the Secret is lost", World::empty().config_map(published(a)), Reason::KeyLost),
        (
            "the Secret is lost, and the flags name the same cluster",
            World::empty().config_map(published(a)).wanted(Some("a-1"), Some("a")),
            Reason::KeyLost,
        ),
        ("the ConfigMap is not ours", World::empty().config_map(no_identity.clone()), Reason::KeyLost),
        ("the key is broken", World::empty().broken_secret().config_map(published(a)), Reason::KeyUnreadable),
        ("the key is broken, the ConfigMap lost", World::empty().broken_secret(), Reason::KeyUnreadable),
        ("the name was edited", World::empty().secret(a).config_map(other_name), Reason::Mismatch),
        ("the ID was edited", World::empty().secret(a).config_map(other_id), Reason::Mismatch),
        ("the ConfigMap was emptied", World::empty().secret(a).config_map(no_identity), Reason::Mismatch),
        ("the key is another", World::empty().secret(a).config_map(other_key), Reason::Mismatch),
        ("another name is wanted", both().wanted(None, Some("b")), Reason::IdentityChangeRefused),
        ("another ID is wanted", both().wanted(Some("a-2"), None), Reason::IdentityChangeRefused),
        ("both are wanted", both().wanted(Some("a-2"), Some("b")), Reason::IdentityChangeRefused),
    ]
}

fn id_and_name(id: &str, name: &str) -> ClusterIdentity {
    ClusterIdentity { cluster_id: id.to_owned(), cluster_name: name.to_owned() }
}

#[test]
fn what_is_lost_broken_or_contradictory_is_told_and_nothing_else_is_written() {
    for (why, world, reason) in refused_worlds() {
        assert_eq!(world.refusal().reason, reason, "{why}");
        let (world, steps) = world.settle();
        let expected = [
            "create ClusterConfig".to_owned(),
            "write status".to_owned(),
            format!("report {}", reason.as_str()),
        ];
        assert_eq!(steps, expected, "{why}");
        assert_eq!(world.condition("IdentityReady"), format!("False {}", reason.as_str()), "{why}");
        assert_eq!(world.condition("Ready"), "False IdentityNotReady", "{why}");
    }
}

#[test]
fn every_refusal_says_what_to_do_as_commands() {
    for (why, world, reason) in refused_worlds() {
        let message = world.refusal().message;
        let removes = match reason {
            Reason::KeyLost => "kubectl -n liqo delete configmap clusterid-configmap",
            _ => {
                "kubectl -n liqo delete --ignore-not-found secret/liqo-identity configmap/clusterid-configmap"
            }
        };
        assert!(message.contains(removes), "{why}: {message}");
        let restores = message.contains("from a backup: kubectl -n liqo ");
        assert_eq!(restores, reason != Reason::IdentityChangeRefused, "{why}: {message}");
        assert!(message.len() < 1024, "{why}: too long for an event: {}", message.len());
    }
}

#[test]
fn a_refusal_is_over_once_the_objects_are_repaired() {
    let a = identity("a-1", "a");
    for (why, world, _) in refused_worlds_of(&a) {
        let (world, _) = world.settle();
        let world = world.secret(&a).config_map(published(&a)).wanted(None, None);
        let (world, steps) = world.settle();
        assert_eq!(steps, ["write status"], "{why}");
        assert_eq!(world.condition("Ready"), "True Operating", "{why}");
    }
}

#[test]
fn flags_that_name_the_cluster_as_it_is_change_nothing() {
    let a = identity("a-1", "a");
    let (world, _) = World::empty().secret(&a).settle();
    let world = world.wanted(Some("a-1"), Some("a"));
    assert_eq!(world.steps(), Vec::<String>::new());
}

#[test]
fn a_second_look_later_writes_nothing() {
    for (why, world, _) in refused_worlds() {
        let (world, _) = world.settle();
        let later = plan(&world.index, &world.settings, "2030-01-01T00:00:00Z".parse().unwrap());
        assert!(later.is_empty(), "{why}: {later:?}");
    }
    let (world, _) = World::empty().settle();
    let later = plan(&world.index, &world.settings, "2030-01-01T00:00:00Z".parse().unwrap());
    assert!(later.is_empty(), "{later:?}");
}

#[test]
fn an_event_is_tied_to_the_object_it_is_about() {
    for (why, mut world, _) in refused_worlds() {
        world = world.settle().0;
        world.index.reported.clear();
        let Some(Step::Report(report)) = world.plan().pop() else { panic!("{why}: nothing to report") };
        let published = world.index.config_map.object.is_some();
        let expected = if published { "uid-of-the-config-map" } else { "uid-of-the-secret" };
        assert_eq!(report.uid, expected, "{why}");
    }
}

#[test]
fn a_restart_reports_the_same_event_under_the_same_name_and_the_next_occasion_under_another() {
    let a = identity("a-1", "a");
    let name = |world: &World| match world.plan().as_slice() {
        [Step::Report(report)] => report.name.clone(),
        other => panic!("{other:?}"),
    };
    let (mut world, _) = World::empty().config_map(published(&a)).settle();
    world.index.reported.clear();
    let first = name(&world);
    assert_eq!(name(&world), first);
    // Repaired, and lost again a second later.
    let (repaired, _) = world.secret(&a).settle();
    let mut lost = repaired;
    lost.index.secret.object = None;
    let later: Timestamp = "2026-01-02T03:04:06Z".parse().unwrap();
    let step = plan(&lost.index, &lost.settings, later).remove(0);
    assert_ne!(name(&lost.done(step)), first);
}

#[test]
fn what_others_write_into_the_status_is_repaired() {
    let (world, _) = World::empty().settle();
    let good = world.status().clone();
    type Edit = fn(&mut ClusterConfigStatus);
    let edits: [(&str, Edit); 8] = [
        ("identity", |status| status.cluster_identity = Some(id_and_name("x", "y"))),
        ("no identity", |status| status.cluster_identity = None),
        ("public key", |status| status.public_key = None),
        ("fingerprint gone", |status| status.fingerprint = None),
        ("version", |status| status.version = Some("9.9.9".to_owned())),
        ("capabilities", |status| status.capabilities.push("flying".to_owned())),
        ("leader", |status| status.leader = None),
        ("conditions", |status| status.conditions.clear()),
    ];
    let mut world = world;
    for (what, edit) in edits {
        let mut status = good.clone();
        edit(&mut status);
        let (repaired, steps) = world.cluster_config(status).settle();
        assert_eq!(steps, ["write status"], "{what}");
        assert_eq!(repaired.status(), &good, "{what}");
        world = repaired;
    }
}

#[test]
fn a_condition_of_someone_else_is_left_alone() {
    let (world, _) = World::empty().settle();
    let mut status = world.status().clone();
    let mut condition = status.conditions[0].clone();
    condition.type_ = "example.com/Audited".to_owned();
    status.conditions.push(condition);
    assert_eq!(world.cluster_config(status).steps(), Vec::<String>::new());
}

#[test]
fn a_deleted_cluster_config_is_made_again_with_the_same_content() {
    let (mut world, _) = World::empty().settle();
    let before = world.status().clone();
    world.index.cluster_config.object = None;
    let (world, steps) = world.settle();
    assert_eq!(steps, ["create ClusterConfig", "write status"]);
    assert_eq!(world.status(), &before);
}

#[test]
fn a_new_identity_in_the_place_of_another_is_reported_before_the_old_one_is_forgotten() {
    let (mut world, _) = World::empty().wanted(None, Some("old")).settle();
    world.index.secret.object = None;
    world.index.config_map.object = None;
    let (world, steps) = world.wanted(None, Some("new")).settle();
    assert_eq!(steps, ["create Secret", "create ConfigMap new", "report IdentityReplaced", "write status"]);
    assert_eq!(world.condition("Ready"), "True Operating");
}

#[test]
fn what_a_stranger_wrote_into_the_config_map_reaches_neither_the_status_nor_a_message_as_it_is() {
    let odd = Published {
        uid: String::new(),
        resource_version: String::new(),
        identity: Some(id_and_name("a\nb", &"x".repeat(100_000))),
        fingerprint: None,
        labelled: false,
    };
    let (world, _) = World::empty().config_map(odd).settle();
    assert_eq!(world.status().cluster_identity, None);
    let message = world.refusal().message;
    assert!(!message.contains('\n'), "{message}");
}
