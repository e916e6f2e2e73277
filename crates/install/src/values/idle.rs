//! Values that are kept and have no effect in this version. Whoever gives one is told so, rather than left to wonder.

use serde_json::{Value, json};

/// A value, the flag that stands for it, what it is when nobody asks for anything, and why nothing comes of it.
struct Idle {
    path: &'static str,
    flag: Option<&'static str>,
    nothing: fn() -> Value,
    why: &'static str,
}

const NO_TUNNELS: &str = "it makes no tunnels between clusters yet";

const IDLE: [Idle; 5] = [
    Idle {
        path: "controllerManager.config.brokerMode",
        flag: Some("--broker"),
        nothing: || json!(false),
        why: "a cluster offers what it has itself, not yet what its peers offer",
    },
    Idle {
        path: "controllerManager.config.externalMonitor",
        flag: None,
        nothing: || json!(""),
        why: "nobody else is asked yet what to offer",
    },
    Idle { path: "networkConfig.mtu", flag: Some("--mtu"), nothing: || Value::Null, why: NO_TUNNELS },
    Idle {
        path: "gateway.config.listeningPort",
        flag: Some("--vpn-listening-port"),
        nothing: || Value::Null,
        why: NO_TUNNELS,
    },
    Idle {
        path: "virtualKubelet.imageName",
        flag: None,
        nothing: || json!(""),
        why: "the manager serves all virtual nodes itself, so there is no virtual kubelet to start",
    },
];

/// What is said about those that people gave.
pub(super) fn notes(user: &Value) -> impl Iterator<Item = String> {
    let given = move |idle: &&Idle| {
        let value = idle.path.split('.').try_fold(user, |value, key| value.get(key));
        value.is_some_and(|value| !value.is_null() && *value != (idle.nothing)())
    };
    IDLE.iter().filter(given).map(|idle| {
        let flag = idle.flag.map(|flag| format!(" ({flag})")).unwrap_or_default();
        format!("{}{flag} is kept, and has no effect in this version: {}", idle.path, idle.why)
    })
}
