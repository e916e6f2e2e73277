//! Asking other programs.

use std::process::Command;

use anyhow::{Context, Result, ensure};

/// What a command prints, if it succeeds.
pub(super) fn output(command: &mut Command) -> Result<String> {
    let shown = format!("{command:?}").replace('"', "");
    let output = command.output().with_context(|| format!("cannot run {shown}"))?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{shown} failed: {}", said.trim());
    String::from_utf8(output.stdout).with_context(|| format!("{shown} printed something that is no text"))
}
