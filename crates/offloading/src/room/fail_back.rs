//! Has pods go back to a provider that answers again: one after the other, as their disruption budgets allow.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kube::api::{DeleteParams, EvictParams, ListParams, Preconditions};
use kube::{Api, ResourceExt};
use liqo_kit::Queue;
use tokio::task::{AbortHandle, JoinSet};

use super::Room;
use crate::events::Report;
use crate::plan::fail_back::{Return, going_back};

/// How long one request may take.
const REQUEST: Duration = Duration::from_secs(10);
/// How long it waits between two pods.
const PACE: Duration = Duration::from_secs(1);
/// How long it waits before it asks those again whose budget did not allow it: at first, and at most.
const FIRST_WAIT: Duration = Duration::from_secs(2);
const LONGEST_WAIT: Duration = Duration::from_secs(60);

/// The returns under way, and those that are done as far as this leader knows.
#[derive(Default)]
pub(super) struct Returns {
    tasks: JoinSet<()>,
    begun: BTreeMap<Return, AbortHandle>,
}

impl Returns {
    /// Has those go back who may, and nobody else. Each is looked at once: whom it concerns does not become more.
    pub(super) fn keep(&mut self, room: &Room, queue: &Queue, wanted: Vec<Return>) {
        while self.tasks.try_join_next().is_some() {}
        self.begun.retain(|back, task| {
            let stays = wanted.contains(back);
            if !stays {
                task.abort();
            }
            stays
        });
        for back in wanted {
            // One after the other within a namespace, also where several clusters are back.
            let mut others = self.begun.iter().filter(|(other, _)| other.namespace == back.namespace);
            if !self.begun.contains_key(&back) && others.all(|(_, task)| task.is_finished()) {
                let (room, queue, task) = (room.clone(), queue.clone(), back.clone());
                let handle = self.tasks.spawn(async move { room.go_back(&queue, &task).await });
                self.begun.insert(back, handle);
            }
        }
    }
}

/// What became of asking a pod.
enum Asked {
    Left,
    /// Gone by itself, or another has its name.
    Gone,
    /// Not now.
    Later(String),
}

impl Room {
    /// Returns when all have been asked, and have left or are gone.
    async fn go_back(&self, queue: &Queue, back: &Return) {
        let pods: Api<Pod> = Api::namespaced(self.0.client.clone(), &back.namespace);
        let mut waiting: VecDeque<Pod> = going_back(back, self.listed(&pods, back).await).into();
        if waiting.is_empty() {
            return;
        }
        let all = waiting.len();
        let message = format!(
            "{}: it answers again since {}; {all} pods that were started elsewhere meanwhile go back, one after the other",
            back.called, back.since
        );
        self.tell_of_return(queue, back, "FailBack", message);
        let (mut left, mut wait) = (0_usize, FIRST_WAIT);
        while !waiting.is_empty() {
            for _ in 0..waiting.len() {
                let Some(pod) = waiting.pop_front() else { break };
                match self.ask_back(&pods, &pod).await {
                    Asked::Left => {
                        (left, wait) = (left + 1, FIRST_WAIT);
                        self.0.metrics.departed("returned");
                        self.report(queue, &self.of_pod(back, &pod));
                    }
                    Asked::Gone => continue,
                    Asked::Later(why) => {
                        tracing::debug!(namespace = %back.namespace, pod = pod.name_any(), why, "does not go back yet");
                        waiting.push_back(pod);
                    }
                }
                tokio::time::sleep(PACE).await;
            }
            if !waiting.is_empty() {
                tokio::time::sleep(wait).await;
                wait = (wait * 2).min(LONGEST_WAIT);
            }
        }
        let message = format!(
            "{}: {left} of {all} pods were asked to leave; their controllers make others",
            back.called
        );
        self.tell_of_return(queue, back, "FailBackDone", message);
    }

    /// The pods of the namespace. Who cannot see them tries again: the task ends when nobody wants it any more.
    async fn listed(&self, pods: &Api<Pod>, back: &Return) -> Vec<Pod> {
        let may_leave = format!("{}={}", liqo_api::labels::SHADOW_POD, liqo_api::labels::TRUE);
        let params = ListParams::default().labels(&may_leave);
        let mut wait = FIRST_WAIT;
        loop {
            let error = match tokio::time::timeout(REQUEST, pods.list(&params)).await {
                Ok(Ok(list)) => return list.items,
                Ok(Err(error)) => error.to_string(),
                Err(_) => "no answer in time".to_owned(),
            };
            tracing::warn!(namespace = %back.namespace, error, "cannot see which pods may go back");
            tokio::time::sleep(wait).await;
            wait = (wait * 2).min(LONGEST_WAIT);
        }
    }

    async fn ask_back(&self, pods: &Api<Pod>, pod: &Pod) -> Asked {
        let this_one = DeleteParams {
            preconditions: Some(Preconditions { uid: pod.uid(), resource_version: None }),
            ..DeleteParams::default()
        };
        let params = EvictParams { delete_options: Some(this_one), ..EvictParams::default() };
        let name = pod.name_any();
        match tokio::time::timeout(REQUEST, pods.evict(&name, &params)).await {
            Ok(Ok(_)) => Asked::Left,
            Ok(Err(kube::Error::Api(status))) if matches!(status.code, 404 | 409) => Asked::Gone,
            Ok(Err(kube::Error::Api(status))) if status.code == 429 => Asked::Later(status.message),
            Ok(Err(error)) => {
                tracing::warn!(pod = name, %error, "cannot be asked to go back; it is asked again");
                Asked::Later(error.to_string())
            }
            Err(_) => Asked::Later("no answer in time".to_owned()),
        }
    }

    fn of_pod(&self, back: &Return, pod: &Pod) -> crate::steps::Step {
        let report = Report {
            warning: false,
            reason: "FailBack".to_owned(),
            message: format!(
                "evicted, so that another may run in {} again, which did not answer when this pod was made and does since {}",
                back.called, back.since
            ),
            occasion: String::new(),
        };
        report.about(pod, &self.0.settings.pod, self.0.settings.clock.now())
    }

    fn tell_of_return(&self, queue: &Queue, back: &Return, reason: &str, message: String) {
        tracing::info!(namespace = %back.namespace, reason, message, "pods go back");
        let Some(offloading) = self.0.index.read().offloadings.get(&back.namespace).cloned() else { return };
        let occasion = back.since.to_string();
        let report = Report { warning: false, reason: reason.to_owned(), message, occasion };
        self.report(queue, &report.about(&offloading, &self.0.settings.pod, self.0.settings.clock.now()));
    }
}
