//! `liqoctl peer`: borrows from a cluster that is known, or from one whose kubeconfig is at hand.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context as _, Result, bail};
use clap::Args;
use k8s_openapi::api::rbac::v1::RoleBinding;
use kube::api::ListParams;
use kube::{Api, ResourceExt};
use liqo_api::foreign_cluster::{
    PeeringConditionStatus as Status, PeeringConditionType as Part, PeeringEnabled,
};
use liqo_api::names::ClusterId;
use liqo_api::{ForeignCluster, labels};
use liqo_authentication::tokens::{self, NewToken};

use crate::access::{Access, Connection, parse_namespace};
use crate::add::{Waiting, Wish, declare_with};
use crate::peering::declare::Wanted;
use crate::peering::own::{self, Own};
use crate::peering::verify::Recognition;
use crate::peering::{follow, id_of, known, same_cluster, write};
use crate::progress::Progress;

/// How long the other side may use the token that is made for it; it needs seconds.
const TOKEN_LIFETIME: std::time::Duration = std::time::Duration::from_secs(3600);

/// Arguments of `peer`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The cluster: its name here, its ID, or its own name; with a remote kubeconfig or context, what to call it here
    #[arg(value_name = "CLUSTER", required_unless_present_any = ["remote_context", "remote_kubeconfig"])]
    name: Option<String>,
    /// The context of the other cluster, to do both sides at once
    #[arg(long, value_name = "NAME")]
    remote_context: Option<String>,
    /// The kubeconfig of the other cluster, to do both sides at once [default: the same one]
    #[arg(long, value_name = "FILE")]
    remote_kubeconfig: Option<PathBuf>,
    /// The namespace that liqo is installed in at the other cluster [default: the same one]
    #[arg(long, value_name = "NAME", value_parser = parse_namespace)]
    remote_namespace: Option<String>,
    /// Let the other cluster borrow from this one, too
    #[arg(long)]
    bidirectional: bool,
    #[command(flatten)]
    wish: Wish,
    #[command(flatten)]
    waiting: Waiting,
}

pub(crate) const EXAMPLES: &str = "Examples:
  liqoctl peer milan                                       # a cluster that liqoctl status shows
  liqoctl peer --remote-context provider                   # both sides at once, with one kubeconfig
  liqoctl peer milan --remote-kubeconfig milan.kubeconfig  # with another one, and a name of one's own
  liqoctl peer --remote-context provider --bidirectional   # each borrows from the other
  liqoctl peer milan --bidirectional                       # and does not refuse it, as after liqoctl unpeer
  liqoctl peer rome --lend --no-borrow                     # offers rome resources that it did not ask for

Says each phase as it is done, and what is waited for and since when. Ends with 0 when the other cluster lends, or is offered
resources; with 1 when it refuses, when somebody has to decide, or when the time is over. Running it again goes on.";

impl Arguments {
    pub(crate) async fn run(self, access: &Access) -> Result<ExitCode> {
        if self.wish.no_borrow && !self.wish.lend && !self.bidirectional {
            bail!(
                "there is nothing to peer for: say --lend as well, or end what is borrowed with liqoctl unpeer CLUSTER \
                 --direction outgoing"
            );
        }
        let connection = access.connect().await?;
        let progress = Progress::new(access.stderr());
        if self.remote_context.is_none() && self.remote_kubeconfig.is_none() {
            return self.with_known(&connection, progress).await;
        }
        let other = access.other(
            self.remote_kubeconfig.clone(),
            self.remote_context.clone(),
            self.remote_namespace.clone(),
        );
        let other = other.connect().await?;
        self.both_sides(&connection, &other, progress).await
    }

    async fn with_known(self, connection: &Connection, mut progress: Progress) -> Result<ExitCode> {
        let all = known::list(connection).await?;
        let cluster = known::find(&all, self.name.as_deref().unwrap_or_default())?;
        let name = cluster.name_any();
        if cluster.metadata.deletion_timestamp.is_some() {
            bail!(
                "{name} is being removed. Wait until it is gone, and add it again; liqoctl status peer {name} shows more"
            );
        }
        let refused = cluster.spec.incoming_peering_enabled == PeeringEnabled::No;
        let borrow = if self.wish.no_borrow { PeeringEnabled::No } else { PeeringEnabled::Yes };
        let wanted = write::Enabled { outgoing: Some(borrow), incoming: self.lending(refused) };
        write::enable(connection, cluster, &wanted).await?;
        if self.bidirectional {
            progress.done(&format!(
                "{name} may borrow from here, which it does when somebody runs liqoctl peer there"
            ));
        } else if refused && !self.wish.lend {
            progress.warn(&format!(
                "nothing is lent to {name}: it is refused here; --bidirectional allows it, --lend offers it"
            ));
        }
        self.waiting.finish(connection, &name, self.wish, progress).await
    }

