use std::collections::BTreeSet;

use clap::{ArgMatches, FromArgMatches};

use super::notes::{NOTES, Note};
use super::report::{needless, without_effect};
use super::*;
use crate::report::{Flag, shown};

/// Every flag of Liqo's controller manager, with its default there and another value.
const LIQO: &[(&str, &str, &str)] = &[
    ("external-monitor", "", "broker-svc.broker.svc.cluster.local:7000"),
    ("cluster-labels", "", "liqo.io/provider=one,region=two"),
    ("resource-sharing-percentage", "50", "30"),
    ("enable-incoming-peering", "true", "false"),
    ("offer-disable-auto-accept", "false", "true"),
    ("offer-update-threshold-percentage", "5", "10"),
    ("offloading-status-requeue-period", "10s", "1m0s"),
    ("auto-join-discovered-clusters", "true", "false"),
    ("foreign-cluster-workers", "1", "4"),
    ("shadow-pod-ctrl-workers", "10", "20"),
    ("auth-service-address-override", "", "auth.example.com"),
    ("auth-service-port-override", "", "443"),
    ("kubelet-image", "", "liqo/virtual-kubelet:v0.4.0"),
    ("init-kubelet-image", "", "liqo/init-virtual-kubelet:v0.4.0"),
    ("disable-kubelet-certificate-generation", "false", "true"),
    ("kubelet-extra-annotations", "", "a=b"),
    ("kubelet-extra-labels", "", "a=b"),
    ("kubelet-extra-args", "", "--remote-ipam=server=liqo-network-manager.liqo-broker.svc.cluster.local"),
    ("kubelet-cpu-requests", "250m", "1"),
    ("kubelet-cpu-limits", "1000m", "2"),
    ("kubelet-ram-requests", "100M", "1Gi"),
    ("kubelet-ram-limits", "250M", "2Gi"),
    ("node-extra-annotations", "", "a=b"),
    ("node-extra-labels", "", "a=b"),
    ("enable-storage", "false", "true"),
    ("virtual-storage-class-name", "liqo", "other"),
    ("real-storage-class-name", "", "fast"),
    ("storage-namespace", "liqo-storage", "volumes"),
    ("resync-period", "10h", "1h30m"),
    ("liqo-namespace", "liqo", "elsewhere"),
    ("metrics-address", ":8080", "127.0.0.1:9090"),
    ("health-probe-address", ":8081", ":9091"),
    ("cluster-id", "", "32f0b45b-5c06-4cc4-84b6-03a323ffc93d"),
    ("cluster-name", "", "milan"),
    ("broker-mode", "false", "true"),
];

fn matches<S: AsRef<str>>(given: impl IntoIterator<Item = S>) -> Result<ArgMatches, clap::Error> {
    let given = given.into_iter().map(|text| text.as_ref().to_owned());
    let arguments = ["liqo".to_owned(), "manager".to_owned()].into_iter().chain(given);
    let mut matches = crate::command().try_get_matches_from(arguments)?;
    let (_, matches) = matches.remove_subcommand().unwrap();
    Arguments::from_arg_matches(&matches)?;
    Ok(matches)
}

fn flags(matches: &ArgMatches) -> Vec<Flag> {
    crate::report::flags::<Arguments>(matches)
}

fn parsed<S: AsRef<str>>(given: impl IntoIterator<Item = S>) -> Arguments {
    Arguments::from_arg_matches(&matches(given).unwrap()).unwrap()
}

fn flag<'a>(flags: &'a [Flag], name: &str) -> &'a Flag {
    flags.iter().find(|flag| flag.name == name).unwrap_or_else(|| panic!("no --{name}"))
}

#[test]
fn every_flag_of_liqo_is_accepted_with_its_default() {
    let bare = flags(&matches([""; 0]).unwrap());
    for (name, default, value) in LIQO {
        assert_eq!(flag(&bare, name).values.concat(), *default, "--{name}");
        let given = flags(&matches([format!("--{name}={value}")]).unwrap_or_else(|error| panic!("{error}")));
        assert_eq!(flag(&given, name).values, [*value], "--{name}");
        assert!(flag(&given, name).given, "--{name}");
    }
}

