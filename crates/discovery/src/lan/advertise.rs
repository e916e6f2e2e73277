//! What we say about ourselves on the local network, and when. Pure: packets and time come in, packets go out.
//!
//! All records go out together, in one packet of a few hundred bytes, so whoever hears one has all of them. Names are
//! made from the cluster's ID, which nobody else has, so nobody is asked first whether a name is free (RFC 6762, 8.1
//! allows that): a cluster is found at the first packet.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use hickory_proto::ProtoError;
use hickory_proto::rr::{Name, RecordType};
use liqo_api::Fingerprint;
use liqo_api::names::Identity;
use tokio::time::Instant;

use super::message::{self, Data, Packet, Question, Record};
use super::{LinkId, MDNS_PORT, Outgoing, SERVICE, SERVICES};
use crate::advert::keys;

#[cfg(test)]
mod tests;

/// How long after the first announcement the others come, for those who missed it.
const ANNOUNCEMENTS: [Duration; 3] = [Duration::ZERO, Duration::from_secs(1), Duration::from_secs(3)];

/// Between two packets with the same records on one network (RFC 6762, 6).
const RATE_LIMIT: Duration = Duration::from_secs(1);

/// Answers to single askers per second; they are a convenience, everybody hears the others.
const MAX_UNICAST: u32 = 10;

/// The longest lifetime in an answer to somebody who does not speak multicast DNS (RFC 6762, 6.7).
const MAX_LEGACY_TTL: u32 = 10;

/// The usual lifetime of records in seconds, as Liqo has it.
pub const DEFAULT_TTL: u32 = 90;

/// What is said about this cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Advertisement {
    /// Who we are.
    pub identity: Identity,
    /// The port of the authentication service: its NodePort, or the load balancer's.
    pub port: u16,
    /// Where it listens; if empty, at the addresses of each interface, as a NodePort does.
    pub addresses: Vec<IpAddr>,
    /// The fingerprint of its certificate.
    pub fingerprint: Option<Fingerprint>,
    /// The version of this program.
    pub version: String,
    /// Seconds for which others believe it without hearing it again.
    pub ttl: u32,
}

/// The names and the content of our records, made once per advertisement.
struct Ours {
    advertisement: Advertisement,
    service: Name,
    services: Name,
    instance: Name,
    host: Name,
    texts: Vec<Vec<u8>>,
}

impl Ours {
    fn new(advertisement: Advertisement) -> Result<Self, ProtoError> {
        let service = Name::from_ascii(SERVICE)?;
        let identity = &advertisement.identity;
        let mut texts = vec![
            format!("{}={}", keys::ID, identity.id),
            format!("{}={}", keys::NAME, identity.name),
            format!("{}={}", keys::VERSION, advertisement.version),
        ];
        texts.extend(advertisement.fingerprint.map(|print| format!("{}={print}", keys::FINGERPRINT)));
        Ok(Self {
            services: Name::from_ascii(SERVICES)?,
            instance: service.prepend_label(identity.id.as_str())?,
            host: Name::from_ascii("local.")?.prepend_label(identity.id.as_str())?,
            service,
            texts: texts.into_iter().map(String::into_bytes).collect(),
            advertisement,
        })
    }

    /// The records for a network on which we have these addresses.
    fn records(&self, addresses: &[IpAddr], ttl: u32) -> Vec<Record> {
        let given = &self.advertisement.addresses;
        let addresses = if given.is_empty() { addresses } else { given };
        let record = |name: &Name, data| Record { name: name.clone(), ttl, data };
        let service = Data::Service { port: self.advertisement.port, target: self.host.clone() };
        let mut records = vec![
            record(&self.service, Data::Pointer(self.instance.clone())),
            record(&self.instance, service),
            record(&self.instance, Data::Text(self.texts.clone())),
        ];
        records.extend(addresses.iter().map(|address| record(&self.host, Data::Address(*address))));
        records
    }

