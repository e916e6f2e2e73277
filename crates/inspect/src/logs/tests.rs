use serde_json::json;

use super::select::select;
use super::*;

fn pod(name: &str, component: &str) -> Pod {
    serde_json::from_value(json!({
        "metadata": {"name": name, "uid": name, "labels": {"app.kubernetes.io/component": component}},
        "spec": {"containers": [{"name": "c"}]},
    }))
    .unwrap()
}

fn chosen(request: &LogRequest, leader: Option<&str>) -> Result<Vec<String>, String> {
    let pods = [
        pod("manager-1", "controller-manager"),
        pod("manager-2", "controller-manager"),
        pod("gateway-1", "gateway"),
    ];
    let (sources, _) = select(&pods, leader, request, "liqo").map_err(|error| error.to_string())?;
    Ok(sources.into_iter().map(|source| source.pod).collect())
}

#[test]
fn of_several_replicas_the_one_that_leads_is_shown_unless_all_are_wanted() {
    let everything = LogRequest::default();
    assert_eq!(chosen(&everything, Some("manager-2")).unwrap(), ["gateway-1", "manager-2"]);
    assert_eq!(chosen(&everything, None).unwrap(), ["gateway-1", "manager-1", "manager-2"]);
    assert_eq!(chosen(&everything, Some("gone")).unwrap(), ["gateway-1", "manager-1", "manager-2"]);
    let all = LogRequest { all: true, ..LogRequest::default() };
    assert_eq!(chosen(&all, Some("manager-2")).unwrap().len(), 3);
}

#[test]
fn a_component_is_named_with_or_without_liqo_and_a_pod_by_its_name() {
    let one = |name: &str| {
        chosen(&LogRequest { component: Some(name.into()), ..LogRequest::default() }, Some("manager-1"))
    };
    assert_eq!(one("controller-manager").unwrap(), ["manager-1"]);
    assert_eq!(one("liqo-controller-manager").unwrap(), ["manager-1"]);
    assert_eq!(one("manager-2").unwrap(), ["manager-2"]);
    let said = one("nothing").unwrap_err();
    assert!(
        said.contains("\"nothing\"") && said.contains("controller-manager, gateway, manager-1"),
        "{said}"
    );
}

#[test]
fn no_pod_is_an_error_that_says_where_to_look() {
    let said = select(&[], None, &LogRequest::default(), "liqo").unwrap_err().to_string();
    assert!(said.contains("namespace liqo") && said.contains("liqoctl status"), "{said}");
}

#[test]
fn the_node_s_time_is_taken_off_the_line() {
    let time = "2026-01-01T00:00:00.123456789Z";
    assert_eq!(stream::split(&format!("{time} a line")), (time, "a line"));
    assert_eq!(stream::split(&format!("{time} ")), (time, ""));
    assert_eq!(stream::split(time), (time, ""));
    assert_eq!(stream::split("unable to retrieve container logs"), ("", "unable to retrieve container logs"));
}

#[test]
fn the_oldest_line_is_next_whatever_the_offset_of_its_time() {
    let times = ["2026-01-01T00:00:02Z", "2026-01-01T01:00:01+01:00", "2026-01-01T00:00:01.5Z"];
    assert_eq!(merge::oldest(times.into_iter()), Some(1));
    assert_eq!(merge::oldest(["2026-01-01T00:00:02Z", ""].into_iter()), Some(1));
    assert_eq!(merge::oldest(std::iter::empty()), None);
}