#[test]
fn every_flag_has_a_fallback_in_the_environment() {
    for argument in crate::command().find_subcommand("manager").unwrap().get_arguments() {
        let name = argument.get_long().unwrap();
        let expected = match name {
            "liqo-namespace" => "POD_NAMESPACE".to_owned(),
            "pod-name" => "POD_NAME".to_owned(),
            "pod-ip" => "POD_IP".to_owned(),
            "help" => continue,
            _ => format!("LIQO_{}", name.replace('-', "_").to_uppercase()),
        };
        assert_eq!(argument.get_env().unwrap().to_str().unwrap(), expected);
    }
}

#[test]
fn it_is_said_of_every_flag_what_becomes_of_it() {
    let bare = flags(&matches([""; 0]).unwrap());
    let flags: BTreeSet<_> = bare.iter().map(|flag| flag.name.as_str()).collect();
    let noted: BTreeSet<_> = NOTES.iter().map(|(name, _)| *name).collect();
    assert_eq!(flags, noted);
    assert_eq!(noted.len(), NOTES.len(), "one is there twice");
}

#[test]
fn booleans_may_stand_alone_and_the_last_word_counts() {
    let set = |given: &[&str]| parsed(given).sharing.broker_mode;
    assert!(
        !set(&[])
            && set(&["--broker-mode"])
            && set(&["--broker-mode=true"])
            && !set(&["--broker-mode=false"])
    );
    assert!(!set(&["--broker-mode", "--broker-mode=false"]));
    // A chart's flag, and the same among a user's extra arguments.
    let arguments = parsed(["--resource-sharing-percentage=30", "--resource-sharing-percentage", "90"]);
    assert_eq!(arguments.sharing.resource_sharing_percentage.0, 90);
    // Not the value of the flag, but an argument of its own, which there is none of.
    assert!(matches(["--broker-mode", "false"]).is_err());
}

#[test]
fn lists_grow_with_each_flag_and_extra_arguments_may_look_like_flags() {
    let arguments = parsed([
        "--cluster-labels=a=1,b=2",
        "--cluster-labels",
        "c=3",
        "--kubelet-extra-args=--remote-ipam=server=x:6000",
        "--kubelet-extra-args",
        "-v=4",
        "--kubelet-extra-args=--broker-mode=true",
    ]);
    let labels: Vec<_> = arguments.sharing.cluster_labels.iter().flat_map(|labels| labels.0.keys()).collect();
    assert_eq!(labels, ["a", "b", "c"]);
    let extra = &arguments.virtual_nodes.kubelet_extra_args;
    assert_eq!(*extra, ["--remote-ipam=server=x:6000", "-v=4", "--broker-mode=true"]);
    assert!(!arguments.sharing.broker_mode);
}

#[test]
fn bad_values_are_refused_in_words_that_help() {
    let cases = [
        ("--resource-sharing-percentage=150", "expected a whole number from 0 to 100"),
        ("--offer-update-threshold-percentage=-1", "expected a whole number from 0 to 100"),
        ("--external-monitor=broker", "expected HOST:PORT"),
        ("--metrics-address=8080", "expected an address such as :8080"),
        ("--resync-period=tomorrow", "expected a duration such as 30s"),
        ("--kubelet-cpu-limits=lots", "is not a quantity"),
        ("--cluster-id=Not/Legal", "is not a cluster ID: expected 1 to 63 lower-case letters"),
        ("--cluster-name=My Cluster", "is not a cluster name: expected 1 to 63 lower-case letters"),
        ("--liqo-namespace=Liqo", "is not a namespace name"),
        ("--liqo-namespace=", "is not a namespace name"),
        ("--cluster-labels=region", "expected key=value"),
        ("--broker-mode=maybe", "expected true or false"),
        ("--log-format=xml", "use plain or json"),
        ("--foreign-cluster-workers=0", "expected a whole number from 1 to 1000"),
        ("--resource-sharing-percent=1", "a similar argument exists: '--resource-sharing-percentage'"),
        ("peer", "unexpected argument 'peer' found"),
    ];
    for (argument, says) in cases {
        let error = matches([argument]).map(|_| argument).unwrap_err();
        assert_eq!(error.exit_code(), 2, "{argument}");
        assert!(error.to_string().contains(says), "{argument}: {error}");
    }
}

