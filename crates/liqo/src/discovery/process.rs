//! The tasks of the role and what they share.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use liqo_discovery::{Room, Settings};
use liqo_kit::admin::Admin;
use liqo_kit::supervise::Signals;
use liqo_kit::watch::WatchMetrics;
use liqo_kit::write::WriteMetrics;
use liqo_kit::{Shared, Supervisor};
use tokio::sync::watch;

use super::arguments::{Arguments, Family};
use super::own::{self, Own};
use super::say::Saying;
use crate::DISCOVERY;
use crate::identify::Asking;
use crate::process::{self, SHUTDOWN, connect};

/// A watch that heard nothing for so long has lost its server: twice the time after which a living one is heard of.
const STALE_AFTER: Duration = Duration::from_secs(90);

/// Runs until a signal or a failure.
pub(super) async fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let signals = Signals::listen()?;
    let pod = arguments.process.pod_name()?;
    let client = connect(DISCOVERY, arguments.process.kubeconfig.0.as_deref()).await?;
    let own = Shared::<Own>::default();
    let saying = arguments.lan.mdns_enable_advertisement.then(|| Saying::new(own.clone(), &arguments.lan));
    let identity = watch::Sender::new(None);
    let room = Room::new(
        client.clone(),
        settings(arguments, saying.as_ref(), pod),
        identity.subscribe(),
        Arc::new(Asking),
    );
    let supervisor = Supervisor::new();

    let (watches, writes) = (WatchMetrics::default(), WriteMetrics::default());
    let mut registry = process::registry(&watches, &writes);
    room.metrics().register(&mut registry);
    let admin = Admin::new(registry);
    arguments.process.serve(&supervisor, &admin).await?;

    for status in own::start(&own, &client, &arguments.liqo_namespace, &supervisor, &watches) {
        admin.ready.add_watch(&status, STALE_AFTER);
    }
    room.start(&supervisor, &watches);
    room.add_checks(&admin.ready);
    if let Some(saying) = saying {
        saying.add_check(&admin.ready);
        supervisor.critical("advertisement", |stop| async move {
            saying.run(stop).await;
            Ok::<_, Infallible>(())
        });
    }
    tell_identity(&supervisor, own, identity);
    let (queue, worker) = room.queue(&writes);
    process::drain(&supervisor, "discovery", worker);
    // Alone, so nobody else writes about the local network.
    supervisor.critical("discovery", |stop| async move {
        room.run(&queue, Arc::new(|| true), stop).await;
        Ok::<_, Infallible>(())
    });
    supervisor.run(signals, SHUTDOWN).await?;
    tracing::info!("discovery has ended");
    Ok(())
}

fn settings(arguments: &Arguments, saying: Option<&Saying>, pod: String) -> Settings {
    let lan = &arguments.lan;
    let speaks = |family| lan.mdns_ip_families.contains(&family);
    Settings {
        lan: Some(liqo_discovery::Lan {
            browse: lan.mdns_enable_discovery,
            advertise: saying.map(Saying::said),
            interfaces: lan.interfaces(),
            ipv4: speaks(Family::Ipv4),
            ipv6: speaks(Family::Ipv6),
        }),
        wan: None,
        controller: DISCOVERY.to_owned(),
        pod,
    }
}

/// Tells the room who we are, so that it does not take us for somebody else.
fn tell_identity(
    supervisor: &Supervisor,
    own: Shared<Own>,
    identity: watch::Sender<Option<liqo_api::names::Identity>>,
) {
    supervisor.critical("own identity", |stop| async move {
        let mut changes = own.subscribe();
        loop {
            changes.borrow_and_update();
            let now = own.read().identity.clone();
            identity.send_if_modified(|known| std::mem::replace(known, now.clone()) != now);
            // The index lives as long as this task, which holds it.
            if stop.run_until_cancelled(changes.changed()).await.is_none() {
                return Ok::<_, Infallible>(());
            }
        }
    });
}
