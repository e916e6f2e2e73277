//! What others say about themselves on the local network, and when to ask. Pure: packets and time come in, findings and
//! packets go out.
//!
//! Everything is kept by sender, so what one machine says never changes what another said, and whoever says too much
//! displaces nobody but itself. What has been verified is never displaced by what has not.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use hickory_proto::rr::{Name, RecordType};
use liqo_api::names::ClusterId;
use tokio::time::Instant;

use super::message::{self, Data, Packet, Question, Record};
use super::{LinkId, Outgoing};
use crate::advert::{self, Advert, Origin, Refusal, Refused, Sender};

mod neighbour;
#[cfg(test)]
mod tests;

use neighbour::{Neighbour, Part, Service};

/// Machines that are listened to at once.
const MAX_SENDERS: usize = 256;

/// Questions in one packet that ask for what is missing.
const MAX_MISSING: usize = 16;

/// Between two packets that ask for what is missing, on all networks: a flood of half records is not answered with one.
const MISSING_PAUSE: Duration = Duration::from_millis(100);

/// The first wait between two questions for everybody, which doubles up to the last one. New clusters tell by
/// themselves; asking is for those whose packets were lost.
const ASK_FIRST: Duration = Duration::from_secs(1);
const ASK_LAST: Duration = Duration::from_secs(60);

/// After a goodbye, everybody is asked this soon: if somebody else said it, the cluster itself answers.
const ASK_AFTER_GOODBYE: Duration = Duration::from_millis(500);

/// Known answers in one question; more would not fit a packet.
const MAX_KNOWN: usize = 20;

/// What was found out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Heard {
    /// A cluster tells about itself, or tells it again.
    Seen(Origin, Advert),
    /// It said goodbye.
    Gone(Origin),
    /// Something was refused.
    Refused(Refused),
}

/// When to ask everybody on one network.
struct Round {
    next: Instant,
    pause: Duration,
}

/// The side that asks and listens.
pub(crate) struct Browser {
    service: Name,
    neighbours: BTreeMap<Sender, Neighbour>,
    rounds: BTreeMap<LinkId, Round>,
    next_missing: Instant,
}

enum Taken {
    Kept(Arc<str>),
    Goodbye(Arc<str>),
    NotOurs,
}

impl Browser {
    pub(crate) fn new(service: Name, now: Instant) -> Self {
        Self { service, neighbours: BTreeMap::new(), rounds: BTreeMap::new(), next_missing: now }
    }

    /// Asks on these networks from now on. `delay` is random, as many may begin at once.
    pub(crate) fn set_links(&mut self, links: &BTreeSet<LinkId>, delay: Duration, now: Instant) {
        self.rounds.retain(|id, _| links.contains(id));
        self.neighbours.retain(|_, neighbour| links.contains(&neighbour.link));
        for link in links {
            let round = Round { next: now + delay, pause: ASK_FIRST };
            self.rounds.entry(*link).or_insert(round);
        }
    }

    /// How much is kept.
    pub(crate) fn len(&self) -> usize {
        self.neighbours.values().map(Neighbour::len).sum()
    }

    /// Takes in a packet. `is_verified` tells which clusters have proved to be what they say.
    pub(crate) fn hear(
        &mut self,
        link: LinkId,
        from: SocketAddr,
        packet: &Packet,
        is_verified: impl Fn(&Origin) -> bool,
        now: Instant,
    ) -> Vec<Heard> {
        if !packet.is_response {
            return Vec::new();
        }
        let broken = || Heard::Refused(Refused::new(Refusal::Malformed, "a record that cannot be read"));
        let mut heard: Vec<_> = std::iter::repeat_with(broken).take(packet.broken).collect();
        let sender = Sender::Neighbour { interface: link.interface, address: from.ip() };
        let mut touched = BTreeSet::new();
        for record in &packet.records {
            match self.take(link, &sender, record, &is_verified, now) {
                Ok(Taken::Kept(name)) => drop(touched.insert(name)),
                Ok(Taken::Goodbye(record)) => {
                    self.hurry(link, now);
                    heard.push(Heard::Gone(Origin { sender: sender.clone(), record }));
                }
                Ok(Taken::NotOurs) => {}
                Err(refused) => heard.push(Heard::Refused(refused)),
            }
        }
        let Some(neighbour) = self.neighbours.get_mut(&sender) else { return heard };
        for record in &packet.records {
            if let Data::Address(address) = record.data {
                touched.extend(neighbour.keep_address(&record.name, address, record.ttl, now));
            }
        }
        heard.extend(touched.iter().filter_map(|name| neighbour.report(&sender, name)));
        heard
    }

