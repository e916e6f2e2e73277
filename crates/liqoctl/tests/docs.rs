//! The documents are true: what they tell people to run works, and what they point to exists.
//!
//! A block of commands that follows the line `<!-- runs in tests -->` is run: those of one document in order and in
//! one bash, at the repository's root, with this build's `liqoctl` and a sandbox of the test's own.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test can do nothing else about it")]

#[path = "support/cli.rs"]
mod support;

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use support::Cli;

/// The line before a block that must work.
const RUNS: &str = "<!-- runs in tests -->";
/// How a block of commands begins.
const SHELL: &str = "```sh";
/// How every block ends.
const FENCE: &str = "```";
/// A document needs a tenth of it on an idle machine. By ending itself, the test can still clean up.
const DEADLINE_SECONDS: &str = "240";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

fn read(document: &str) -> String {
    let path = root().join(document);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

#[test]
fn what_the_readme_says_works() {
    run("README.md", &Cli::new("readme"));
}

#[test]
fn what_the_guide_to_the_sandbox_says_works() {
    run("docs/sandbox.md", &Cli::new("guide"));
}

/// Needs `make image`.
#[test]
fn what_the_guide_to_installing_says_works() {
    run("docs/install.md", &Cli::new("install"));
}

/// Needs `make image`.
#[test]
fn what_the_guide_to_peering_says_works() {
    run("docs/peering.md", &Cli::new("peering"));
}

/// Needs `make image`.
#[test]
fn what_the_guide_to_offloading_says_works() {
    run("docs/offloading.md", &Cli::new("offload"));
}

#[test]
fn what_the_guide_to_contracts_says_works() {
    run("docs/contracts.md", &Cli::new("contracts"));
}

fn run(document: &str, cli: &Cli) {
    let place = Path::new(env!("CARGO_TARGET_TMPDIR")).join(&cli.name);
    let (script, transcript) = (place.with_extension("sh"), place.with_extension("log"));
    fs::write(&script, script_of(document)).unwrap();
    let printed = File::create(&transcript).unwrap();
    let status = Command::new("timeout")
        .args(["--kill-after=10", DEADLINE_SECONDS, "bash"])
        .arg(&script)
        .current_dir(root())
        .envs(cli.environment())
        .stdin(Stdio::null())
        .stdout(printed.try_clone().unwrap())
        .stderr(printed)
        .status()
        .unwrap();
    let said = fs::read_to_string(&transcript).unwrap();
    for file in [script, transcript] {
        fs::remove_file(file).unwrap();
    }
    // `timeout` ends with this code when the time is up.
    let why = if status.code() == Some(124) { "took too long" } else { "failed" };
    assert!(status.success(), "the last command below {why} ({status}):\n{said}");
    cli.assert_no_traces();
}

/// The document with everything but the marked commands blanked out, so that bash counts lines as the document does.
fn script_of(document: &str) -> String {
    let bin = Path::new(env!("CARGO_BIN_EXE_liqoctl")).parent().unwrap();
    // Shows each command with its line before it runs. Its own line is the document's title.
    let start = format!("PATH={}:$PATH; PS4='+ {document}:${{LINENO}}: '; set -euxo pipefail", bin.display());
    let (mut script, mut runs, mut blocks) = (vec![start], false, 0);
    let text = read(document);
    let mut lines = text.lines().skip(1);
    while let Some(line) = lines.next() {
        script.push(String::new());
        if line == RUNS {
            let next = lines.next().unwrap_or_default();
            assert_eq!(next, SHELL, "{document}: after {RUNS} comes a block of commands");
            script.push(String::new());
            (runs, blocks) = (true, blocks + 1);
        } else if line == FENCE {
            runs = false;
        } else if runs && let Some(last) = script.last_mut() {
            line.clone_into(last);
        }
    }
    assert!(blocks > 0, "{document} has nothing to run");
    script.join("\n") + "\n"
}

#[test]
fn the_guide_to_the_sandbox_names_every_command_and_option() {
    let guide = read("docs/sandbox.md");
    let headings: Vec<&str> = guide.lines().filter(|line| line.starts_with('#')).collect();
    let commands = listed_commands(&help(&[]));
    assert!(commands.len() > 10, "{commands:?}");
    let mut missing = Vec::new();
    for command in &commands {
        if !headings.iter().any(|heading| heading.contains(&format!("`{command}`"))) {
            missing.push(format!("a heading with `{command}`"));
        }
        let help = help(&[command]);
        let words = help.split_whitespace().map(|word| word.trim_end_matches([',', ']']));
        let options = words.clone().filter(|word| word.starts_with("--") && word.len() > 2);
        let variables = help.split("[env:").skip(1).filter_map(|rest| rest.trim_start().split('=').next());
        let unknown = options.chain(variables).filter(|word| *word != "--help" && !guide.contains(word));
        missing.extend(unknown.map(|word| format!("{word} of {command}")));
    }
    missing.extend(
        (!guide.contains(liqo_sandbox::KUBERNETES_VERSION)).then(|| "Kubernetes' version".to_owned()),
    );
    assert!(missing.is_empty(), "docs/sandbox.md lacks:\n{}", missing.join("\n"));
}

fn help(command: &[&str]) -> String {
    let mut liqoctl = Command::new(env!("CARGO_BIN_EXE_liqoctl"));
    let output = liqoctl.arg("sandbox").args(command).arg("--help").output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

fn listed_commands(help: &str) -> Vec<String> {
    let lines =
        help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    let names = lines.filter_map(|line| line.strip_prefix("  ").filter(|rest| !rest.starts_with(' ')));
    names.filter_map(|line| line.split_whitespace().next()).map(str::to_owned).collect()
}

#[test]
fn the_readme_names_every_make_target() {
    let readme = read("README.md");
    let makefile = read("Makefile");
    let targets: Vec<&str> = makefile
        .lines()
        .filter(|line| line.contains(": ## "))
        .filter_map(|line| line.split(':').next())
        .collect();
    assert!(targets.len() > 5, "{targets:?}");
    let missing: Vec<&&str> =
        targets.iter().filter(|target| !readme.contains(&format!("`make {target}`"))).collect();
    assert!(missing.is_empty(), "README.md does not name {missing:?}");
}

#[test]
fn every_link_between_documents_leads_somewhere() {
    let root = root();
    let documents = documents(&root);
    assert!(documents.len() > 5, "{documents:?}");
    let dead: Vec<String> = documents
        .iter()
        .flat_map(|document| {
            let text = fs::read_to_string(document).unwrap();
            let dead = links(&text)
                .into_iter()
                .filter_map(|link| Some(format!("{link}: {}", dead_end(document, &link)?)));
            let shown = document.strip_prefix(&root).unwrap().display();
            dead.map(|dead| format!("{shown}: {dead}")).collect::<Vec<_>>()
        })
        .collect();
    assert!(dead.is_empty(), "{} links lead nowhere:\n{}", dead.len(), dead.join("\n"));
}

/// The Markdown files below a directory, except those of builds and hidden ones.
fn documents(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() && name != "target" && !name.starts_with('.') {
            found.extend(documents(&path));
        } else if name.ends_with(".md") {
            found.push(path);
        }
    }
    found
}

/// Where a document's links and pictures point within the repository.
fn links(text: &str) -> Vec<String> {
    let prose = prose(text);
    let after = |opening: &str, closing: char| -> Vec<String> {
        let rests = prose.split(opening).skip(1);
        rests.filter_map(|rest| rest.split(closing).next()).map(str::to_owned).collect()
    };
    let all = [after("](", ')'), after("src=\"", '"'), after("srcset=\"", '"'), after("href=\"", '"')];
    all.concat().into_iter().filter(|link| !link.contains("://")).collect()
}

/// The text without code, in which brackets mean other things.
fn prose(text: &str) -> String {
    let mut inside = false;
    let lines = text.lines().filter(|line| {
        let fence = line.trim_start().starts_with(FENCE);
        inside ^= fence;
        !inside && !fence
    });
    lines.map(|line| line.split('`').step_by(2).collect::<String>() + "\n").collect()
}

/// Why a link leads nowhere, if it does.
fn dead_end(document: &Path, link: &str) -> Option<&'static str> {
    let (file, heading) = link.split_once('#').map_or((link, None), |(file, heading)| (file, Some(heading)));
    let target = if file.is_empty() { document.to_owned() } else { document.parent()?.join(file) };
    if !target.exists() {
        return Some("there is no such file");
    }
    let known =
        heading.is_none_or(|heading| anchors(&fs::read_to_string(&target).unwrap()).contains(heading));
    (!known).then_some("there is no such heading")
}

/// The names by which headings are linked to: lower case, without punctuation, spaces as hyphens.
fn anchors(text: &str) -> BTreeSet<String> {
    let mut inside = false;
    let headings = text.lines().filter(|line| {
        inside ^= line.trim_start().starts_with(FENCE);
        !inside && line.starts_with('#')
    });
    let anchor = |heading: &str| -> String {
        let kept = heading.trim_start_matches('#').trim().to_lowercase();
        let kept = kept.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
        kept.map(|c| if c == ' ' { '-' } else { c }).collect()
    };
    headings.map(anchor).collect()
}
