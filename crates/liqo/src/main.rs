//! `liqo`: the one program of all roles inside a cluster. A role is a command.

use std::process::ExitCode;

fn main() -> ExitCode {
    liqo::main()
}