    /// What is said of lending to a cluster that is known, and refused or not; nothing if that stays.
    fn lending(&self, refused: bool) -> Option<PeeringEnabled> {
        match (self.wish.lend, refused && self.bidirectional) {
            (true, _) => Some(PeeringEnabled::Yes),
            (false, true) => Some(PeeringEnabled::Auto),
            (false, false) => None,
        }
    }

    async fn both_sides(
        &self,
        here: &Connection,
        there: &Connection,
        mut progress: Progress,
    ) -> Result<ExitCode> {
        let me = own::require_identity(here).await?;
        let (lender, note) = own::wait(there, self.waiting.timeout, &mut progress).await?;
        if me.id == lender.identity.id {
            bail!("{}", same_cluster(&me.id));
        }
        if let Some(note) = note {
            progress.warn(&note);
        }
        let name =
            self.introduce(here, there, &lender, (self.name.clone(), self.wish), &mut progress).await?;
        // Whoever has the keys of both clusters and says that one borrows says that the other lends.
        if !self.wish.no_borrow {
            not_refused(there, &me.id, &mut progress).await?;
        }
        let back = if self.bidirectional {
            let other = lender.identity.id.clone();
            let (lender, _) = own::wait(here, self.waiting.timeout, &mut progress).await?;
            let back = self.introduce(there, here, &lender, (None, Wish::default()), &mut progress).await?;
            not_refused(here, &other, &mut progress).await?;
            Some(back)
        } else {
            None
        };
        if let (Some(back), false) = (back, self.waiting.no_wait) {
            progress.done(&format!("{} borrows from {}:", lender.identity.name, me.name));
            follow::established(there, &back, self.waiting.timeout, false, &mut progress).await?;
            progress.done(&format!("{} borrows from {}:", me.name, lender.identity.name));
        }
        self.waiting.finish(here, &name, self.wish, progress).await
    }

    /// Makes `lender` known to the cluster at `here`, which gets a token of its own if it needs one.
    async fn introduce(
        &self,
        here: &Connection,
        there: &Connection,
        lender: &Own,
        (name, wish): (Option<String>, Wish),
        progress: &mut Progress,
    ) -> Result<String> {
        let me = own::require_identity(here).await?;
        let all = known::list(here).await?;
        let existing = all.iter().find(|cluster| id_of(cluster) == Some(lender.identity.id.as_str()));
        let wanted = Wanted {
            name,
            id: lender.identity.id.clone(),
            cluster_name: Some(lender.identity.name.clone()),
            url: lender.auth_url.clone(),
            recognition: Recognition::kept(existing.map(|cluster| &cluster.spec), lender.fingerprint),
            key: lender.key.clone(),
            borrow: !wish.no_borrow,
            lend: wish.lend,
        };
        let token = if existing.is_some_and(is_let_in) && is_let_in_by(there, &me.id).await? {
            None
        } else {
            let new = NewToken {
                lifetime: Some(TOKEN_LIFETIME),
                note: format!("liqoctl peer, for {}", me.name),
                peer: Some(me.id.clone()),
            };
            Some(tokens::create(&there.client, &there.namespace, &new).await?.1)
        };
        declare_with(here, &wanted, token.as_ref(), self.waiting.timeout, progress).await
    }
}

/// Takes back that a borrower is refused, if it is.
async fn not_refused(lender: &Connection, borrower: &ClusterId, progress: &mut Progress) -> Result<()> {
    let all = known::list(lender).await?;
    let known = all.iter().find(|cluster| id_of(cluster) == Some(borrower.as_str()));
    if let Some(cluster) = known
        && write::lend_again(lender, cluster).await?
    {
        progress.done(&format!("{} is not refused any more", cluster.name_any()));
    }
    Ok(())
}

/// Whether a cluster lets another one in now: that one may not know yet that it was removed there.
async fn is_let_in_by(lender: &Connection, borrower: &ClusterId) -> Result<bool> {
    let bindings: Api<RoleBinding> = Api::all(lender.client.clone());
    let of_it = ListParams::default().labels(&format!("{}={borrower}", labels::CLUSTER_ID));
    let found = bindings.list_metadata(&of_it).await.map_err(|error| lender.target.explain(&error));
    let found = found.with_context(|| format!("cannot see whether {borrower} is let in"))?;
    Ok(found.items.iter().any(|binding| binding.metadata.deletion_timestamp.is_none()))
}

/// Who is let in needs no token.
fn is_let_in(cluster: &ForeignCluster) -> bool {
    cluster.metadata.deletion_timestamp.is_none()
        && cluster.peering_status(Part::AuthenticationStatus) == Status::Established
}
