//! Random histories of a server, with random gaps: the index equals the server at the end, and every object
//! that vanished was deleted exactly once.

use proptest::prelude::*;

use super::*;
use crate::watch::WatchMetrics;
use crate::watch::WatchStatus;
use crate::watch::inlet::Typed;
use crate::watch::tracker::{Line, Tracker};

#[derive(Clone, Debug)]
enum Step {
    /// Create, or change if it exists.
    Put(u8),
    Remove(u8),
    /// Delete and create with a new uid.
    Recreate(u8),
    /// The connection breaks: events are lost until the next list.
    Cut,
    /// List in pages of this size; cut off after so many pages, if any.
    Pages {
        size: usize,
        stop_after: Option<usize>,
    },
    /// Streaming list; cut off after so many objects, if any.
    Stream {
        stop_after: Option<usize>,
    },
}

fn step() -> impl Strategy<Value = Step> {
    let name = 0u8..8;
    prop_oneof![
        4 => name.clone().prop_map(Step::Put),
        2 => name.clone().prop_map(Step::Remove),
        1 => name.prop_map(Step::Recreate),
        1 => Just(Step::Cut),
        1 => (1usize..4, proptest::option::weighted(0.3, 0usize..3))
            .prop_map(|(size, stop_after)| Step::Pages { size, stop_after }),
        1 => proptest::option::weighted(0.3, 0usize..6).prop_map(|stop_after| Step::Stream { stop_after }),
    ]
}

struct World {
    server: BTreeMap<String, (String, u64, u32)>,
    version: u64,
    connected: bool,
    tracker: Tracker,
}

impl World {
    fn object(&self, name: &str) -> Value {
        let (uid, version, value) = &self.server[name];
        thing(name, uid, *version, *value)
    }

    fn send(&mut self, kind: &str, object: &Value) {
        if self.connected {
            assert!(self.tracker.line(event(kind, object).as_bytes()).is_ok());
        }
    }

    fn put(&mut self, name: &str) {
        self.version += 1;
        let version = self.version;
        let known = self.server.get(name).map(|(uid, ..)| uid.clone());
        let kind = if known.is_some() { "MODIFIED" } else { "ADDED" };
        let uid = known.unwrap_or_else(|| format!("uid-{version}"));
        self.server.insert(name.to_owned(), (uid, version, version as u32));
        let object = self.object(name);
        self.send(kind, &object);
    }

    fn remove(&mut self, name: &str) {
        if self.server.contains_key(name) {
            self.version += 1;
            let mut object = self.object(name);
            object["metadata"]["resourceVersion"] = json!(self.version.to_string());
            self.server.remove(name);
            self.send("DELETED", &object);
        }
    }

    fn list_in_pages(&mut self, size: usize, stop_after: Option<usize>) {
        let names: Vec<_> = self.server.keys().cloned().collect();
        let objects: Vec<_> = names.iter().map(|name| self.object(name)).collect();
        self.tracker.begin_list();
        for (number, chunk) in objects.chunks(size).enumerate() {
            if stop_after == Some(number) {
                self.connected = false;
                return;
            }
            self.tracker.page(page(chunk, self.version, Some("more")).as_bytes()).unwrap();
        }
        self.tracker.end_list(&self.version.to_string());
        self.connected = true;
    }

    fn list_as_stream(&mut self, stop_after: Option<usize>) {
        let names: Vec<_> = self.server.keys().cloned().collect();
        self.tracker.begin_list();
        for (number, name) in names.iter().enumerate() {
            if stop_after == Some(number) {
                self.connected = false;
                return;
            }
            let object = self.object(name);
            assert!(self.tracker.line(event("ADDED", &object).as_bytes()).is_ok());
        }
        match self.tracker.line(bookmark(self.version, true).as_bytes()) {
            Ok(Line::InitialEventsEnd(version)) => self.tracker.end_list(&version),
            _ => panic!("the bookmark did not end the initial events"),
        }
        self.connected = true;
    }

    fn take(&mut self, step: &Step) {
        match step {
            Step::Put(name) => self.put(&name.to_string()),
            Step::Remove(name) => self.remove(&name.to_string()),
            Step::Recreate(name) => {
                self.remove(&name.to_string());
                self.put(&name.to_string());
            }
            Step::Cut => self.connected = false,
            Step::Pages { size, stop_after } => self.list_in_pages(*size, *stop_after),
            Step::Stream { stop_after } => self.list_as_stream(*stop_after),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]
    #[test]
    fn the_index_ends_up_like_the_server_and_no_deletion_is_lost_or_repeated(
        steps in proptest::collection::vec(step(), 0..60),
    ) {
        let recorder = Recorder::default();
        let sink: Arc<dyn Sink<Thing>> = Arc::new(recorder.clone());
        let status = WatchStatus::new("things".into());
        let tracker = Tracker::new("things".into(), Box::new(Typed { project: Box::new(Some), sink }), &WatchMetrics::default(), status);
        let mut world = World { server: BTreeMap::new(), version: 0, connected: false, tracker };
        let mut applied = std::collections::BTreeSet::new();
        for step in &steps {
            world.take(step);
            applied.extend(recorder.0.lock().objects.values().map(|thing| thing.metadata.uid.to_string()));
        }
        if !world.connected {
            world.list_in_pages(3, None);
        }

        let server: BTreeMap<_, _> =
            world.server.iter().map(|(name, (_, _, value))| (name.clone(), *value)).collect();
        prop_assert_eq!(recorder.values(), server);
        let record = recorder.0.lock();
        prop_assert_eq!(&record.mistakes, &Vec::<String>::new());
        let live: std::collections::BTreeSet<_> =
            world.server.values().map(|(uid, ..)| uid.clone()).collect();
        for uid in applied.difference(&live) {
            prop_assert_eq!(record.deletes.get(uid), Some(&1), "deletes of {}", uid);
        }
        for uid in &live {
            prop_assert_eq!(record.deletes.get(uid), None, "deletes of {}, which lives", uid);
        }
        prop_assert_eq!(world.tracker.status.position(), world.version);
    }
}
