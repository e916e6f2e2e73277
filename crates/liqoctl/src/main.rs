//! `liqoctl`, and under the name `kubectl-liqo` the plugin `kubectl liqo`. See the library.

fn main() -> std::process::ExitCode {
    liqoctl::main()
}