#[test]
fn lease_times_must_leave_room_for_a_change_of_leaders() {
    let check = |given: &[&str]| parsed(given).check();
    assert_eq!(check(&[]), Ok(()));
    assert_eq!(
        check(&["--lease-duration=4s", "--lease-renew-deadline=2s", "--lease-retry-period=500ms"]),
        Ok(())
    );
    for given in [["--lease-duration=10s"], ["--lease-renew-deadline=1s"], ["--lease-retry-period=0"]] {
        assert!(check(&given).unwrap_err().contains("must be shorter"), "{given:?}");
    }
    assert!(check(&["--lease-duration=15.5s"]).unwrap_err().contains("whole number of seconds"));
    assert!(check(&["--node-lease-duration=2s"]).unwrap_err().contains("4s at least"));
}

#[test]
fn flags_that_need_nothing_say_why_and_those_of_missing_parts_are_named() {
    let given = flags(
        &matches([
            "--kubelet-image=x",
            "--kubelet-cpu-requests=250m",
            "--disable-kubelet-certificate-generation",
            "--broker-mode=true",
            "--enable-storage=false",
            "--cluster-name=milan",
        ])
        .unwrap(),
    );
    let needless = needless(&given);
    let named: Vec<_> = needless.values().flatten().map(String::as_str).collect();
    assert_eq!(named.len(), 3, "{needless:?}");
    assert!(needless.keys().all(|reason| reason.contains("all virtual nodes live in the manager's process")));
    // What was set to its default asks for nothing, so nothing is missing.
    assert_eq!(without_effect(&given), ["--broker-mode"]);
    let bare = flags(&matches([""; 0]).unwrap());
    assert!(super::report::needless(&bare).is_empty() && without_effect(&bare).is_empty());
}

#[test]
fn the_configuration_in_the_log_hides_what_may_be_secret() {
    let given = flags(
        &matches([
            "--kubelet-extra-args=--token=hunter2",
            "--kubelet-extra-args=hunter2",
            "--cluster-name=milan",
        ])
        .unwrap(),
    );
    assert_eq!(shown(flag(&given, "cluster-name")).as_deref(), Some("--cluster-name=milan"));
    assert_eq!(shown(flag(&given, "cluster-id")), None);
    let extra = shown(flag(&given, "kubelet-extra-args")).unwrap();
    assert_eq!(extra, "--kubelet-extra-args=--token=… --kubelet-extra-args=…");
}

/// What the manager may do with any object, and not only with those that a rule names: kinds that are Liqo's own, and these.
const ANY: &[(&str, &[&str])] = &[
    // Tenant namespaces have names that follow from peers, and RBAC knows no labels.
    ("namespaces", &["get", "list", "watch", "patch", "delete"]),
    ("secrets", &["get", "list", "watch", "patch", "delete"]),
    ("roles", &["list", "watch", "patch"]),
    ("rolebindings", &["get", "list", "watch", "patch", "delete"]),
    ("certificatesigningrequests", &["get", "list", "watch"]),
    ("certificatesigningrequests/approval", &["patch", "update"]),
    // Looked at, never changed.
    ("clusterrolebindings", &["list"]),
    ("nodes", &["list"]),
    // In Liqo's own namespace alone.
    ("configmaps", &["list", "watch", "patch", "delete"]),
];

#[test]
fn no_room_asks_twice_and_what_is_not_liqos_own_is_named_or_listed_here() {
    let rooms = [RULES, liqo_identity::RULES, liqo_authentication::RULES];
    let discovery = [liqo_discovery::RULES, liqo_discovery::WAN_RULES].concat();
    for rules in rooms.into_iter().chain([discovery.as_slice()]) {
        let mut seen = BTreeSet::new();
        for rule in rules {
            for (group, resource, verb) in rule.groups.iter().flat_map(|group| {
                rule.resources
                    .iter()
                    .flat_map(move |resource| rule.verbs.iter().map(move |verb| (group, resource, verb)))
            }) {
                assert!(
                    seen.insert((rule.scope, group, resource, verb, rule.names)),
                    "{verb} {resource} twice"
                );
                let listed = ANY.iter().any(|(any, verbs)| any == resource && verbs.contains(verb));
                let bound = *verb == "create" || !rule.names.is_empty() || group.ends_with(".liqo.io");
                assert!(bound || listed, "{verb} of any {resource}: {}", rule.why);
            }
        }
    }
    assert!(NOTES.iter().any(|(_, note)| *note == Note::Later), "then this note can go");
}
