//! The real Helm, and what it is asked about: the repository's chart with the value sets beside this file.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use liqo_chart::Release;
use serde_json::Value;

/// The version of Kubernetes that is rendered for; Helm alone would take the one it was built with.
pub(crate) const KUBERNETES: &str = "1.34.4";
const HELM: &str = "helm-v3.19.4/helm";

/// Directory of the repository.
pub(crate) fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the repository is there")
}

/// Directory of the chart.
pub(crate) fn chart_directory() -> PathBuf {
    repository().join("deploy/helm/liqo")
}

/// Text of a file of the repository.
pub(crate) fn read(path: impl AsRef<Path>) -> String {
    let path = repository().join(path);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// One of the value sets.
#[derive(Debug)]
pub(crate) struct Set {
    pub(crate) name: String,
    pub(crate) path: PathBuf,
    pub(crate) text: String,
}

/// All value sets, in the order of their names.
pub(crate) fn sets() -> Vec<Set> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/values");
    let files = fs::read_dir(&directory).expect("the value sets are there");
    let paths: Vec<PathBuf> = files.map(|file| file.expect("a file").path()).collect();
    let named = paths.into_iter().map(|path| {
        let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
        let text = fs::read_to_string(&path).expect("a value set can be read");
        (name.clone(), Set { name, path, text })
    });
    named.collect::<BTreeMap<_, _>>().into_values().collect()
}

/// The release that Helm renders for.
pub(crate) fn release(name: &str, namespace: &str) -> Release {
    Release {
        name: name.to_owned(),
        namespace: namespace.to_owned(),
        service: "Helm".to_owned(),
        is_upgrade: false,
        revision: 1,
        kubernetes_version: KUBERNETES.to_owned(),
        api_versions: vec![],
    }
}

/// Runs Helm.
pub(crate) fn helm<S: AsRef<std::ffi::OsStr>>(arguments: impl IntoIterator<Item = S>) -> Output {
    let program = program();
    let mut command = Command::new(&program);
    command.args(arguments).env_remove("KUBECONFIG").env_remove("HELM_NAMESPACE");
    command.output().unwrap_or_else(|error| panic!("cannot run {}: {error}", program.display()))
}

/// `helm template` of the chart for [`release`], with more arguments.
pub(crate) fn template<S: AsRef<std::ffi::OsStr>>(
    release: &Release,
    more: impl IntoIterator<Item = S>,
) -> Result<Vec<Value>, String> {
    let mut arguments: Vec<std::ffi::OsString> = vec!["template".into(), release.name.clone().into()];
    arguments.push(chart_directory().into());
    arguments.extend(["--namespace", &release.namespace].map(Into::into));
    arguments.extend(["--kube-version", &release.kubernetes_version].map(Into::into));
    arguments.extend(more.into_iter().map(|argument| argument.as_ref().to_owned()));
    let output = helm(&arguments);
    if output.status.success() { Ok(documents(&text(&output.stdout))) } else { Err(text(&output.stderr)) }
}

/// The documents of a YAML stream, without the empty ones.
pub(crate) fn documents(yaml: &str) -> Vec<Value> {
    let all = serde_saphyr::from_multiple::<Value>(yaml);
    let all = all.unwrap_or_else(|error| panic!("not YAML: {error}\n{yaml}"));
    all.into_iter().filter(|document| !document.is_null()).collect()
}

/// Bytes that a program printed.
pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Kind, namespace and name of an object.
pub(crate) fn key(object: &Value) -> String {
    let metadata = &object["metadata"];
    let part = |value: &Value| value.as_str().unwrap_or("-").to_owned();
    format!("{} {}/{}", part(&object["kind"]), part(&metadata["namespace"]), part(&metadata["name"]))
}

/// The object of this kind and name.
pub(crate) fn find<'a>(objects: &'a [Value], kind: &str, name: &str) -> &'a Value {
    let found = objects.iter().find(|object| object["kind"] == kind && object["metadata"]["name"] == name);
    found
        .unwrap_or_else(|| panic!("no {kind} {name} among {:?}", objects.iter().map(key).collect::<Vec<_>>()))
}

#[expect(clippy::disallowed_methods, reason = "a test has no argument struct")]
fn program() -> PathBuf {
    let variable = |name: &str| std::env::var_os(name).map(PathBuf::from);
    let home = variable("HOME").unwrap_or_default();
    let cache = variable("XDG_CACHE_HOME").unwrap_or_else(|| home.join(".cache")).join("liqo-rs");
    let cached = variable("LIQO_TOOLS_DIR").unwrap_or(cache).join(HELM);
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut places =
        std::iter::once(cached.clone()).chain(std::env::split_paths(&path).map(|dir| dir.join("helm")));
    places.find(|place| place.is_file()).unwrap_or_else(|| {
        panic!("no Helm at {} nor in the PATH; `tools/install helm` builds it", cached.display())
    })
}
