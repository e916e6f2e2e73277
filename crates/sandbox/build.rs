//! Builds the programs that go into the sandbox's own images, so that `liqoctl` carries them wherever it runs.
//!
//! They must be static to run in an image with nothing else in it, so they are built for musl, by a cargo of
//! their own in a target directory of their own: the one that runs this script holds the lock on the outer one.
#![expect(clippy::disallowed_methods, reason = "cargo speaks to build scripts through the environment")]

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

/// Small programs, quickly built. Link-time optimisation would save 15 % of the size for twice the build time.
const PROFILE: [(&str, &str); 6] = [
    ("CARGO_PROFILE_RELEASE_OPT_LEVEL", "z"),
    ("CARGO_PROFILE_RELEASE_LTO", "off"),
    ("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "16"),
    ("CARGO_PROFILE_RELEASE_PANIC", "abort"),
    ("CARGO_PROFILE_RELEASE_STRIP", "symbols"),
    ("CARGO_PROFILE_RELEASE_DEBUG", "false"),
];

/// What of the outer cargo's environment the inner one keeps: where and how it gets crates, and its share of jobs.
///
/// The rest describes the outer build (its package, its flags, clippy's or a coverage tool's wrapper) and would
/// change the inner one or have it rebuilt each time.
const KEPT: [&str; 7] = [
    "CARGO_HOME",
    "CARGO_HTTP_",
    "CARGO_NET_",
    "CARGO_REGISTR",
    "CARGO_SOURCE_",
    "CARGO_MAKEFLAGS",
    "CARGO_TERM_",
];

fn main() -> ExitCode {
    match build() {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            for line in why.lines() {
                println!("cargo::error={line}");
            }
            ExitCode::FAILURE
        }
    }
}

fn build() -> Result<(), String> {
    let crates = PathBuf::from(variable("CARGO_MANIFEST_DIR")?).join("..");
    let app = crates.join("sandbox-app");
    // The lock file too, for the versions of what the programs are made of.
    for path in [app.join("Cargo.toml"), app.join("src"), crates.join("../Cargo.lock")] {
        println!("cargo::rerun-if-changed={}", path.display());
    }
    let target = musl_target()?;
    let output = PathBuf::from(variable("OUT_DIR")?);
    let build = output.join("sandbox-app-build");
    run_cargo(&app, &target, &build)?;
    for program in ["sandbox-app", "pause"] {
        let built = build.join(&target).join("release").join(program);
        let wanted = output.join(program);
        std::fs::copy(&built, &wanted)
            .map_err(|error| format!("cannot copy {} to {}: {error}", built.display(), wanted.display()))?;
    }
    Ok(())
}

/// The musl target for the machine that will run the sandbox, if the toolchain has it.
fn musl_target() -> Result<String, String> {
    let architecture = variable("CARGO_CFG_TARGET_ARCH")?.to_string_lossy().into_owned();
    let target = match architecture.as_str() {
        "x86_64" | "aarch64" => format!("{architecture}-unknown-linux-musl"),
        other => return Err(format!("the sandbox runs on x86_64 and aarch64, not on {other}")),
    };
    let query = Command::new(variable("RUSTC")?)
        .args(["--print", "target-libdir", "--target", &target])
        .output()
        .map_err(|error| format!("cannot run rustc: {error}"))?;
    let libraries = PathBuf::from(String::from_utf8_lossy(&query.stdout).trim());
    if !query.status.success() || !libraries.is_dir() {
        return Err(format!(
            "the programs in the sandbox's images are built for {target}, which this toolchain lacks; \
             install it with `rustup target add {target}`"
        ));
    }
    Ok(target)
}

fn run_cargo(app: &Path, target: &str, build: &Path) -> Result<(), String> {
    let mut cargo = Command::new(variable("CARGO")?);
    cargo
        .current_dir(app)
        .args(["build", "--release", "--locked", "--bins", "--target", target, "--target-dir"])
        .arg(build);
    for (name, _) in env::vars_os().filter(|(name, _)| disturbs(&name.to_string_lossy())) {
        cargo.env_remove(name);
    }
    // Set, even if to little, these also win over flags in configuration files, such as another linker.
    cargo.env("CARGO_ENCODED_RUSTFLAGS", rustc_flags(app)?.join("\u{1f}"));
    cargo.env(linker_variable(target), "rust-lld");
    cargo.envs(PROFILE);
    let output = cargo.output().map_err(|error| format!("cannot run cargo: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    let messages = String::from_utf8_lossy(&output.stderr);
    Err(format!("cannot build {} for {target}:\n{messages}", app.display()))
}

fn disturbs(name: &str) -> bool {
    let kept = KEPT.iter().any(|prefix| name.starts_with(prefix));
    let wrapper = ["RUSTFLAGS", "RUSTC_WRAPPER", "RUSTC_WORKSPACE_WRAPPER"].contains(&name);
    wrapper || (name.starts_with("CARGO") && !kept)
}

/// rustc's own linker with its own musl: neither a C compiler nor the system's musl has a say in what comes out.
/// And no path of the machine that builds ends up in the programs.
fn rustc_flags(app: &Path) -> Result<Vec<String>, String> {
    let workspace =
        app.join("../..").canonicalize().map_err(|error| format!("cannot find the workspace: {error}"))?;
    let home = env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| env::var_os("HOME").map(|home| PathBuf::from(home).join(".cargo")));
    let mut flags = vec!["-Clink-self-contained=yes".to_owned(), remap(&workspace, "liqo")];
    flags.extend(home.map(|home| remap(&home, "cargo")));
    Ok(flags)
}

fn remap(path: &Path, name: &str) -> String {
    format!("--remap-path-prefix={}=/{name}", path.display())
}

fn linker_variable(target: &str) -> String {
    format!("CARGO_TARGET_{}_LINKER", target.to_uppercase().replace('-', "_"))
}

fn variable(name: &str) -> Result<OsString, String> {
    env::var_os(name).ok_or_else(|| format!("cargo did not set {name}"))
}
