use super::*;
use crate::watch::WatchStatus;
use crate::watch::inlet::Typed;
use crate::watch::tracker::{LineError, Tracker};
use crate::watch::{Pairs, WatchMetrics};

fn tracker(recorder: &Recorder) -> Tracker {
    filtered(recorder, Some)
}

fn filtered(recorder: &Recorder, project: fn(Thing) -> Option<Thing>) -> Tracker {
    let status = WatchStatus::new("things".into());
    let sink: Arc<dyn Sink<Thing>> = Arc::new(recorder.clone());
    Tracker::new(
        "things".into(),
        Box::new(Typed { project: Box::new(project), sink }),
        &WatchMetrics::default(),
        status,
    )
}

fn list(tracker: &mut Tracker, objects: &[Value], version: u64) {
    tracker.begin_list();
    tracker.page(page(objects, version, None).as_bytes()).unwrap();
    tracker.end_list(&version.to_string());
}

fn line(tracker: &mut Tracker, line: &str) {
    assert!(tracker.line(line.as_bytes()).is_ok(), "the line ended the stream: {line}");
}

#[test]
fn a_relist_deletes_what_vanished_and_replaces_what_was_recreated() {
    let recorder = Recorder::default();
    let mut tracker = tracker(&recorder);
    list(
        &mut tracker,
        &[thing("kept", "u1", 1, 1), thing("gone", "u2", 2, 2), thing("again", "u3", 3, 3)],
        3,
    );
    recorder.calls();
    list(&mut tracker, &[thing("kept", "u1", 1, 1), thing("again", "u4", 8, 4)], 9);
    let calls = ["apply kept=1", "delete again", "apply again=4", "delete gone", "synced"];
    assert_eq!(recorder.calls(), calls);
}

#[test]
fn a_list_cut_off_in_the_middle_deletes_nothing() {
    let recorder = Recorder::default();
    let mut tracker = tracker(&recorder);
    list(&mut tracker, &[thing("a", "u1", 1, 1), thing("b", "u2", 2, 2)], 2);
    recorder.calls();
    tracker.begin_list();
    tracker.page(page(&[thing("a", "u1", 1, 1)], 5, Some("more")).as_bytes()).unwrap();
    // The connection breaks; the next list has b but not a.
    list(&mut tracker, &[thing("b", "u2", 2, 2)], 6);
    assert_eq!(recorder.calls(), ["apply a=1", "apply b=2", "delete a", "synced"]);
}

#[test]
fn an_unreadable_object_stops_nothing_and_keeps_what_was_known_of_it() {
    let recorder = Recorder::default();
    let mut tracker = tracker(&recorder);
    let odd = || thing("odd", "u1", 5, "text");
    list(&mut tracker, &[thing("odd", "u1", 1, 1), thing("b", "u2", 2, 2)], 2);
    line(&mut tracker, &event("MODIFIED", &odd()));
    line(&mut tracker, &event("MODIFIED", &thing("b", "u2", 6, 3)));
    assert_eq!(recorder.values(), BTreeMap::from([("odd".into(), 1), ("b".into(), 3)]));
    assert_eq!(tracker.status.position(), 6);

    // In a page too: the others are read, and the odd one is not taken for gone.
    list(&mut tracker, &[odd(), thing("b", "u2", 6, 3), thing("c", "u3", 7, 7)], 7);
    assert_eq!(recorder.values(), BTreeMap::from([("odd".into(), 1), ("b".into(), 3), ("c".into(), 7)]));
    assert_eq!(tracker.counters().unreadable.get(), 2);

    // Another object took its name, unreadable as well: the old one is gone.
    line(&mut tracker, &event("MODIFIED", &thing("odd", "u9", 8, "text")));
    assert_eq!(recorder.values(), BTreeMap::from([("b".into(), 3), ("c".into(), 7)]));

    // It becomes readable, then is deleted in a form that is not.
    line(&mut tracker, &event("MODIFIED", &thing("odd", "u9", 9, 9)));
    assert_eq!(recorder.values()["odd"], 9);
    line(&mut tracker, &event("DELETED", &thing("odd", "u9", 10, "text")));
    assert_eq!(recorder.values(), BTreeMap::from([("b".into(), 3), ("c".into(), 7)]));
    assert!(recorder.0.lock().mistakes.is_empty());
}

