use serde_json::json;

use super::{Right, Subject, granted, needed, snippet};
use crate::changes::Action;
use crate::changes::testing::{planned, role};

fn texts(rights: &[Right]) -> Vec<String> {
    rights.iter().map(ToString::to_string).collect()
}

#[test]
fn objects_are_read_and_applied_and_only_what_goes_is_deleted() {
    let all = [
        planned("apps/v1", "Deployment", Some("liqo"), "a", Action::Create),
        planned("v1", "ConfigMap", Some("liqo"), "b", Action::Remove),
    ];
    let rights = texts(&needed(&all, "liqo"));
    for right in [
        "create deployments.apps in namespace liqo",
        "patch deployments.apps in namespace liqo",
        "delete configmaps in namespace liqo",
    ] {
        assert!(rights.iter().any(|one| one == right), "{right}: {rights:?}");
    }
    assert!(!rights.iter().any(|one| one == "delete deployments.apps in namespace liqo"), "{rights:?}");
}

#[test]
fn the_lock_and_the_notes_need_rights_too() {
    let rights = texts(&needed(&[], "liqo"));
    for right in [
        "create leases.coordination.k8s.io in namespace liqo",
        "patch secrets in namespace liqo",
        "get clusterconfigs.config.liqo.io",
    ] {
        assert!(rights.iter().any(|one| one == right), "{right}: {rights:?}");
    }
}

#[test]
fn what_a_role_hands_out_must_be_held_or_escalated() {
    let rules = json!([{"apiGroups": ["", "apps"], "resources": ["pods"], "verbs": ["get"]},
        {"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"], "resourceNames": ["a", "b"]}]);
    let grants = granted(&[role("ClusterRole", None, &rules)]);
    assert_eq!(
        texts(&grants[0].escalate),
        [
            "escalate clusterroles.rbac.authorization.k8s.io manager",
            "bind clusterroles.rbac.authorization.k8s.io manager"
        ]
    );
    assert_eq!(texts(&grants[0].own), ["get pods", "get pods.apps", "get secrets a", "get secrets b"]);
}

#[test]
fn a_role_that_is_there_as_it_should_be_hands_out_nothing_new() {
    let mut there = role("Role", Some("liqo"), &json!([]));
    there.action = Action::Keep;
    assert_eq!(granted(&[there]), []);
}

#[test]
fn the_administrator_gets_roles_with_exactly_what_is_missing() {
    let missing = [
        Right::new("create", "rbac.authorization.k8s.io", "clusterroles", None),
        Right::new("patch", "rbac.authorization.k8s.io", "clusterroles", None),
        Right::new("create", "rbac.authorization.k8s.io", "clusterrolebindings", None),
        Right::new("patch", "rbac.authorization.k8s.io", "clusterrolebindings", None),
        Right::new("escalate", "rbac.authorization.k8s.io", "clusterroles", None).named("manager"),
        Right::new("get", "", "secrets", Some("liqo")),
    ];
    let text = snippet(&missing, Some(&Subject::of("jane")));
    let documents: Vec<serde_json::Value> =
        text.split("---\n").map(|one| serde_saphyr::from_str(one).unwrap()).collect();
    let kinds: Vec<&str> = documents.iter().map(|one| one["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"]);
    assert_eq!(
        documents[0]["rules"],
        json!([
            {"apiGroups": ["rbac.authorization.k8s.io"], "resources": ["clusterrolebindings", "clusterroles"], "verbs": ["create", "patch"]},
            {"apiGroups": ["rbac.authorization.k8s.io"], "resources": ["clusterroles"], "verbs": ["escalate"], "resourceNames": ["manager"]},
        ])
    );
    assert_eq!(documents[3]["metadata"]["namespace"], "liqo");
    assert_eq!(
        documents[3]["subjects"],
        json!([{"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": "jane"}])
    );
}

#[test]
fn service_accounts_are_bound_as_such() {
    assert_eq!(
        Subject::of("system:serviceaccount:ci:deployer"),
        Subject::ServiceAccount("ci".into(), "deployer".into())
    );
    assert_eq!(Subject::of("system:serviceaccount:ci:deployer").to_string(), "service account ci/deployer");
}
