//! Looks at pods on virtual nodes that go nowhere, while there are such nodes.

use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use liqo_api::labels;
use liqo_kit::watch::Scope;
use liqo_kit::write::{Target, Write};
use liqo_kit::{Key, Queue, Shared, Watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::Room;
use crate::pods::plan::BACKOFF;
use crate::pods::status;
use crate::reports::Report;
use crate::strays::{Deed, Stray, StrayOnWire, Strays};

/// How often all of them are looked at though nobody told of a change: what was given up is tried again this way.
const LOOK_AGAIN: Duration = Duration::from_secs(30);
/// How long it waits at least before it looks again: pods come in bursts, and most of them are others.
const PAUSE: Duration = Duration::from_millis(100);

impl Room {
    /// Tells such pods why they wait and lets them go, until it is dropped.
    pub(super) async fn keep_strays(&self, queue: &Queue) {
        loop {
            self.virtual_nodes(true).await;
            let strays = Shared::<Strays>::default();
            // All that the other watch of pods leaves out.
            let others = Scope::all::<Pod>().labels(format!("{}!={}", labels::SHADOW_POD, labels::TRUE));
            let watch = Watch::projected(self.0.client.clone(), others, |it: StrayOnWire| Stray::read(it));
            let watch = watch.named("reflection-other-pods").metrics(&self.0.watch_metrics.lock().clone());
            let watch = watch.feed(strays.clone());
            tokio::select! {
                () = watch.run(CancellationToken::new()) => {}
                () = self.look_at_strays(queue, &strays) => {}
                // Nobody needs to know of other pods then.
                () = self.virtual_nodes(false) => {}
            }
        }
    }

    /// Waits until there are virtual nodes, or none.
    async fn virtual_nodes(&self, any: bool) {
        let mut changes = self.0.pods.subscribe();
        while self.0.pods.read().nodes().next().is_some() != any {
            tokio::time::sleep(PAUSE).await;
            let _ = changes.changed().await;
        }
    }

    async fn look_at_strays(&self, queue: &Queue, strays: &Shared<Strays>) {
        let (mut changes, mut nodes) = (strays.subscribe(), self.0.pods.subscribe());
        let (mut looked_at_all, mut topology) = (Instant::now(), None);
        loop {
            changes.borrow_and_update();
            nodes.borrow_and_update();
            let now = self.0.pods.read().topology;
            if topology != Some(now) || looked_at_all.elapsed() >= LOOK_AGAIN {
                (looked_at_all, topology) = (Instant::now(), Some(now));
                self.touch_strays(strays);
            }
            let due = strays.write().take_dirty();
            for key in due {
                let stray = strays.read().get(&key).cloned();
                stray.into_iter().for_each(|stray| self.settle_stray(queue, &key, &stray));
            }
            tokio::time::sleep(PAUSE).await;
            tokio::select! {
                _ = changes.changed() => {}
                _ = nodes.changed() => {}
                () = tokio::time::sleep_until(looked_at_all + LOOK_AGAIN) => {}
            }
        }
    }

    fn touch_strays(&self, strays: &Shared<Strays>) {
        let pods = self.0.pods.read();
        strays.write().touch(|node| pods.node(node).is_some());
    }

    fn settle_stray(&self, queue: &Queue, key: &Key, stray: &Stray) {
        if self.0.pods.read().node(&stray.node).is_none() {
            return;
        }
        let target = Target::of::<Pod>(key.clone());
        let writes = match stray.plan() {
            None => return,
            Some(Deed::Finish) => vec![Some(Write::delete(target, &stray.uid).grace(0))],
            Some(Deed::Tell) => {
                let why = stray.why();
                let patch = status::patch(&status::not_running(BACKOFF, &why));
                let now = self.0.settings.clock.now();
                let event = Report::warning(BACKOFF, &why).about(key, &stray.uid, &self.0.settings.pod, now);
                vec![Write::strategic_status(target, &stray.uid, &patch).ok(), event]
            }
        };
        for write in writes.into_iter().flatten() {
            // The next look tries again if there is no room now.
            let _ = queue.write(&write);
        }
    }
}
