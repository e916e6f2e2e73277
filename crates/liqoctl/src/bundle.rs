//! `liqoctl bundle`: arguments and wiring.

use std::fs::{self, OpenOptions};
use std::io::{self, BufWriter, IsTerminal, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use clap::Args;
use jiff::Timestamp;
use liqo_inspect::{Bundle, Installation};

use crate::access::Access;
use crate::output::{self, Format};
use crate::progress::Progress;

/// Arguments of `bundle`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The file to write, or - for standard output; json or yaml: the usual file, and what is in it is printed [default:
    /// liqo-bundle-TIME.tar.gz here]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Replace a file that is there
    #[arg(long)]
    force: bool,
}

pub(crate) const EXAMPLES: &str = "Examples:
  liqoctl bundle                       # liqo-bundle-20260131T120000Z.tar.gz
  liqoctl bundle -o bug.tar.gz --context provider-a
  liqoctl bundle -o - | tar -tz
  liqoctl bundle -o json               # the same file as without, and what is in it for programs

In it: versions, what status and check tell, nodes in short, all objects of liqo, events and logs. Secrets are removed:
values of Secrets, and what looks or is named like a password, token or key. Look at it before you give it away.
What could not be read is listed in manifest.json and is no failure.";

impl Arguments {
    pub(crate) async fn run(self, access: &Access) -> Result<ExitCode> {
        let format = self.output.as_deref().and_then(format);
        let to_stdout = self.output.as_deref() == Some(Path::new("-"));
        if to_stdout && io::stdout().is_terminal() {
            bail!("an archive is nothing for a terminal: redirect it, or name a file with --output");
        }
        let named = self.output.filter(|_| format.is_none());
        let file = named.unwrap_or_else(|| default_name(Timestamp::now()).into());
        // Before minutes are spent on what cannot be written then.
        if !to_stdout && file.exists() && !self.force {
            bail!("{} is there already; --force replaces it", file.display());
        }
        let connection = access.connect().await?;
        let server = connection.server();
        let mut progress = Progress::new(access.stderr());
        let installation = Installation::new(connection.client, connection.namespace);
        let mut say = |what: &str| progress.busy(&format!("reading {what}"));
        let bundle = Box::pin(installation.bundle(&server, &mut say)).await;
        if to_stdout {
            bundle.write(BufWriter::new(io::stdout().lock()))?;
        } else {
            write(&bundle, &file)?;
        }
        tell(&bundle, &mut progress, (!to_stdout).then_some(&file));
        if format.is_some() {
            output::print(format, bundle.manifest(), |_| String::new())?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// The format that users of other commands mean by `-o json`. A file by that name is `./json`.
fn format(output: &Path) -> Option<Format> {
    match output.to_str()? {
        "json" => Some(Format::Json),
        "yaml" => Some(Format::Yaml),
        _ => None,
    }
}

fn default_name(now: Timestamp) -> String {
    format!("liqo-bundle-{}.tar.gz", now.strftime("%Y%m%dT%H%M%SZ"))
}

/// Writes it whole or not at all, readable by its owner only.
fn write(bundle: &Bundle, file: &Path) -> Result<()> {
    let mut name = file.file_name().context("the name of a file is expected")?.to_owned();
    name.push(".part");
    let part = file.with_file_name(name);
    let written = (|| {
        let out = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&part)?;
        let mut out = BufWriter::new(out);
        bundle.write(&mut out)?;
        out.flush()?;
        fs::rename(&part, file)?;
        anyhow::Ok(())
    })();
    if written.is_err() {
        // The error that counts is the one above; often there is nothing to remove.
        let _ = fs::remove_file(&part);
    }
    written.with_context(|| format!("cannot write {}", file.display()))
}

fn tell(bundle: &Bundle, progress: &mut Progress, file: Option<&PathBuf>) {
    let manifest = bundle.manifest();
    let place = file.map(|file| format!(" in {}", file.display())).unwrap_or_default();
    progress.done(&format!(
        "{} files{place}; secrets were removed, yet look at it before you give it away",
        manifest.files.len()
    ));
    if !manifest.problems.is_empty() {
        progress.warn(&format!(
            "{} things could not be read; manifest.json in it tells which",
            manifest.problems.len()
        ));
    }
}

#[cfg(test)]
mod tests;
