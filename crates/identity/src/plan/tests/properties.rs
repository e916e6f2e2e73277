//! Any order of events, writes, crashes and impatient users leads to one identity.

use liqo_api::ClusterConfigStatus;
use proptest::prelude::*;

use super::*;

/// What can happen.
#[derive(Clone, Debug)]
enum Happening {
    /// A manager's watch tells what is there now.
    Tell(usize, Kind),
    /// A manager makes the first write of its plan.
    Write(usize),
    /// A manager dies and starts again, knowing nothing.
    Crash(usize),
    /// Somebody deletes the ConfigMap.
    DeleteConfigMap,
    /// Somebody deletes the ClusterConfig.
    DeleteClusterConfig,
    /// Somebody writes nonsense into the status.
    SpoilStatus,
}

#[derive(Clone, Copy, Debug)]
enum Kind {
    Secret,
    ConfigMap,
    ClusterConfig,
}

const MANAGERS: usize = 3;

fn happening() -> impl Strategy<Value = Happening> {
    let manager = 0..MANAGERS;
    let kind = prop_oneof![Just(Kind::Secret), Just(Kind::ConfigMap), Just(Kind::ClusterConfig)];
    prop_oneof![
        8 => (manager.clone(), kind).prop_map(|(manager, kind)| Happening::Tell(manager, kind)),
        8 => manager.clone().prop_map(Happening::Write),
        2 => manager.prop_map(Happening::Crash),
        1 => Just(Happening::DeleteConfigMap),
        1 => Just(Happening::DeleteClusterConfig),
        1 => Just(Happening::SpoilStatus),
    ]
}

/// An API server with our objects, and some managers that know more or less of it. Here, all of them write at once;
/// a lease only makes it more orderly.
struct Cluster {
    secret: Option<Arc<Identity>>,
    config_map: Option<Published>,
    cluster_config: Option<Told>,
    version: u64,
    managers: Vec<Index>,
    settings: Settings,
}

impl Cluster {
    fn new() -> Self {
        Self {
            secret: None,
            config_map: None,
            cluster_config: None,
            version: 1,
            managers: (0..MANAGERS).map(|_| Index::default()).collect(),
            settings: settings(),
        }
    }

    fn next_version(&mut self) -> String {
        self.version += 1;
        self.version.to_string()
    }

    fn happen(&mut self, happening: &Happening) {
        match happening {
            Happening::Tell(manager, kind) => self.tell(*manager, *kind),
            Happening::Write(manager) => {
                self.write(*manager);
            }
            Happening::Crash(manager) => self.managers[*manager] = Index::default(),
            Happening::DeleteConfigMap => self.config_map = None,
            Happening::DeleteClusterConfig => self.cluster_config = None,
            Happening::SpoilStatus => {
                let version = self.next_version();
                if let Some(told) = &mut self.cluster_config {
                    told.resource_version = version;
                    told.status = ClusterConfigStatus { version: Some("x".to_owned()), ..Default::default() };
                }
            }
        }
    }

    fn tell(&mut self, manager: usize, kind: Kind) {
        let index = &mut self.managers[manager];
        match kind {
            Kind::Secret => {
                index.secret.synced = true;
                index.secret.object =
                    self.secret.clone().map(|identity| Kept { uid: String::new(), identity: Ok(identity) });
            }
            Kind::ConfigMap => {
                index.config_map.synced = true;
                index.config_map.object.clone_from(&self.config_map);
            }
            Kind::ClusterConfig => {
                index.cluster_config.synced = true;
                index.cluster_config.object.clone_from(&self.cluster_config);
            }
        }
    }

    /// Whether the manager had something to write, successful or not.
    fn write(&mut self, manager: usize) -> bool {
        let Some(step) = plan(&self.managers[manager], &self.settings, now()).into_iter().next() else {
            return false;
        };
        let version = self.next_version();
        match step {
            // Creating what exists is refused.
            Step::CreateSecret => {
                let new = || Arc::new(Identity::generate(&self.settings.wanted).unwrap());
                self.secret.get_or_insert_with(new);
            }
            Step::CreateConfigMap(identity) => {
                let new = Published { resource_version: version, ..published(&identity) };
                self.config_map.get_or_insert(new);
            }
            Step::CreateClusterConfig => {
                let status = ClusterConfigStatus::default();
                self.cluster_config.get_or_insert(Told {
                    resource_version: version,
                    generation: Some(1),
                    status,
                });
            }
            // Changing what has changed meanwhile is refused.
            Step::MarkConfigMap { resource_version, fingerprint } => {
                if let Some(found) = &mut self.config_map
                    && found.resource_version == resource_version
                {
                    found.fingerprint = Some(fingerprint);
                    found.labelled = true;
                    found.resource_version = version;
                }
            }
            Step::WriteStatus { resource_version, status } => {
                if let Some(found) = &mut self.cluster_config
                    && found.resource_version == resource_version
                {
                    found.status = *status;
                    found.resource_version = version;
                }
            }
            Step::Report(report) => panic!("nothing to report: {report:?}"),
        }
        true
    }

    fn tell_all(&mut self, manager: usize) {
        for kind in [Kind::Secret, Kind::ConfigMap, Kind::ClusterConfig] {
            self.tell(manager, kind);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn any_order_of_events_and_crashes_ends_with_one_identity(
        happenings in prop::collection::vec(happening(), 0..60)
    ) {
        let mut cluster = Cluster::new();
        let mut first: Option<Arc<Identity>> = None;
        for happening in &happenings {
            cluster.happen(happening);
            first = first.or_else(|| cluster.secret.clone());
            // Once there is an identity, it is the only one ever.
            if let Some(first) = &first {
                prop_assert!(cluster.secret.as_ref().is_some_and(|now| Arc::ptr_eq(now, first)));
            }
            if let Some(published) = &cluster.config_map {
                let known = first.as_ref().map(|first| first.cluster_identity());
                prop_assert_eq!(&published.identity, &known);
            }
        }
        // Whoever is left finishes the work.
        let mut writes = 0;
        loop {
            cluster.tell_all(0);
            if !cluster.write(0) {
                break;
            }
            writes += 1;
            prop_assert!(writes < 10, "no end");
        }
        let identity = cluster.secret.clone().unwrap();
        if let Some(first) = first {
            prop_assert!(Arc::ptr_eq(&identity, &first));
        }
        let published = cluster.config_map.unwrap();
        prop_assert_eq!(published.identity, Some(identity.cluster_identity()));
        let status = cluster.cluster_config.unwrap().status;
        prop_assert_eq!(status.fingerprint, Some(identity.public_key().fingerprint()));
        prop_assert!(status.conditions.iter().all(|condition| condition.status == "True"));
    }
}
