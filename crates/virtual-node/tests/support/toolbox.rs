//! An image with a shell, `cat`, `sleep` and `tar`, made of this machine's own: nothing can be pulled here.

use std::collections::BTreeSet;
use std::process::Command;

use liqo_sandbox::TestCluster;
use liqo_sandbox::image::{Image, Layer};

pub(crate) const IMAGE: &str = "localhost/toolbox:1";
/// Where they are here, and there.
const PROGRAMS: [(&str, &str); 4] = [
    ("/usr/bin/dash", "/bin/sh"),
    ("/usr/bin/cat", "/bin/cat"),
    ("/usr/bin/sleep", "/bin/sleep"),
    ("/usr/bin/tar", "/bin/tar"),
];

/// Loads it into the cluster's nodes.
pub(crate) fn load(cluster: &TestCluster<'_>) {
    let mut layer = Layer::new().directory("/tmp", 0o1777);
    for (here, there) in PROGRAMS {
        layer = layer.file_from(there, here, 0o755);
    }
    for library in libraries() {
        layer = layer.file_from(library.clone(), library, 0o755);
    }
    let archive = cluster.plan().dir.join("toolbox.tar");
    Image::new(IMAGE).layer(layer).env("PATH", "/bin").write(&archive).unwrap();
    cluster.load_image_where_missing(&archive).unwrap();
}

/// What they need to run.
fn libraries() -> BTreeSet<String> {
    let output = Command::new("ldd").args(PROGRAMS.map(|(here, _)| here)).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let path = |line: &str| line.split_whitespace().find(|word| word.starts_with('/')).map(str::to_owned);
    text.lines().filter(|line| !line.ends_with(':')).filter_map(path).collect()
}
