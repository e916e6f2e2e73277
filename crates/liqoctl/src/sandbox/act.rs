//! Commands that change a running sandbox.

use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, bail};
use liqo_sandbox::{Place, Removed, Sandbox};
use tokio::time::Instant;

use super::{Common, Target};

/// What to do with parts of a cluster.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Act {
    Stop,
    Start,
    Kill,
    Pause,
    Resume,
}

pub(crate) async fn on(sandbox: &Sandbox, target: &Target, act: Act) -> Result<()> {
    let cluster = sandbox.cluster(&target.cluster)?;
    let parts = cluster.parts(target.component.as_deref())?;
    let done = match act {
        Act::Stop => cluster.stop(&parts).map(|()| "stopped"),
        Act::Kill => cluster.kill(&parts).map(|()| "killed"),
        Act::Pause => cluster.pause(&parts).map(|()| "paused"),
        Act::Resume => cluster.resume(&parts).map(|()| "running again"),
        Act::Start => cluster.start(&parts, &|_, _| {}).await.map(|()| "running"),
    }?;
    let names: Vec<String> = parts.iter().map(ToString::to_string).collect();
    eprintln!("{}: {} {done}", cluster.name(), names.join(", "));
    Ok(())
}

pub(crate) fn down(common: &Common, all: bool, abandoned: bool) -> Result<()> {
    let names = match (all, abandoned) {
        (true, _) => liqo_sandbox::list(&common.state_dir),
        (_, true) => liqo_sandbox::abandoned(&common.state_dir),
        _ => vec![common.name.clone()],
    };
    if names.is_empty() {
        eprintln!("no sandbox in {}; nothing to remove", common.state_dir.display());
    }
    for name in names {
        let started = Instant::now();
        match liqo_sandbox::down(&Place::new(&common.state_dir, &name)?)? {
            Removed::Sandbox => {
                eprintln!("sandbox {name} removed in {:.1} s", started.elapsed().as_secs_f64());
            }
            Removed::Nothing => eprintln!("there is no sandbox {name}; nothing to remove"),
        }
    }
    Ok(())
}

pub(crate) fn load_image(sandbox: &Sandbox, clusters_and_file: &[String]) -> Result<()> {
    let Some((file, clusters)) = clusters_and_file.split_last() else { bail!("name a cluster and a file") };
    let file = Path::new(file);
    if !file.is_file() {
        bail!("there is no file {}; the last argument is the image archive", file.display());
    }
    // All names are checked before the first image is loaded.
    let clusters: Vec<_> = clusters.iter().map(|name| sandbox.cluster(name)).collect::<Result<_, _>>()?;
    for cluster in clusters {
        eprintln!("loading {} into {} …", file.display(), cluster.name());
        cluster.load_image(file)?;
    }
    Ok(())
}

/// Replaces this process, so that signals, terminal and exit code are those of the command.
pub(crate) fn become_command(command: &mut Command) -> Result<ExitCode> {
    let shown = command.get_program().to_string_lossy().into_owned();
    Err(command.exec()).with_context(|| format!("cannot run {shown}"))
}
