use std::collections::BTreeMap;

use serde_json::json;

use super::{Id, Owner, owner, superfluous};

fn id(api_version: &str, kind: &str, namespace: Option<&str>, name: &str) -> Id {
    Id {
        api_version: api_version.into(),
        kind: kind.into(),
        namespace: namespace.map(str::to_owned),
        name: name.into(),
    }
}

#[test]
fn an_object_says_who_it_is() {
    let object = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a"}});
    assert_eq!(Id::of(&object, Some("liqo")).to_string(), "Deployment liqo/a");
    let elsewhere =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "b"}});
    assert_eq!(Id::of(&elsewhere, Some("liqo")).to_string(), "ConfigMap b/a");
    assert_eq!(Id::of(&elsewhere, None).to_string(), "ConfigMap a");
}

#[test]
fn the_same_object_in_another_version_of_its_group_is_the_same() {
    let old = id("flowcontrol.apiserver.k8s.io/v1beta3", "FlowSchema", None, "a");
    let new = id("flowcontrol.apiserver.k8s.io/v1", "FlowSchema", None, "a");
    assert!(old.is_same(&new));
    assert!(!old.is_same(&id("other/v1", "FlowSchema", None, "a")));
}

#[test]
fn what_an_older_version_made_goes_once_and_what_is_kept_stays() {
    let wanted = [id("v1", "ConfigMap", Some("liqo"), "wanted")];
    let old = id("v1", "ConfigMap", Some("liqo"), "old");
    let noted = [wanted[0].clone(), old.clone(), id("v1", "ConfigMap", Some("other"), "dashboard")];
    let labelled = [wanted[0].clone(), old.clone(), id("v1", "Secret", Some("liqo"), "identity")];
    let found = superfluous(&wanted, &noted, &labelled, |id| id.name == "identity");
    assert_eq!(found, [old, id("v1", "ConfigMap", Some("other"), "dashboard")]);
}

#[test]
fn labels_tell_whose_an_object_is() {
    let labels = |pairs: &[(&str, &str)]| -> BTreeMap<String, String> {
        pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    };
    let part = ("app.kubernetes.io/part-of", "liqo-rs");
    assert_eq!(owner(Some(&labels(&[part, ("app.kubernetes.io/managed-by", "liqoctl")]))), Owner::Ours);
    assert_eq!(owner(Some(&labels(&[part]))), Owner::Ours);
    assert_eq!(owner(Some(&labels(&[part, ("app.kubernetes.io/managed-by", "Helm")]))), Owner::Helm);
    assert_eq!(owner(Some(&labels(&[("app.kubernetes.io/part-of", "liqo")]))), Owner::Foreign);
    assert_eq!(owner(None), Owner::Foreign);
}
