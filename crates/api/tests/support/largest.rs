//! The largest objects that the schemas allow.

use serde_json::{Map, Value, json};

/// The largest amount that a quantity can be.
const LARGEST: &str = "1000000000000000000";

/// Fills the spec of an object of this kind; `false` for kinds that are never large.
pub(crate) fn fill(plural: &str, spec: &mut Value) -> bool {
    match plural {
        "namespacemaps" => spec["desiredMapping"] = map(4096, Value::from),
        "namespaceoffloadings" => {
            let term = json!({ "matchExpressions": vec![requirement(256); 8] });
            spec["clusterSelector"]["nodeSelectorTerms"] = vec![term; 8].into();
        }
        "resourceoffers" => offer(spec),
        "resourcerequests" => spec["resources"] = amounts(),
        "clusterconfigs" => spec["borrowing"] = borrowing(),
        "foreignclusters" => {
            spec["foreignAuthUrl"] = format!("https://auth.example.com/{}", "p".repeat(999)).into();
            spec["foreignProxyUrl"] = spec["foreignAuthUrl"].clone();
            let marks = ("-----BEGIN CERTIFICATE-----\n", "\n-----END CERTIFICATE-----\n");
            let inner = "A".repeat(32_768 - marks.0.len() - marks.1.len());
            spec["authCaBundle"] = format!("{}{inner}{}", marks.0, marks.1).into();
            spec["borrowing"] = borrowing();
        }
        "sharingpolicies" => policy(spec),
        "contracts" => spec["terms"] = format!("{{{}}}", "t".repeat(131_070)).into(),
        _ => return false,
    }
    true
}

fn name(index: usize) -> String {
    format!("{index:04}-{}", "n".repeat(58))
}

fn names(count: usize) -> impl Iterator<Item = String> {
    (0..count).map(name)
}

fn map(count: usize, value: impl Fn(String) -> Value) -> Value {
    names(count).map(|name| (name.clone(), value(name))).collect::<Map<_, _>>().into()
}

fn amounts() -> Value {
    map(64, |_| json!(LARGEST))
}

fn requirement(values: usize) -> Value {
    json!({ "key": "k".repeat(63), "operator": "In", "values": names(values).collect::<Vec<_>>() })
}

fn selector(values: usize) -> Value {
    json!({ "matchLabels": map(32, Value::from), "matchExpressions": vec![requirement(values); 32] })
}

fn pools() -> Value {
    let requirement =
        json!({ "key": "k".repeat(63), "operator": "In", "values": names(16).collect::<Vec<_>>() });
    let selector = json!({ "matchLabels": map(4, Value::from), "matchExpressions": vec![requirement; 4] });
    let pool = |name| json!({ "name": name, "nodeSelector": selector, "labels": map(16, Value::from) });
    names(16).map(pool).collect()
}

fn service_level() -> Value {
    map(32, |_| json!("p".repeat(1024)))
}

fn prices() -> Value {
    json!({ "currency": "CREDITSCREDI", "period": "1w2d3h4m5s", "perUnit": amounts() })
}

fn borrowing() -> Value {
    let currencies: Vec<String> = (0..16).map(|index| format!("CURRENCY{index:04}")).collect();
    json!({
        "automatic": true,
        "wanted": amounts(),
        "minimum": amounts(),
        "currencies": currencies,
        "maximumPrices": prices(),
        "maximumTotal": { "currency": "EUR", "period": "Monthly", "amount": LARGEST },
    })
}

fn offer(spec: &mut Value) {
    spec["resourceQuota"]["hard"] = amounts();
    spec["prices"] = amounts();
    spec["currency"] = json!("EUR");
    spec["pricePeriod"] = json!("Monthly");
    spec["labels"] = map(64, Value::from);
    spec["pools"] = names(16)
        .map(|name| json!({ "name": name, "resources": amounts(), "labels": map(16, Value::from) }))
        .collect();
    spec["storageClasses"] = names(64).map(|name| json!({ "storageClassName": name })).collect();
    spec["services"] = names(256).map(|name| json!({ "namespace": name, "name": name })).collect();
    spec["largestPod"] = json!({ "onOneNode": amounts(), "ofEach": amounts() });
    spec["contract"] = json!({ "duration": "24h", "serviceLevel": service_level() });
}

fn policy(spec: &mut Value) {
    let patterns = vec!["p".repeat(512); 64];
    let share = json!({
        "percentage": 100, "overcommit": "99.999", "rounding": "Up", "perPeerPercentage": 100, "cap": LARGEST,
        "perPeerCap": LARGEST, "reserve": LARGEST, "autoscaled": LARGEST,
    });
    let window = json!({
        "days": ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"], "from": "00:00", "to": "24:00",
        "timeZone": "z".repeat(64),
    });
    let mut peers = selector(256);
    peers["clusterIDs"] = names(4096).collect();
    *spec = json!({
        "peers": peers,
        "resources": patterns,
        "nodeSelector": selector(64),
        "pools": pools(),
        "shares": map(64, |_| share.clone()),
        "storageClasses": patterns,
        "defaultStorageClass": "d".repeat(253),
        "services": patterns,
        "images": patterns,
        "prices": prices(),
        "windows": vec![window; 64],
        "notBefore": "2026-01-02T03:04:05Z",
        "notAfter": "2027-01-02T03:04:05Z",
        "contract": { "offerValidity": "1h", "duration": "30d", "serviceLevel": service_level() },
    });
}
