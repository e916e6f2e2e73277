use super::{Partial, ResourceName, ResourceProblem, Resources};
use crate::quantity::{Granularity, Quantity, Ratio, RoundTo, Rounding};

fn resources<const N: usize>(entries: [(&str, &str); N]) -> Resources {
    Resources::parse(entries).into_result().unwrap_or_else(|problems| panic!("{problems}"))
}

fn messages(partial: &Partial) -> Vec<String> {
    partial.problems.iter().map(ToString::to_string).collect()
}

#[test]
fn good_names_are_accepted() {
    let longest = "a".repeat(63);
    let prefixed = format!("{}/gpu", "a".repeat(253));
    for name in [
        "cpu",
        "ephemeral-storage",
        "hugepages-2Mi",
        "requests.cpu",
        "nvidia.com/gpu",
        "nvidia.com/mig-1g.5gb",
        "Example_1",
        "1",
        "a-b.c/D",
        &longest,
        &prefixed,
    ] {
        assert_eq!(name.parse::<ResourceName>().map(|parsed| parsed.as_str() == name), Ok(true), "{name}");
    }
}

#[test]
fn bad_names_are_refused_with_the_reason() {
    let long = "a".repeat(64);
    let long_prefix = format!("{}/gpu", "a".repeat(254));
    for (name, reason) in [
        ("", "the name is empty"),
        ("/gpu", "nothing before the '/'"),
        ("nvidia.com/", "the name is empty"),
        ("a/b/c", "more than one '/'"),
        ("-cpu", "the first and last"),
        ("cpu-", "the first and last"),
        ("c pu", "only letters"),
        ("prozessorkern-ä", "only letters"),
        ("Nvidia.com/gpu", "lower case"),
        ("nvidia..com/gpu", "must be a domain"),
        (".com/gpu", "must be a domain"),
        (&long, "longer than 63"),
        (&long_prefix, "longer than 253"),
    ] {
        let message = name.parse::<ResourceName>().unwrap_err().to_string();
        assert!(message.contains(reason), "{name}: {message}");
        assert!(message.ends_with("cpu, memory, hugepages-2Mi or nvidia.com/gpu"), "{message}");
    }
}

#[test]
fn one_bad_entry_does_not_spoil_the_others() {
    let partial = Resources::parse([
        ("cpu", "2"),
        ("memory", "4GB"),
        ("no such name", "1"),
        ("nvidia.com/gpu", "1"),
        ("pods", ""),
    ]);
    assert_eq!(partial.resources, resources([("cpu", "2"), ("nvidia.com/gpu", "1")]));
    let messages = messages(&partial);
    assert_eq!(messages.len(), 3, "{messages:?}");
    assert!(messages[0].starts_with("cannot read how much memory there is: \"4GB\""), "{}", messages[0]);
    assert!(messages[1].starts_with("\"no such name\" is not a resource name"), "{}", messages[1]);
    assert!(messages[2].starts_with("cannot read how much pods there is: \"\""), "{}", messages[2]);
}

#[test]
fn all_problems_are_in_one_error_for_who_wants_all_or_nothing() {
    let error = Resources::parse([("cpu", "x"), ("memory", "4Gi"), ("pods", "y")]).into_result().unwrap_err();
    assert_eq!(error.iter().len(), 2);
    let message = error.to_string();
    assert!(message.contains("how much cpu") && message.contains("; cannot read how much pods"), "{message}");
}

#[test]
fn negative_amounts_are_sorted_out_at_the_door() {
    let partial = resources([("cpu", "2"), ("memory", "-1Gi"), ("pods", "0")]).refuse_negative();
    assert_eq!(partial.resources, resources([("cpu", "2"), ("pods", "0")]));
    assert_eq!(messages(&partial), ["there cannot be -1Gi of memory: the amount must not be negative"]);
}

#[test]
fn sums_have_the_resources_of_both() {
    let a = resources([("cpu", "1500m"), ("memory", "1Gi")]);
    let b = resources([("cpu", "500m"), ("nvidia.com/gpu", "1")]);
    let sum = resources([("cpu", "2"), ("memory", "1Gi"), ("nvidia.com/gpu", "1")]);
    assert_eq!(a.checked_add(&b).into_result(), Ok(sum.clone()));
    assert_eq!(a.saturating_add(&b), sum);
}

#[test]
fn a_sum_that_overflows_in_one_resource_is_right_in_the_others() {
    let a = resources([("cpu", "1"), ("memory", "1e29")]);
    let partial = a.checked_add(&a);
    assert_eq!(partial.resources, resources([("cpu", "2")]));
    assert_eq!(
        messages(&partial),
        [
            "the result for memory is beyond 100000000000E, the largest quantity; check the amounts it comes from"
        ]
    );
    assert_eq!(a.saturating_add(&a), resources([("cpu", "2"), ("memory", "1e29")]));
}