    /// Whether a question is about us, and whether it is about the kinds of services there are.
    fn is_asked(&self, question: &Question) -> Asked {
        let of = |kinds: &[RecordType]| question.kind == RecordType::ANY || kinds.contains(&question.kind);
        let name = &question.name;
        if *name == self.services && of(&[RecordType::PTR]) {
            return Asked::Services;
        }
        let ours = *name == self.service && of(&[RecordType::PTR])
            || *name == self.instance && of(&[RecordType::SRV, RecordType::TXT])
            || *name == self.host && of(&[RecordType::A, RecordType::AAAA]);
        if ours { Asked::Ours } else { Asked::Nothing }
    }

    /// Whether the asker only wants to hear of others: it told that it knows us well enough (RFC 6762, 7.1).
    fn is_known(&self, packet: &Packet) -> bool {
        let all_browse = packet.questions.iter().all(|question| question.name == self.service);
        let fresh = self.advertisement.ttl / 2;
        all_browse
            && packet
                .records
                .iter()
                .any(|record| record.ttl >= fresh && record.data == Data::Pointer(self.instance.clone()))
    }
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Asked {
    Nothing,
    Services,
    Ours,
}

/// A network that we speak on.
#[derive(Default)]
struct Link {
    addresses: Vec<IpAddr>,
    /// How many announcements were made, and when the next is due.
    announced: usize,
    announce: Option<Instant>,
    /// When the answer is due that somebody waits for, and whether it is about the kinds of services, too.
    answer: Option<Instant>,
    about_services: bool,
    last_sent: Option<Instant>,
}

/// The side that answers.
#[derive(Default)]
pub(crate) struct Advertiser {
    ours: Option<Ours>,
    links: BTreeMap<LinkId, Link>,
    unicast: (Option<Instant>, u32),
}

impl Advertiser {
    /// Says this from now on, or nothing. Returns the goodbyes for what is not said any more.
    pub(crate) fn advertise(&mut self, advertisement: Option<Advertisement>, now: Instant) -> Vec<Outgoing> {
        if self.ours.as_ref().map(|ours| &ours.advertisement) == advertisement.as_ref() {
            return Vec::new();
        }
        let former = self.ours.as_ref().map(|ours| ours.instance.clone());
        let next = advertisement.and_then(|advertisement| {
            Ours::new(advertisement)
                .inspect_err(|error| tracing::error!(%error, "this cluster cannot be advertised"))
                .ok()
        });
        // What is only changed is replaced by the announcement.
        let gone = former.is_some() && former.as_ref() != next.as_ref().map(|ours| &ours.instance);
        let goodbyes = if gone { self.goodbyes() } else { Vec::new() };
        self.ours = next;
        for link in self.links.values_mut() {
            (link.announced, link.announce, link.answer) = (0, Some(now), None);
        }
        goodbyes
    }

    /// Speaks on these networks from now on, with the addresses that we have there.
    pub(crate) fn set_links(&mut self, links: BTreeMap<LinkId, Vec<IpAddr>>, now: Instant) {
        self.links.retain(|id, _| links.contains_key(id));
        for (id, addresses) in links {
            let link = self.links.entry(id).or_default();
            if link.addresses != addresses {
                *link = Link { addresses, announce: Some(now), ..Link::default() };
            }
        }
    }

