use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use liqo_api::contract::{CAPACITY_BACKED, ContractPhase, ContractStatus};
use serde_json::json;

use super::*;

fn now() -> Timestamp {
    "2026-03-01T12:00:00.7Z".parse().unwrap()
}

fn hours(hours: i64) -> Timestamp {
    Timestamp::from_second(now().as_second() + hours * 3600).unwrap()
}

fn home() -> ClusterId {
    "home".parse().unwrap()
}

fn account(contract: &str, sequence: u64) -> Account {
    Account {
        contract: contract.parse().unwrap(),
        digest: Digest::of("test", format!("{contract} {sequence}").as_bytes()),
        sequence,
        not_before: hours(0),
        over: None,
        broken: false,
    }
}

/// An API server that has nothing but the log.
#[derive(Default)]
struct Server {
    pages: BTreeMap<String, ConfigMap>,
    version: u64,
    log: Log,
}

impl Server {
    fn write(&mut self, append: &Append) {
        self.version += 1;
        let page = match &append.resource_version {
            None => append.page("liqo", BTreeMap::new()),
            Some(version) => {
                let mut page = self.pages.get(&append.name).unwrap().clone();
                assert_eq!(page.metadata.resource_version.as_ref(), Some(version));
                page.data.as_mut().unwrap().extend(append.data.clone());
                page
            }
        };
        self.put(page);
    }

    fn put(&mut self, mut page: ConfigMap) {
        page.metadata.resource_version = Some(self.version.to_string());
        let name = page.metadata.name.clone().unwrap();
        self.log.apply(&Key::namespaced("liqo", &name), page.clone());
        self.pages.insert(name, page);
    }

    /// Notes what is missing, until nothing is.
    fn note(&mut self, accounts: &[Account], at: Timestamp) -> Vec<(String, Event)> {
        let mut noted = Vec::new();
        loop {
            let missing = self.log.missing(accounts);
            let Some(append) = self.log.append(&home(), &missing, at).unwrap() else { return noted };
            let lines = append.data.len();
            self.write(&append);
            let left = self.log.missing(accounts).len();
            assert!(left < missing.len(), "every write brings it forward");
            assert!(lines <= 501);
            noted.extend(missing.into_iter().map(|it| (it.contract.to_string(), it.event)));
            noted.truncate(noted.len() - left);
        }
    }

    /// The same log, as a program that starts sees it.
    fn restarted(&self) -> Log {
        let mut log = Log::default();
        for (name, page) in self.pages.iter().rev() {
            log.apply(&Key::namespaced("liqo", name), page.clone());
        }
        log
    }
}

fn events(noted: &[(String, Event)]) -> Vec<&'static str> {
    noted.iter().map(|(_, event)| event.as_str()).collect()
}

#[test]
fn what_is_agreed_is_noted_once_and_in_order() {
    let mut server = Server::default();
    let first = [account("c-1", 0), account("c-2", 0)];
    assert!(!server.log.has(&first[0].digest));
    assert_eq!(events(&server.note(&first, now())), ["signed", "signed"]);
    assert!(first.iter().all(|it| server.log.has(&it.digest)));
    assert_eq!(server.note(&first, hours(1)), []);
    assert_eq!(server.restarted().missing(&first), []);
    let page = server.pages.get("liqo-contract-log-0").unwrap();
    assert_eq!(page.metadata.labels.as_ref().unwrap().get(PAGE_LABEL).map(String::as_str), Some("true"));
    let keys: Vec<&String> = page.data.as_ref().unwrap().keys().collect();
    assert_eq!(keys, ["cluster-id", "entry-0000000000", "entry-0000000001"]);
    assert_eq!(server.log.check(&home()).unwrap().length, 2);
}

#[test]
fn amendments_renewals_breaches_and_ends_follow_from_the_contracts() {
    let mut server = Server::default();
    assert_eq!(events(&server.note(&[account("c-1", 0)], now())), ["signed"]);
    let amended = account("c-1", 1);
    assert_eq!(events(&server.note(std::slice::from_ref(&amended), hours(1))), ["amended"]);
    let renewed = Account { not_before: hours(16), ..account("c-1", 2) };
    assert_eq!(events(&server.note(std::slice::from_ref(&renewed), hours(16))), ["renewed"]);
    let broken = Account { broken: true, ..renewed.clone() };
    assert_eq!(events(&server.note(std::slice::from_ref(&broken), hours(17))), ["breached"]);
    assert_eq!(server.note(std::slice::from_ref(&broken), hours(17)), []);
    assert_eq!(events(&server.note(std::slice::from_ref(&renewed), hours(18))), ["kept"]);
    assert_eq!(events(&server.note(std::slice::from_ref(&broken), hours(19))), ["breached"]);
    let ended = Account { over: Some(Event::Ended), ..broken };
    assert_eq!(events(&server.note(std::slice::from_ref(&ended), hours(20))), ["ended"]);
    assert_eq!(server.note(std::slice::from_ref(&ended), hours(20)), []);
    assert_eq!(server.restarted().missing_of(&ended), []);
}

