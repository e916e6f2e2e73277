use k8s_openapi::api::core::v1::Secret;
use serde_json::json;

use super::{Notes, State};
use crate::objects::Id;

fn notes() -> Notes {
    Notes {
        state: State::Installed,
        version: "0.1.0".into(),
        values: json!({"enableHA": true}),
        objects: vec![Id {
            api_version: "v1".into(),
            kind: "ConfigMap".into(),
            namespace: Some("liqo".into()),
            name: "a".into(),
        }],
        revision: 3,
    }
}

#[test]
fn notes_are_read_as_they_were_written() {
    let secret = notes().secret("liqo", jiff::Timestamp::UNIX_EPOCH);
    assert_eq!(secret.type_.as_deref(), Some("liqo.io/installation"));
    assert_eq!(Notes::of(&secret), notes());
}

#[test]
fn what_cannot_be_understood_counts_as_never_written() {
    let mut secret = notes().secret("liqo", jiff::Timestamp::UNIX_EPOCH);
    for bytes in secret.data.as_mut().unwrap().values_mut() {
        bytes.0 = b"{garbage".to_vec();
    }
    let read = Notes::of(&secret);
    assert_eq!(
        (read.state, read.values, read.objects.len(), read.revision),
        (State::Installing, json!({}), 0, 0)
    );
    assert_eq!(Notes::of(&Secret::default()).version, "");
}
