use super::*;

fn notes(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

#[test]
fn annotations_decide_within_what_the_policy_allows() {
    let none = notes(&[]);
    let skip = notes(&[("liqo.io/skip-reflection", "true")]);
    let allow = notes(&[("liqo.io/allow-reflection", "true")]);
    let both = notes(&[("liqo.io/skip-reflection", "true"), ("liqo.io/allow-reflection", "true")]);
    let goes =
        |policy: Policy| [&none, &skip, &allow, &both].map(|notes| policy.lets(Some("a"), Some(notes)));
    assert_eq!(goes(Policy::DenyList), [true, false, true, false]);
    assert_eq!(goes(Policy::AllowList), [false, false, true, false]);
    assert_eq!(goes(Policy::Never), [false; 4]);
    assert!(Policy::AllowList.lets(Some("kube-root-ca.crt"), None), "tokens need it");
}

#[test]
fn policies_are_read_as_they_are_written_and_the_last_one_wins() {
    let mut all: Policies = "secret=AllowList, event=Never".parse().unwrap();
    assert_eq!(all.of("Secret"), Policy::AllowList);
    assert_eq!(all.of("Event"), Policy::Never);
    assert_eq!(all.of("ConfigMap"), Policy::DenyList);
    all.extend(["secret=Never".parse::<Policies>().unwrap()]);
    assert_eq!((all.of("Secret"), all.of("Event")), (Policy::Never, Policy::Never));
    assert_eq!("".parse::<Policies>().unwrap(), Policies::default());
    for (text, why) in [
        ("secret", "KIND=POLICY"),
        ("pods=Never", "is none of configmap"),
        ("secret=Sometimes", "is none of DenyList"),
        ("event=AllowList", "no annotations"),
    ] {
        let error = text.parse::<Policies>().unwrap_err();
        assert!(error.contains(why), "{error}");
    }
}