#[test]
fn what_ended_before_it_was_noted_is_noted_whole() {
    let mut server = Server::default();
    let gone = Account { over: Some(Event::Expired), ..account("c-1", 0) };
    assert_eq!(events(&server.note(&[gone], now())), ["signed", "expired"]);
}

#[test]
fn a_full_page_is_followed_by_another_and_the_chain_goes_on() {
    let mut server = Server::default();
    let many: Vec<Account> = (0..1201).map(|index| account(&format!("c-{index}"), 0)).collect();
    assert_eq!(server.note(&many[..499], now()).len(), 499);
    assert_eq!(server.note(&many, hours(1)).len(), 702);
    let lengths: Vec<usize> =
        server.pages.values().map(|page| page.data.as_ref().unwrap().len() - 1).collect();
    assert_eq!(lengths, [500, 500, 201]);
    let head = server.log.check(&home()).unwrap();
    assert_eq!((head.length, server.restarted().check(&home()).unwrap()), (1201, head));
}

#[test]
fn a_clock_that_was_put_back_does_not_break_the_log() {
    let mut server = Server::default();
    server.note(&[account("c-1", 0)], hours(5));
    server.note(&[account("c-2", 0)], now());
    assert_eq!(server.log.check(&home()).unwrap().time, hours(5));
}

/// What somebody did to the ConfigMaps, and what is told.
#[test]
fn what_is_garbled_is_told_and_never_written_over() {
    let whole = || {
        let mut server = Server::default();
        let many: Vec<Account> = (0..600).map(|index| account(&format!("c-{index}"), 0)).collect();
        server.note(&many, now());
        server
    };
    let page = |server: &Server, number: u8| server.pages[&format!("liqo-contract-log-{number}")].clone();
    let line = |server: &Server, number: u8, key: &str| page(server, number).data.unwrap()[key].clone();
    type Damage<'a> = Box<dyn Fn(&mut Server) + 'a>;
    let edit = |number: u8, key: &'static str, change: fn(String) -> Option<String>| -> Damage<'_> {
        Box::new(move |server| {
            let mut page = page(server, number);
            let data = page.data.as_mut().unwrap();
            let old = data.remove(key).unwrap_or_default();
            data.extend(change(old).map(|new| (key.to_owned(), new)));
            server.put(page);
        })
    };
    let cases: Vec<(&str, Damage<'_>)> = vec![
        ("liqo-contract-log-0: cluster-id is missing", edit(0, "cluster-id", |_| None)),
        (
            "liqo-contract-log-0: it is the log of cluster other, this is home",
            edit(0, "cluster-id", |_| Some("other".to_owned())),
        ),
        (
            "liqo-contract-log-0: the log is broken at entry 7: an entry numbered 8 is in its place",
            edit(0, "entry-0000000007", |_| None),
        ),
        (
            "liqo-contract-log-0: the log is broken at entry 7: it was changed",
            edit(0, "entry-0000000007", |line| Some(line.replace("\"c-7\"", "\"c-8\""))),
        ),
        (
            "liqo-contract-log-0: entry-0000000007: the document is not JSON",
            edit(0, "entry-0000000007", |_| Some("\u{1b}[2J".to_owned())),
        ),
        (
            "liqo-contract-log-0: note: the document is not JSON",
            edit(0, "note", |_| Some("hello".to_owned())),
        ),
        (
            "liqo-contract-log-1: it begins with entry 500, expected was 499",
            edit(0, "entry-0000000499", |_| None),
        ),
        (
            "liqo-contract-log-1: it begins with entry 501, expected was 500",
            edit(1, "entry-0000000500", |_| None),
        ),
        (
            "liqo-contract-log-1: entry-0000000600: entry 3 is there",
            Box::new(|server| {
                let copy = line(server, 0, "entry-0000000003");
                let mut page = page(server, 1);
                page.data.as_mut().unwrap().insert("entry-0000000600".to_owned(), copy);
                server.put(page);
            }),
        ),
        (
            "liqo-contract-log-0: it is missing",
            Box::new(|server| server.log.delete(&Key::namespaced("liqo", "liqo-contract-log-0"))),
        ),
        (
            "liqo-contract-log-1: it has no entries",
            Box::new(|server| {
                let mut page = page(server, 1);
                page.data = Some([("cluster-id".to_owned(), "home".to_owned())].into());
                server.put(page);
            }),
        ),
        (
            "liqo-contract-log-1: its first entry holds another hash",
            Box::new(|server| {
                // The first page of another history, as long as ours.
                let mut other = Server::default();
                let many: Vec<Account> = (0..500).map(|index| account(&format!("d-{index}"), 0)).collect();
                other.note(&many, now());
                server.put(page(&other, 0));
            }),
        ),
    ];
    for (expected, damage) in cases {
        let mut server = whole();
        damage(&mut server);
        let told = server.log.check(&home()).unwrap_err().to_string();
        assert!(told.contains(expected), "{expected}: {told}");
        let new = server.log.missing(&[account("c-new", 0)]);
        assert_eq!(server.log.append(&home(), &new, now()).unwrap_err().to_string(), told);
    }
}