    /// Takes a record about an instance of the service. It is parsed before anything is kept for it.
    fn take(
        &mut self,
        link: LinkId,
        sender: &Sender,
        record: &Record,
        is_verified: &impl Fn(&Origin) -> bool,
        now: Instant,
    ) -> Result<Taken, Refused> {
        let instance = match &record.data {
            Data::Pointer(target) if record.name == self.service => target,
            Data::Service { .. } | Data::Text(_) if self.service.zone_of(&record.name) => &record.name,
            _ => return Ok(Taken::NotOurs),
        };
        let id = self.instance_id(instance)?;
        let ttl = advert::ttl(record.ttl)?;
        if ttl == 0 {
            return Ok(self.forget(sender, &id));
        }
        let part = match &record.data {
            Data::Service { port, target } => {
                Part::Service(Service::new(advert::port(*port)?, target, ttl, now))
            }
            Data::Text(texts) => Part::text(texts, &id)?,
            Data::Pointer(_) | Data::Address(_) => Part::Name,
        };
        let neighbour = self.neighbour(link, sender, is_verified, now)?;
        neighbour.keep(sender, id, part, ttl, is_verified, now).map(Taken::Kept)
    }

    /// The cluster's ID, which is the first label of an instance's name.
    fn instance_id(&self, instance: &Name) -> Result<ClusterId, Refused> {
        let label = instance.iter().next().unwrap_or_default();
        let refuse = |what: &str| {
            Refused::new(Refusal::InvalidName, format!("{} is not {what}", advert::quote(label)))
        };
        if instance.base_name() != self.service {
            return Err(refuse("an instance of the service"));
        }
        advert::cluster_id(std::str::from_utf8(label).map_err(|_| refuse("a cluster ID"))?)
    }

    fn forget(&mut self, sender: &Sender, id: &ClusterId) -> Taken {
        let removed = self.neighbours.get_mut(sender).and_then(|one| one.instances.remove_entry(id.as_str()));
        removed.map_or(Taken::NotOurs, |(name, _)| Taken::Goodbye(name))
    }

    fn hurry(&mut self, link: LinkId, now: Instant) {
        if let Some(round) = self.rounds.get_mut(&link) {
            round.next = round.next.min(now + ASK_AFTER_GOODBYE);
        }
    }

    /// The sender's entry, made if there is room or if the oldest can go that was never verified.
    fn neighbour(
        &mut self,
        link: LinkId,
        sender: &Sender,
        is_verified: &impl Fn(&Origin) -> bool,
        now: Instant,
    ) -> Result<&mut Neighbour, Refused> {
        if !self.neighbours.contains_key(sender) && self.neighbours.len() >= MAX_SENDERS {
            let unverified = |(sender, neighbour): &(&Sender, &Neighbour)| {
                let origin = |record| Origin { sender: (*sender).clone(), record: Arc::clone(record) };
                !neighbour.instances.keys().any(|record| is_verified(&origin(record)))
            };
            let oldest = self.neighbours.iter().filter(unverified).min_by_key(|(_, one)| one.since);
            let oldest = oldest.map(|(sender, _)| sender.clone()).ok_or_else(|| {
                Refused::new(Refusal::TooMany, format!("more than {MAX_SENDERS} machines advertise"))
            })?;
            self.neighbours.remove(&oldest);
        }
        Ok(self.neighbours.entry(sender.clone()).or_insert_with(|| Neighbour::new(link, now)))
    }