#[test]
fn an_object_that_the_projection_drops_is_deleted_once() {
    let recorder = Recorder::default();
    let mut tracker = filtered(&recorder, |thing| (thing.value > 0).then_some(thing));
    list(&mut tracker, &[thing("a", "u1", 1, 1), thing("never", "u2", 2, 0)], 2);
    line(&mut tracker, &event("MODIFIED", &thing("a", "u1", 3, 0)));
    line(&mut tracker, &event("DELETED", &thing("a", "u1", 4, 0)));
    line(&mut tracker, &event("DELETED", &thing("never", "u2", 5, 0)));
    assert_eq!(recorder.calls(), ["apply a=1", "synced", "delete a"]);
}

#[test]
fn planners_are_not_woken_in_the_middle_of_a_list() {
    let recorder = Recorder::default();
    let mut tracker = tracker(&recorder);
    tracker.begin_list();
    line(&mut tracker, &event("ADDED", &thing("a", "u1", 1, 1)));
    tracker.flush();
    assert_eq!((recorder.0.lock().changes, tracker.status.is_ready()), (0, false));
    tracker.end_list("1");
    tracker.flush();
    assert_eq!((recorder.0.lock().changes, tracker.status.is_ready()), (1, true));
}

#[test]
fn names_that_could_be_mistaken_for_others_are_not_read() {
    let recorder = Recorder::default();
    let mut tracker = tracker(&recorder);
    list(&mut tracker, &[thing("a/b", "u1", 1, 1), thing("", "u2", 2, 2)], 2);
    assert_eq!(recorder.calls(), ["synced"]);
    assert_eq!(tracker.counters().unreadable.get(), 2);
}

#[test]
fn what_is_no_event_ends_the_stream() {
    let recorder = Recorder::default();
    let mut tracker = tracker(&recorder);
    assert!(matches!(tracker.line(b"{\"type\":\"ADDED\",\"obj"), Err(LineError::Garbage(_))));
    assert!(matches!(tracker.line(gone().as_bytes()), Err(LineError::Refused(status)) if status.code == 410));
    let bare =
        br#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"no","code":500}"#;
    assert!(matches!(tracker.line(bare), Err(LineError::Refused(status)) if status.code == 500));
}

#[test]
fn pairs_keep_what_they_read_in_one_string() {
    let pairs: Pairs = serde_json::from_str(r#"{"app":"web","empty":"","tier":"back"}"#).unwrap();
    assert_eq!((pairs.get("app"), pairs.get("empty"), pairs.get("none")), (Some("web"), Some(""), None));
    assert_eq!(pairs.iter().collect::<Vec<_>>(), [("app", "web"), ("empty", ""), ("tier", "back")]);
    assert!(serde_json::from_str::<Pairs>("null").unwrap().is_empty());
    assert!(serde_json::from_str::<Pairs>(r#"{"a":1}"#).is_err());
    // An end mark inside a value cannot forge a label.
    let forged: Pairs = [("a", "b\0admin\0yes")].into_iter().collect();
    assert_eq!((forged.get("admin"), forged.get("a")), (None, Some("badminyes")));
}

#[test]
fn uids_are_compared_exactly_whatever_they_look_like() {
    use crate::watch::known::{Known, Sighting};
    let key = Key::cluster("a");
    let uids = [
        "0189d2c8-7a7e-4f6e-9a55-1d2f3b4c5d6e",
        "0189d2c8-7a7e-4f6e-9a55-1d2f3b4c5d6f",
        "0189D2C8-7a7e-4f6e-9a55-1d2f3b4c5d6f",
        "0189d2c87a7e4f6e9a551d2f3b4c5d6f",
        "my-uid",
        "",
        "0189d2c8-7a7e-4f6e-9a55-1d2f3b4c5d6é",
    ];
    let mut known = Known::default();
    known.seen(&key, "first");
    for uid in uids {
        assert_eq!(known.seen(&key, uid), Sighting::Replaced, "{uid}");
        assert_eq!(known.seen(&key, uid), Sighting::Same, "{uid}");
    }
}
