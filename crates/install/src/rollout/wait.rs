//! Waits until everything runs, or until it is clear that it will not.

use std::time::Duration;

use kube::Client;
use tokio::time::Instant;

use super::{Step, Told, Trouble, Workload, look, step, troubles};
use crate::error::InstallError;
use crate::objects::Id;
use crate::progress::Progress;
use crate::trouble as requests;

/// How often it is looked: an installation takes seconds.
const LOOK: Duration = Duration::from_millis(250);
/// How often the reasons are looked for, which takes more requests.
const REASONS: Duration = Duration::from_secs(3);
/// A trouble is told when it has lasted this long: images are pulled twice, and schedulers wait a moment.
const TELL: Duration = Duration::from_secs(6);
/// What does not go away by waiting is waited for this long, as somebody may be putting it right.
const HOPELESS: Duration = Duration::from_secs(60);

/// What to wait for.
pub(crate) struct Wait<'a> {
    pub(crate) client: &'a Client,
    pub(crate) workloads: &'a [Id],
    /// Wait also for the manager to say that it is ready, in this version; `None` to not wait for its word.
    pub(crate) word: Option<Option<&'a str>>,
    /// When the whole installation began, for the message.
    pub(crate) began: Instant,
    pub(crate) deadline: Instant,
}

struct Lasting {
    trouble: Trouble,
    since: Instant,
    told: bool,
}

/// Waits.
pub(crate) async fn wait(what: &Wait<'_>, progress: &dyn Progress) -> Result<(), InstallError> {
    let started = Instant::now();
    let mut lasting: Vec<Lasting> = Vec::new();
    let mut reasons_at = started + REASONS;
    loop {
        let thoroughly = Instant::now() >= reasons_at;
        let seconds = started.elapsed().as_secs();
        match seen(what, thoroughly).await {
            Ok((workloads, told)) => {
                let Step::Waiting(text) = step(&workloads, told.as_ref()) else { return Ok(()) };
                progress.busy(&format!("waiting for {text}, {seconds} s"));
                if thoroughly {
                    reasons_at = Instant::now() + REASONS;
                    remember(&mut lasting, troubles(&workloads, told.as_ref()), progress);
                }
            }
            Err(error) if requests::is_passing(&error) || requests::is_not_found(&error) => {
                progress
                    .busy(&format!("waiting for the API server: {}, {seconds} s", requests::text(&error)));
            }
            Err(error) => return Err(InstallError::request("cannot look whether it is ready", &error)),
        }
        let hopeless = lasting.iter().any(|one| one.trouble.lasting && one.since.elapsed() >= HOPELESS);
        if hopeless || Instant::now() >= what.deadline {
            return Err(late(what).await);
        }
        tokio::time::sleep(LOOK).await;
    }
}

async fn seen(what: &Wait<'_>, thoroughly: bool) -> Result<(Vec<Workload>, Option<Told>), kube::Error> {
    let mut workloads = Vec::new();
    for id in what.workloads {
        workloads.push(look::workload(what.client, id, thoroughly).await?);
    }
    let told = match what.word {
        Some(version) => Some(look::told(what.client, version).await?),
        None => None,
    };
    Ok((workloads, told))
}

/// Keeps since when each trouble is there, and tells the ones that stay.
fn remember(lasting: &mut Vec<Lasting>, now: Vec<Trouble>, progress: &dyn Progress) {
    lasting.retain(|one| now.iter().any(|trouble| is_same(trouble, &one.trouble)));
    for trouble in now {
        match lasting.iter_mut().find(|one| is_same(&one.trouble, &trouble)) {
            Some(known) => known.trouble = trouble,
            None => lasting.push(Lasting { trouble, since: Instant::now(), told: false }),
        }
    }
    for one in lasting.iter_mut().filter(|one| !one.told && one.since.elapsed() >= TELL) {
        one.told = true;
        progress.warn(&format!("{}: {}", one.trouble.what, one.trouble.why));
    }
}

/// An image that is tried again has other words each time, and a crash another count.
fn is_same(a: &Trouble, b: &Trouble) -> bool {
    a.what == b.what && a.lasting == b.lasting && a.hint == b.hint
}

/// What to say when it did not become ready.
async fn late(what: &Wait<'_>) -> InstallError {
    let after = format!("not ready after {} s", what.began.elapsed().as_secs());
    let goes_on = "Everything stays as it is: put it right and run the same command again, it goes on";
    let (workloads, told) = match seen(what, true).await {
        Ok(seen) => seen,
        Err(error) => {
            return InstallError::Late(format!(
                "{after}, and the API server does not tell why: {}\n{goes_on}",
                requests::text(&error)
            ));
        }
    };
    let found = troubles(&workloads, told.as_ref());
    let reasons: Vec<String> = match found.as_slice() {
        [] => match step(&workloads, told.as_ref()) {
            Step::Ready => vec!["it became ready a moment too late".into()],
            Step::Waiting(text) => vec![text],
        },
        found => found.iter().map(ToString::to_string).collect(),
    };
    InstallError::Late(format!("{after}:\n{}\n{goes_on}", reasons.join("\n")))
}
