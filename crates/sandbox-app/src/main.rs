//! A small HTTP server and client for the sandbox's pods; `sandbox-app --help` tells what it can do.

fn main() -> std::process::ExitCode {
    // An argument that is not UTF-8 is wrong in every command and is shown as such, not a reason to panic.
    liqo_sandbox_app::main(std::env::args_os().skip(1).map(|arg| arg.to_string_lossy().into_owned()))
}