    /// Somebody asks. `delay` is random: several answer the same question, not all at once.
    pub(crate) fn hear(
        &mut self,
        id: LinkId,
        from: SocketAddr,
        packet: &Packet,
        delay: Duration,
        now: Instant,
    ) -> Option<Outgoing> {
        let ours = self.ours.as_ref().filter(|_| !packet.is_response)?;
        let asked = packet.questions.iter().map(|question| ours.is_asked(question)).max()?;
        if asked == Asked::Nothing || ours.is_known(packet) {
            return None;
        }
        let link = self.links.get_mut(&id)?;
        let legacy = from.port() != MDNS_PORT;
        if legacy || packet.questions.iter().all(|question| question.unicast) {
            let ttl = if legacy { MAX_LEGACY_TTL } else { u32::MAX }.min(ours.advertisement.ttl);
            let mut records = ours.records(&link.addresses, ttl);
            if asked == Asked::Services {
                records.push(services(ours, ttl));
            }
            let questions = if legacy { packet.questions.clone() } else { Vec::new() };
            let id_of_answer = if legacy { packet.id } else { 0 };
            let bytes =
                message::response(id_of_answer, questions, &records, |record| !legacy && is_unique(record))?;
            return may_send(&mut self.unicast, now).then_some(Outgoing { link: id, to: Some(from), bytes });
        }
        link.about_services |= asked == Asked::Services;
        let earliest = link.last_sent.map_or(now, |last| now.max(last + RATE_LIMIT));
        let due = earliest.max(now + delay);
        link.answer = Some(link.answer.map_or(due, |answer| answer.min(due)));
        None
    }

    /// The fingerprint that we tell.
    pub(crate) fn fingerprint(&self) -> Option<Fingerprint> {
        self.ours.as_ref().and_then(|ours| ours.advertisement.fingerprint)
    }

    /// What is to be sent now.
    pub(crate) fn due(&mut self, now: Instant) -> Vec<Outgoing> {
        let Some(ours) = &self.ours else { return Vec::new() };
        let ttl = ours.advertisement.ttl;
        let mut packets = Vec::new();
        for (id, link) in &mut self.links {
            let is_due = |at: Option<Instant>| at.is_some_and(|at| at <= now);
            if !is_due(link.announce) && !is_due(link.answer) {
                continue;
            }
            let mut records = ours.records(&link.addresses, ttl);
            records.extend(link.about_services.then(|| services(ours, ttl)));
            if is_due(link.announce) {
                link.announced += 1;
                link.announce = Some(now + pause_after(link.announced, ttl));
            }
            (link.answer, link.about_services, link.last_sent) = (None, false, Some(now));
            let bytes = message::response(0, Vec::new(), &records, is_unique);
            packets.extend(bytes.map(|bytes| Outgoing { link: *id, to: None, bytes }));
        }
        packets
    }

    /// When something is to be sent next.
    pub(crate) fn next(&self) -> Option<Instant> {
        self.ours.as_ref()?;
        self.links.values().flat_map(|link| [link.announce, link.answer]).flatten().min()
    }

    /// Tells everybody to forget us.
    pub(crate) fn goodbyes(&self) -> Vec<Outgoing> {
        let Some(ours) = &self.ours else { return Vec::new() };
        let goodbye = |(id, link): (&LinkId, &Link)| {
            let bytes = message::response(0, Vec::new(), &ours.records(&link.addresses, 0), is_unique)?;
            Some(Outgoing { link: *id, to: None, bytes })
        };
        self.links.iter().filter(|(_, link)| link.announced > 0).filter_map(goodbye).collect()
    }
}

/// The record that says which kind of service this is.
fn services(ours: &Ours, ttl: u32) -> Record {
    Record { name: ours.services.clone(), ttl, data: Data::Pointer(ours.service.clone()) }
}

/// Records that only we have; the pointers are shared with all clusters.
fn is_unique(record: &Record) -> bool {
    !matches!(record.data, Data::Pointer(_))
}

/// After the first ones, announcements come twice in the lifetime of the records, so that nobody must ask.
fn pause_after(announced: usize, ttl: u32) -> Duration {
    match (ANNOUNCEMENTS.get(announced), announced.checked_sub(1).and_then(|last| ANNOUNCEMENTS.get(last))) {
        (Some(next), Some(last)) => next.saturating_sub(*last),
        _ => Duration::from_secs(u64::from(ttl.max(2)) / 2),
    }
}

fn may_send((second, sent): &mut (Option<Instant>, u32), now: Instant) -> bool {
    if second.is_none_or(|second| now.duration_since(second) >= Duration::from_secs(1)) {
        (*second, *sent) = (Some(now), 0);
    }
    *sent += 1;
    *sent <= MAX_UNICAST
}
