use serde_json::{Value, json};

use super::*;

fn view(status: &Value) -> PodView {
    let pod = json!({"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}, "status": status});
    PodView::new(&serde_json::from_value(pod).unwrap())
}

#[test]
fn the_word_is_the_one_that_kubectl_shows() {
    for (status, word, message) in [
        (json!({}), "Unknown", ""),
        (json!({"phase": "Running"}), "Running", ""),
        (json!({"phase": "Failed", "reason": "Evicted", "message": "disk"}), "Evicted", "disk"),
        (
            json!({"phase": "Running", "containerStatuses": [container(&json!({"waiting": {"reason": "CrashLoopBackOff", "message": "m"}}))]}),
            "CrashLoopBackOff",
            "m",
        ),
        (
            json!({"phase": "Running", "containerStatuses": [container(&json!({"terminated": {"exitCode": 2}}))]}),
            "ExitCode:2",
            "",
        ),
        (
            json!({"phase": "Pending", "containerStatuses": [container(&json!({"waiting": {}}))]}),
            "Pending",
            "",
        ),
    ] {
        let view = view(&status);
        assert_eq!((view.status.as_str(), view.message.as_str()), (word, message), "{status}");
        assert!(!view.is_ready());
    }
}

fn container(state: &Value) -> Value {
    json!({"name": "c", "image": "i", "imageID": "", "ready": false, "restartCount": 0, "state": state})
}

#[test]
fn of_several_ends_the_last_one_counts() {
    let ended = |at: &str, code: i32| {
        let mut it = container(&json!({"running": {}}));
        it["restartCount"] = json!(1);
        it["lastState"] = json!({"terminated": {"exitCode": code, "finishedAt": at}});
        it
    };
    let view = view(&json!({"phase": "Running", "containerStatuses": [
        ended("2030-01-01T00:00:00Z", 1), ended("2030-01-02T00:00:00Z", 2)
    ]}));
    assert_eq!((view.restarts, view.last_end.map(|end| end.exit_code)), (2, Some(2)));
}
