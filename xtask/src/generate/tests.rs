use super::*;

/// A repository of its own, gone when the test ends.
struct Repository(std::path::PathBuf);

impl Repository {
    fn new(test: &str) -> Self {
        let root = std::env::temp_dir().join(format!("xtask-{}-{test}", std::process::id()));
        fs::create_dir_all(&root).unwrap();
        Self(root)
    }

    fn files(&self) -> BTreeMap<String, Vec<u8>> {
        read_folder(&self.0.join("made")).unwrap()
    }
}

impl Drop for Repository {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn made(files: &[(&str, &str)]) -> [Folder; 1] {
    let files = files.iter().map(|(name, content)| ((*name).to_owned(), (*content).to_owned())).collect();
    [Folder { path: "made", files }]
}

#[test]
fn what_was_written_passes_the_check() {
    let repository = Repository::new("pass");
    let folders = made(&[("a.yaml", "a"), ("b.yaml", "b")]);
    write(&repository.0, &folders).unwrap();
    check(&repository.0, &folders).unwrap();
    assert_eq!(repository.files().len(), 2);
}

#[test]
fn the_check_names_what_is_missing_differs_or_is_stray_and_changes_nothing() {
    let repository = Repository::new("names");
    write(&repository.0, &made(&[("same", "1"), ("differs", "1"), ("stray", "1")])).unwrap();
    let before = repository.files();
    let error =
        check(&repository.0, &made(&[("same", "1"), ("differs", "2"), ("missing", "2")])).unwrap_err();
    let error = error.to_string();
    for line in
        ["differs: made/differs", "missing: made/missing", "stray:   made/stray", "cargo xtask generate"]
    {
        assert!(error.contains(line), "{error}");
    }
    assert!(!error.contains("made/same"), "{error}");
    assert_eq!(repository.files(), before);
}

#[test]
fn writing_removes_what_nothing_makes_any_more() {
    let repository = Repository::new("removes");
    write(&repository.0, &made(&[("old", "1"), ("kept", "1")])).unwrap();
    write(&repository.0, &made(&[("kept", "2")])).unwrap();
    assert_eq!(repository.files(), BTreeMap::from([("kept".to_owned(), b"2".to_vec())]));
}

#[test]
fn there_is_one_file_per_kind_and_it_reads_back_as_the_same_definition() {
    let folders = crds::folders().unwrap();
    let crds = liqo_api::crds();
    assert_eq!(folders[0].files.len(), crds.len());
    assert_eq!(folders[0].files, folders[1].files, "the chart installs the same definitions");
    for crd in crds {
        let yaml = &folders[0].files[&format!("{}.yaml", crd.metadata.name.as_deref().unwrap())];
        assert!(yaml.starts_with(HEADER));
        let read: serde_json::Value = serde_saphyr::from_str(yaml).unwrap();
        let read: k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition =
            serde_json::from_value(read).unwrap();
        assert_eq!(read, crd);
    }
}

#[test]
fn the_roles_hold_every_rule_once_with_its_reason() {
    let folder = rbac::folder();
    let text = &folder.files["_rbac.tpl"];
    for (role, rules) in rbac::roles() {
        let mut all = String::new();
        // Only the one that keeps nodes has leases of nodes.
        let leases = (role == "controllerManager").then_some("nodeLeases");
        assert_eq!(text.contains(&format!("liqo.rbac.{role}.nodeLeases")), leases.is_some(), "{role}");
        for template in ["cluster", "namespace"].into_iter().chain(leases) {
            let begin = format!("{{{{- define \"liqo.rbac.{role}.{template}\" -}}}}\n");
            let (_, rest) = text.split_once(&begin).unwrap();
            let (yaml, _) = rest.split_once("{{- end }}").unwrap();
            let rules: Vec<serde_json::Value> = serde_saphyr::from_str(yaml).unwrap();
            assert!(rules.iter().all(|rule| rule["verbs"].is_array()), "{yaml}");
            // What consumers may do is bound to their own namespaces; nothing of it holds in the whole cluster.
            let is_for_others = role == "remoteTenant" && template == "cluster";
            assert_eq!(rules.is_empty(), is_for_others, "{role} {template}: {yaml}");
            all += yaml;
        }
        for rule in &rules {
            let same = rules.iter().filter(|other| other.why == rule.why).count();
            assert_eq!(all.matches(&format!("# {}\n", rule.why)).count(), same, "{}", rule.why);
            let create = rule.verbs.contains(&"create");
            // Who posts says no name; who applies does, which takes both verbs.
            let applies = rule.verbs.contains(&"patch");
            assert!(
                !create || rule.names.is_empty() || applies,
                "posting cannot be bound to names: {}",
                rule.why
            );
            assert!(!rule.verbs.contains(&"*") && !rule.resources.contains(&"*"), "{}", rule.why);
        }
    }
}

#[test]
fn a_rule_that_another_gives_anyway_is_left_out_and_its_reason_kept() {
    use liqo_kit::rbac::Rule;
    let rules = [
        Rule::namespace(&[""], &["secrets"], &["list"], "one by name").named(&["a"]),
        Rule::namespace(&[""], &["secrets"], &["list", "create"], "those here"),
        Rule::cluster(&[""], &["secrets"], &["list"], "those everywhere"),
        Rule::cluster(&[""], &["secrets"], &["list"], "everywhere, too"),
        Rule::cluster(&[""], &["nodes"], &["list"], "another kind"),
    ];
    let found: Vec<_> =
        rbac::merged(&rules).into_iter().map(|given| (given.rule.why, given.reasons)).collect();
    let expected = [
        ("those here", vec!["one by name", "those here"]),
        ("those everywhere", vec!["those everywhere", "everywhere, too"]),
        ("another kind", vec!["another kind"]),
    ];
    assert_eq!(found, expected);
}
