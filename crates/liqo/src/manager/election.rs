//! Who leads.

use anyhow::Context;
use liqo_kit::health::Checks;
use liqo_kit::lease::{Campaign, Ended, LeaseConfig, Standing};
use prometheus_client::metrics::gauge::Gauge;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::Arguments;
use super::rooms::{Leaders, Rooms};

/// One candidate, for as long as the process lives.
pub(super) struct Election {
    pub(super) client: kube::Client,
    pub(super) config: LeaseConfig,
    pub(super) standing: watch::Sender<Standing>,
    pub(super) leader: Gauge,
}

impl Election {
    pub(super) fn new(client: kube::Client, arguments: &Arguments, pod: &str) -> anyhow::Result<Self> {
        let (process, leading) = (&arguments.process, &arguments.leading);
        let namespace = arguments.identity.liqo_namespace.as_str();
        let config = LeaseConfig {
            // Only a pod's name is nobody else's.
            earlier_lives: process.kubeconfig.0.is_none().then(|| format!("{pod}_")),
            duration: leading.lease_duration.0,
            renew_deadline: leading.lease_renew_deadline.0,
            retry: leading.lease_retry_period.0,
            ..LeaseConfig::new(namespace, super::NAME, format!("{pod}_{}", random()?))
        };
        let standing = watch::Sender::new(Standing::Unknown { failure: None });
        Ok(Self { client, config, standing, leader: Gauge::default() })
    }

    /// Adds the check that it is known who leads: before, a process can be neither a leader nor a replacement.
    pub(super) fn add_check(&self, checks: &Checks, rooms: &Rooms) {
        let (standing, rooms) = (self.standing.subscribe(), rooms.clone());
        checks.add("leader-election", move || match &*standing.borrow() {
            Standing::Unknown { failure } => {
                Err(failure.clone().unwrap_or_else(|| "it is not known yet who leads".to_owned()))
            }
            // From here on the rooms say themselves whether they are ready.
            Standing::Leader if !rooms.are_leading() => Err("this process begins to lead".to_owned()),
            Standing::Follower { .. } | Standing::Leader => Ok(()),
        });
    }

    /// Stands for election, again and again, and lets the rooms lead while it leads.
    ///
    /// A lost lease does not end the process: every write of the rooms goes through a queue that asks whether we lead,
    /// and names the version of the object that it changes, so nothing of a former leadership can do harm.
    pub(super) async fn run(self, leaders: Leaders, stop: CancellationToken) {
        let told = self.tell_for_ever();
        let campaigns = async {
            while !stop.is_cancelled() {
                let campaign =
                    Campaign::new(self.client.clone(), self.config.clone()).tell(self.standing.clone());
                match campaign.run(stop.clone(), |leadership| leaders.lead(leadership)).await {
                    Ended::Stopped => return,
                    Ended::Lost | Ended::WorkDone => tracing::warn!("standing for election again"),
                }
            }
        };
        tokio::select! {
            () = campaigns => {}
            () = told => {}
        }
    }

    /// Shows in log and metrics where this process stands.
    async fn tell_for_ever(&self) {
        let mut standing = self.standing.subscribe();
        loop {
            let now = standing.borrow_and_update().clone();
            self.leader.set(i64::from(now == Standing::Leader));
            if let Standing::Follower { leader } = &now {
                tracing::info!(leader, "standing by");
            }
            if standing.changed().await.is_err() {
                return;
            }
        }
    }
}

/// What tells one life of a pod from the next.
fn random() -> anyhow::Result<String> {
    let mut bytes = [0; 8];
    aws_lc_rs::rand::fill(&mut bytes).ok().context("the operating system gives no random numbers")?;
    Ok(format!("{:016x}", u64::from_be_bytes(bytes)))
}