    /// What is to be asked now, and what is known to be complete now.
    pub(crate) fn due(
        &mut self,
        is_verified: impl Fn(&Origin) -> bool,
        now: Instant,
    ) -> (Vec<Outgoing>, Vec<Heard>) {
        self.neighbours.values_mut().for_each(|neighbour| neighbour.sweep(now));
        self.neighbours.retain(|_, neighbour| !neighbour.instances.is_empty());
        let mut links = self.refreshes(&is_verified, now);
        for (link, round) in &mut self.rounds {
            if round.next <= now {
                links.insert(*link);
                round.next = now + round.pause;
                round.pause = (round.pause * 2).min(ASK_LAST);
            }
        }
        let mut packets: Vec<_> =
            links.into_iter().filter_map(|link| self.ask_everybody(link, now)).collect();
        let mut heard = Vec::new();
        if self.next_missing <= now {
            packets.extend(self.ask_missing(&mut heard, now));
        }
        (packets, heard)
    }

    /// When something is to be done next.
    pub(crate) fn next(&self) -> Option<Instant> {
        let rounds = self.rounds.values().map(|round| round.next);
        rounds.chain(self.neighbours.values().filter_map(|one| one.next(self.next_missing))).min()
    }

    /// The networks on which something verified is about to run out.
    fn refreshes(&mut self, is_verified: &impl Fn(&Origin) -> bool, now: Instant) -> BTreeSet<LinkId> {
        let mut links = BTreeSet::new();
        for (sender, neighbour) in &mut self.neighbours {
            for (record, instance) in &mut neighbour.instances {
                let is_due = instance.service.as_mut().is_some_and(|service| service.refresh(now));
                if is_due && is_verified(&Origin { sender: sender.clone(), record: Arc::clone(record) }) {
                    links.insert(neighbour.link);
                }
            }
        }
        links
    }

    /// A question for all instances, with those that we know well already.
    fn ask_everybody(&self, link: LinkId, now: Instant) -> Option<Outgoing> {
        let neighbours = self.neighbours.values().filter(|neighbour| neighbour.link == link);
        let known = neighbours.flat_map(|neighbour| neighbour.instances.values()).filter_map(|instance| {
            let service = instance.service.as_ref()?;
            let left = service.expires().checked_duration_since(now)?.as_secs();
            let left = u32::try_from(left).ok().filter(|left| *left >= service.ttl / 2)?;
            let target = self.service.prepend_label(instance.id.as_str()).ok()?;
            Some(Record { name: self.service.clone(), ttl: left, data: Data::Pointer(target) })
        });
        let known: Vec<_> = known.take(MAX_KNOWN).collect();
        let question = Question { name: self.service.clone(), kind: RecordType::PTR, unicast: false };
        Some(Outgoing { link, to: None, bytes: message::query(vec![question], &known)? })
    }

    /// Questions for what is missing of instances, one packet per network.
    fn ask_missing(&mut self, heard: &mut Vec<Heard>, now: Instant) -> Vec<Outgoing> {
        let mut questions: BTreeMap<LinkId, Vec<Question>> = BTreeMap::new();
        for (sender, neighbour) in &mut self.neighbours {
            let waiting = questions.entry(neighbour.link).or_default();
            let (asked, completed) =
                neighbour.ask(&self.service, MAX_MISSING.saturating_sub(waiting.len()), now);
            waiting.extend(asked);
            heard.extend(completed.iter().filter_map(|name| neighbour.report(sender, name)));
        }
        questions.retain(|_, questions| !questions.is_empty());
        if !questions.is_empty() {
            self.next_missing = now + MISSING_PAUSE;
        }
        let packet =
            |(link, questions)| Some(Outgoing { link, to: None, bytes: message::query(questions, &[])? });
        questions.into_iter().filter_map(packet).collect()
    }
}