#[test]
fn a_difference_below_zero_in_one_resource_is_right_in_the_others() {
    let capacity = resources([("cpu", "4"), ("memory", "1Gi")]);
    let used = resources([("cpu", "1"), ("memory", "3Gi"), ("nvidia.com/gpu", "1")]);
    let partial = capacity.checked_sub(&used);
    assert_eq!(partial.resources, resources([("cpu", "3")]));
    assert_eq!(
        messages(&partial),
        ["not enough memory: 3Gi wanted, 1Gi available", "not enough nvidia.com/gpu: 1 wanted, 0 available"]
    );
    assert_eq!(
        capacity.sub_to_zero(&used),
        resources([("cpu", "3"), ("memory", "0"), ("nvidia.com/gpu", "0")])
    );
}

#[test]
fn a_list_fits_when_every_resource_does() {
    let capacity = resources([("cpu", "4"), ("memory", "8Gi"), ("pods", "-1")]);
    for (wanted, fits) in [
        (resources([]), true),
        (resources([("cpu", "4"), ("memory", "8192Mi")]), true),
        (resources([("cpu", "4001m")]), false),
        (resources([("nvidia.com/gpu", "1")]), false),
        (resources([("nvidia.com/gpu", "0"), ("pods", "0")]), true),
        (resources([("cpu", "-1")]), true),
        (resources([("pods", "1n")]), false),
    ] {
        assert_eq!(wanted.fits_in(&capacity), fits, "{wanted} in {capacity}");
        assert_eq!(wanted.lacking_in(&capacity).is_empty(), fits, "{wanted} in {capacity}");
    }
    assert_eq!(
        resources([("cpu", "5"), ("memory", "1Gi"), ("pods", "1"), ("nvidia.com/gpu", "2")])
            .lacking_in(&capacity),
        resources([("cpu", "1"), ("nvidia.com/gpu", "2"), ("pods", "2")])
    );
}

#[test]
fn a_share_keeps_integers_whole_and_cpu_in_millicores() {
    let node = resources([("cpu", "3"), ("memory", "1001"), ("nvidia.com/gpu", "1")]);
    assert_eq!(
        node.scale(Ratio::percent(90), Rounding::TowardZero).into_result(),
        Ok(resources([("cpu", "2700m"), ("memory", "900"), ("nvidia.com/gpu", "0")]))
    );
    let generous_with_gpus = |name: &ResourceName| {
        let rounding =
            if name.as_str() == "nvidia.com/gpu" { Rounding::AwayFromZero } else { Rounding::TowardZero };
        RoundTo::new(Granularity::Whole, rounding)
    };
    assert_eq!(
        node.scale_with(Ratio::percent(90), generous_with_gpus).into_result(),
        Ok(resources([("cpu", "2"), ("memory", "900"), ("nvidia.com/gpu", "1")]))
    );
}

#[test]
fn a_share_that_overflows_in_one_resource_is_right_in_the_others() {
    let partial = resources([("cpu", "1"), ("memory", "1e29")]).scale(Ratio::percent(200), Rounding::Nearest);
    assert_eq!(partial.resources, resources([("cpu", "2")]));
    assert!(
        matches!(partial.problems.as_slice(), [ResourceProblem::Overflow { resource }] if resource.as_str() == "memory")
    );
}

#[test]
fn smaller_larger_and_capped_go_by_resource() {
    let a = resources([("cpu", "2"), ("memory", "1Gi")]);
    let b = resources([("cpu", "1"), ("pods", "5")]);
    assert_eq!(a.min(&b), resources([("cpu", "1"), ("memory", "0"), ("pods", "0")]));
    assert_eq!(a.max(&b), resources([("cpu", "2"), ("memory", "1Gi"), ("pods", "5")]));
    assert_eq!(a.capped_by(&b), resources([("cpu", "1"), ("memory", "1Gi")]));
}

#[test]
fn what_is_not_named_is_zero_but_not_named() {
    let mut list = resources([("cpu", "0")]);
    assert!(list.is_zero() && !list.is_empty());
    assert_eq!((list.get("memory"), list.amount("memory")), (None, Quantity::ZERO));
    assert_ne!(list, Resources::new());
    assert_eq!(list.remove("cpu"), Some(Quantity::ZERO));
    assert!(list.is_zero() && list.is_empty());
}

#[test]
fn a_list_is_printed_for_people() {
    assert_eq!(resources([("memory", "4096Mi"), ("cpu", "2")]).to_string(), "cpu=2, memory=4Gi");
    assert_eq!(Resources::new().to_string(), "nothing");
}

#[test]
fn json_is_a_map_and_errors_name_the_resource() {
    let list: Resources = serde_json::from_str(r#"{"memory": "1024Mi", "cpu": 2}"#).unwrap();
    assert_eq!(serde_json::to_string(&list).unwrap(), r#"{"cpu":"2","memory":"1Gi"}"#);

    let message = serde_json::from_str::<Resources>(r#"{"cpu": "two"}"#).unwrap_err().to_string();
    assert!(message.starts_with("resource cpu: \"two\" is not a quantity"), "{message}");
    let message = serde_json::from_str::<Resources>(r#"{"c p u": "2"}"#).unwrap_err().to_string();
    assert!(message.starts_with("\"c p u\" is not a resource name"), "{message}");
}
