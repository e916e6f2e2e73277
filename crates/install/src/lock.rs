//! One at a time: whoever changes an installation holds a Lease meanwhile.
//!
//! The Lease is gone when they are done. If they died, it ends by itself, or at once for those who can see on their own
//! machine that the process is gone.

mod holder;

use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use kube::api::{DeleteParams, Preconditions};
use kube::{Api, Client};
use liqo_kit::lease::{Campaign, Ended, LeaseConfig, Observation, Record, Standing, Verdict, evaluate};
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

pub(crate) use holder::Holder;

use crate::error::InstallError;
use crate::names::INSTALLATION;
use crate::progress::Progress;
use crate::trouble::{self, patiently};

/// How long a dead holder is waited for. Longer than an API server's restart, as a holder who cannot renew has to stop.
const DURATION: Duration = Duration::from_secs(30);
/// How long a holder goes on without a successful renewal.
const RENEW_DEADLINE: Duration = Duration::from_secs(25);
/// How often it is renewed: somebody who waits knows after this time that the holder is alive.
const RENEWAL: Duration = Duration::from_secs(2);
/// How often somebody who waits looks.
const LOOK: Duration = Duration::from_millis(500);
/// How long taking the Lease may fail before it is given up.
const PATIENCE: Duration = Duration::from_secs(15);
/// Giving the Lease back must not keep anybody who pressed Ctrl-C.
const GOODBYE: Duration = Duration::from_secs(2);

/// Does the work while nobody else changes the installation.
pub(crate) async fn holding<T>(
    client: &Client,
    namespace: &str,
    what: &str,
    stop: &CancellationToken,
    progress: &dyn Progress,
    work: impl Future<Output = Result<T, InstallError>>,
) -> Result<T, InstallError> {
    let me = Holder::me(what);
    let dead = stop
        .run_until_cancelled(wait_for_the_dead(client, namespace, &me, progress))
        .await
        .ok_or(InstallError::Interrupted)??;
    let config = LeaseConfig {
        earlier_lives: dead,
        duration: DURATION,
        renew_deadline: RENEW_DEADLINE,
        retry: RENEWAL,
        ..LeaseConfig::new(namespace, INSTALLATION, me.text())
    };
    let mut result = None;
    let (standing, told) = watch::channel(Standing::Unknown { failure: None });
    let campaign = Campaign::new(client.clone(), config).tell(standing);
    let running = campaign.run(stop.clone(), async |leadership| {
        tokio::select! {
            done = work => result = Some(done),
            () = leadership.ended().cancelled() => {}
        }
    });
    let ended = tokio::select! {
        ended = running => ended,
        why = refused(told) => {
            let what = format!("cannot take the Lease {namespace}/{INSTALLATION}, by which others see that somebody is at work");
            return Err(InstallError::Request { what, why });
        }
    };
    give_back(client, namespace).await;
    match (result, ended) {
        (Some(result), _) => result,
        (None, Ended::Stopped) => Err(InstallError::Interrupted),
        (None, _) => Err(InstallError::Busy(
            "the API server was away for too long, or somebody else took over. What was done so far is kept: run the \
             same command again, it goes on"
                .into(),
        )),
    }
}

/// Why the Lease cannot be taken, once that has lasted; never, if it can.
async fn refused(mut told: watch::Receiver<Standing>) -> String {
    loop {
        let failed =
            told.wait_for(|standing| matches!(standing, Standing::Unknown { failure: Some(_) })).await;
        if failed.is_err() {
            return std::future::pending().await;
        }
        drop(failed);
        let better = told.wait_for(|standing| !matches!(standing, Standing::Unknown { failure: Some(_) }));
        if tokio::time::timeout(PATIENCE, better).await.is_err() {
            let Standing::Unknown { failure: Some(why) } = told.borrow().clone() else { continue };
            return why;
        }
    }
}

/// Refuses while a living process holds the Lease; returns a dead one whose Lease may be taken at once.
async fn wait_for_the_dead(
    client: &Client,
    namespace: &str,
    me: &Holder,
    progress: &dyn Progress,
) -> Result<Option<String>, InstallError> {
    let api = Api::<Lease>::namespaced(client.clone(), namespace);
    let mut seen: Option<Observation> = None;
    loop {
        let lease = patiently(async || api.get_opt(INSTALLATION).await).await;
        let lease =
            lease.map_err(|error| InstallError::request("cannot look who else is at work", &error))?;
        let Some(record) = lease.as_ref().map(Record::from) else { return Ok(None) };
        let Some(by) = record.holder.clone() else { return Ok(None) };
        if me.knows_dead(&by) {
            return Ok(Some(by));
        }
        let renewed = seen.as_ref().is_some_and(|before| before.record != record);
        if renewed {
            let since = lease.and_then(|lease| lease.spec?.acquire_time).map(|time| time.0);
            return Err(busy(&by, since));
        }
        let now = seen.take();
        let observation = Observation::update(now, record, Instant::now());
        if let Verdict::Free = evaluate(&observation, &me.text(), Instant::now()) {
            return Ok(None);
        }
        seen = Some(observation);
        progress.busy(&format!(
            "{} is changing this installation; looking whether it still lives",
            Holder::name_of(&by)
        ));
        tokio::time::sleep(LOOK).await;
    }
}

fn busy(by: &str, since: Option<jiff::Timestamp>) -> InstallError {
    let since = since.map(|time| format!(" since {time:.0}")).unwrap_or_default();
    InstallError::Busy(format!(
        "{} is changing this installation{since}. Wait until it is done, then run the same command again",
        Holder::name_of(by)
    ))
}

/// Removes the Lease unless somebody else has it by now.
async fn give_back(client: &Client, namespace: &str) {
    let api = Api::<Lease>::namespaced(client.clone(), namespace);
    let removed = tokio::time::timeout(GOODBYE, async {
        let Some(lease) = api.get_opt(INSTALLATION).await? else { return Ok(()) };
        if Record::from(&lease).holder.is_some() {
            return Ok(());
        }
        let preconditions =
            Preconditions { uid: lease.metadata.uid, resource_version: lease.metadata.resource_version };
        let params = DeleteParams::default().preconditions(preconditions);
        api.delete(INSTALLATION, &params).await.map(drop)
    });
    match removed.await {
        Ok(Ok(())) => {}
        Ok(Err(error)) if trouble::is_not_found(&error) || trouble::is_conflict(&error) => {}
        Ok(Err(error)) => {
            tracing::info!(error = trouble::text(&error), "the hold on the installation ends by itself");
        }
        Err(_) => tracing::info!("the hold on the installation ends by itself"),
    }
}