#[test]
fn cut_at_its_end_the_log_is_shorter_and_what_is_missing_is_noted_again_for_all_to_see() {
    let mut server = Server::default();
    let all = [account("c-1", 0), account("c-2", 0)];
    server.note(&all, now());
    let witness = server.log.check(&home()).unwrap();
    let mut page = server.pages["liqo-contract-log-0"].clone();
    page.data.as_mut().unwrap().remove("entry-0000000001");
    server.put(page);
    // Nothing inside tells; who has seen the end before does.
    let head = server.log.check(&home()).unwrap();
    assert_eq!(head.length, 1);
    server.note(&all, hours(1));
    assert_ne!(server.log.check(&home()).unwrap().hash, witness.hash);
}

#[test]
fn other_config_maps_are_no_pages() {
    let mut log = Log::default();
    for name in
        ["liqo-contract-log-", "liqo-contract-log-01", "liqo-contract-log-x", "liqo-contract-log--1", "other"]
    {
        log.apply(&Key::namespaced("liqo", name), ConfigMap::default());
        log.delete(&Key::namespaced("liqo", name));
    }
    assert_eq!(log.check(&home()).unwrap().length, 0);
    let append = log.append(&home(), &log.missing(&[account("c-1", 0)]), now()).unwrap().unwrap();
    assert_eq!((append.name.as_str(), append.resource_version.as_ref()), ("liqo-contract-log-0", None));
    assert_eq!(log.append(&home(), &[], now()).unwrap(), None);
}

#[test]
fn an_account_is_what_the_status_says() {
    let condition = |status: &str| Condition {
        type_: CAPACITY_BACKED.to_owned(),
        status: status.to_owned(),
        reason: "Test".to_owned(),
        message: String::new(),
        last_transition_time: Time(now()),
        observed_generation: None,
    };
    let status = |phase, backed: &str| ContractStatus {
        phase,
        conditions: vec![condition(backed)],
        ..ContractStatus::default()
    };
    let terms = crate::paper::testing::terms();
    for (status, over, broken) in [
        (status(ContractPhase::Active, "True"), None, false),
        (status(ContractPhase::Amending, "False"), None, true),
        (status(ContractPhase::Expired, "Unknown"), Some(Event::Expired), false),
        (status(ContractPhase::Ended, "True"), Some(Event::Ended), false),
        (status(ContractPhase::Ended, "False"), Some(Event::Ended), true),
    ] {
        let account = Account::of(&terms, &status);
        assert_eq!((account.over, account.broken, account.digest), (over, broken, terms.digest()));
    }
}

#[test]
fn a_patch_holds_what_is_new_and_what_it_follows_on() {
    let mut server = Server::default();
    server.note(&[account("c-1", 0)], now());
    let missing = server.log.missing(&[account("c-2", 0)]);
    let append = server.log.append(&home(), &missing, now()).unwrap().unwrap();
    let patch = append.patch();
    assert_eq!(patch["metadata"], json!({"resourceVersion": "1"}));
    assert_eq!(patch["data"].as_object().unwrap().len(), 1, "{patch}");
    assert!(append.last().is_some());
    server.write(&append);
    assert_eq!(append.last(), Some(server.log.check(&home()).unwrap().hash));
}
