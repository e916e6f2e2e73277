//! Takes liqo out of a cluster: in an order that blocks nothing, within a bounded time, also when the manager is dead.

mod plan;
mod remove;
mod survey;

use std::time::Duration;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

pub use survey::{Survey, survey};

use crate::error::InstallError;
use crate::lock;
use crate::progress::Progress;
use crate::target::Target;

/// How it is taken out.
#[derive(Debug, Clone, Copy)]
pub struct Removal {
    /// Also the kinds with all their objects, the identity and the namespace.
    pub purge: bool,
    /// How long it may take.
    pub timeout: Duration,
}

/// Takes out what the survey found. When it fails or is interrupted, the next run goes on.
pub async fn uninstall(
    target: &Target,
    survey: &Survey,
    options: Removal,
    stop: &CancellationToken,
    progress: &dyn Progress,
) -> Result<(), InstallError> {
    let removing = remove::Removing {
        target,
        survey,
        purge: options.purge,
        deadline: Instant::now() + options.timeout,
        progress,
    };
    // Webhooks of a dead manager would refuse everything else, the Lease included.
    stop.run_until_cancelled(removing.webhooks()).await.ok_or(InstallError::Interrupted)??;
    // There is no Lease in a namespace that is not there, or that is going: nobody can install to it either.
    if survey.can_be_locked() {
        let work = Box::pin(removing.everything());
        lock::holding(&target.client, &target.namespace, "liqoctl uninstall", stop, progress, work).await?;
    } else {
        stop.run_until_cancelled(removing.everything()).await.ok_or(InstallError::Interrupted)??;
    }
    // The Lease is in the namespace, so this comes after it was given back.
    stop.run_until_cancelled(async {
        removing.namespace().await?;
        removing.verify().await
    })
    .await
    .ok_or(InstallError::Interrupted)?
}
