//! PID 1 of a pod: holds the pod's namespaces open, reaps what is orphaned in them, ends when told to.

use std::process::ExitCode;

fn main() -> ExitCode {
    match liqo_sandbox_app::signals::Termination::catch() {
        Ok(termination) => {
            termination.wait();
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("pause: cannot block SIGTERM, so could never be stopped: {error}");
            ExitCode::FAILURE
        }
    }
}
