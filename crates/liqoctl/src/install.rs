//! `liqoctl install`: arguments and wiring; the work is done by the crate `liqo-install`.

mod arguments;
mod image;
mod show;
mod steps;

use std::process::ExitCode;

use anyhow::Result;
use liqo_api::names::NamespaceName;
use liqo_chart::Chart;
use liqo_install::facts::SandboxCluster;
use liqo_install::finding::{Outcome, worst};
use liqo_install::{Done, Options, Prepared, Request, Target, look, prepare};
use tokio_util::sync::CancellationToken;

pub(crate) use arguments::{Arguments, EXAMPLES, seconds_or_span};
pub(crate) use steps::{Steps, interruptible};

use crate::access::{Access, Connection};
use crate::output;

impl Arguments {
    pub(crate) async fn run(self, access: &Access) -> Result<ExitCode> {
        let steps = Steps::new(access.stderr());
        interruptible(&steps, async |stop| self.install(access, &steps, stop).await).await
    }

    async fn install(&self, access: &Access, steps: &Steps, stop: CancellationToken) -> Result<ExitCode> {
        let chart = self.chart()?;
        let request = self.request()?;
        for note in self.notes() {
            steps.note(&note);
        }
        let connection = access.connect().await?;
        let (target, sandbox) = target(access, &connection)?;
        if self.only_values() {
            return self.values(&target, &chart, &request, steps).await;
        }
        let mut prepared = prepare(&target, &chart, &request, steps).await?;
        // A kubeconfig may lead to the sandbox's API server by another address than its own.
        let address = prepared.outlook.detected.api_server.as_ref().map(|found| found.value.clone());
        let sandbox = sandbox.or_else(|| image::Place::find(access.sandboxes(), &address?));
        let image = image::plan(self.image_archive.as_deref(), sandbox.as_ref(), &prepared);
        prepared.findings.extend(image.finding());
        show::facts(&prepared.outlook, steps);
        show::findings(&prepared.findings, steps);
        if self.dry_run {
            return self.show_changes(&prepared);
        }
        prepared.refused()?;
        let restart = image.load(steps).await?;
        let options = Options { timeout: self.timeout, restart };
        let done = liqo_install::install(&target, &prepared, &options, &stop, steps).await?;
        self.show_done(&target, &prepared, done, steps)
    }

    /// Values only: nothing is compared, nothing is changed.
    async fn values(
        &self,
        target: &Target,
        chart: &Chart,
        request: &Request,
        steps: &Steps,
    ) -> Result<ExitCode> {
        let outlook = look(target, chart, request, steps).await?;
        show::facts(&outlook, steps);
        let text = show::values_text(&outlook.all_values, self.output)?;
        match &self.dump_values_path {
            Some(path) => {
                show::write_values(path, &text, self.force)?;
                eprintln!("the values are in {}; nothing was changed", path.display());
            }
            None => output::write(text.as_bytes())?,
        }
        Ok(ExitCode::SUCCESS)
    }

    fn show_changes(&self, prepared: &Prepared) -> Result<ExitCode> {
        output::write(show::changes(prepared, self.output)?.as_bytes())?;
        eprintln!("{}", show::summary(prepared));
        // Rights that are missing for the real thing do not make looking a failure.
        let stopped = prepared.findings.iter().filter(|finding| !finding.is_about_rights());
        Ok(if worst(stopped) == Outcome::Failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
    }

    fn show_done(&self, target: &Target, prepared: &Prepared, done: Done, steps: &Steps) -> Result<ExitCode> {
        if let Some(format) = self.output {
            output::print(Some(format.into()), &show::result(target, prepared, done), |_| String::new())?;
        }
        steps.end(&show::done(target, prepared, done));
        Ok(ExitCode::SUCCESS)
    }
}

/// What liqo-install needs to know of the cluster, and the sandbox on this machine that it belongs to.
pub(crate) fn target(access: &Access, connection: &Connection) -> Result<(Target, Option<image::Place>)> {
    connection.namespace.parse::<NamespaceName>()?;
    let server = connection.target.server.trim_end_matches('/').to_owned();
    let place = image::Place::find(access.sandboxes(), &server);
    let target = Target {
        client: connection.client.clone(),
        config: connection.config.clone(),
        sandbox: place.as_ref().map(sandbox_cluster),
        server,
        context: connection.target.context.clone(),
        version: connection.kubernetes.git_version.clone(),
        namespace: connection.namespace.clone(),
    };
    Ok((target, place))
}

fn sandbox_cluster(place: &image::Place) -> SandboxCluster {
    let plan = place.plan();
    SandboxCluster {
        sandbox: place.sandbox().to_owned(),
        cluster: plan.name().to_owned(),
        api_server: plan.api_url(),
        pod_cidr: plan.spec.pod_cidr.to_string(),
        service_cidr: plan.spec.service_cidr.to_string(),
    }
}
