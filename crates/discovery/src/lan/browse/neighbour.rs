//! What is kept of one machine on the local network.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use hickory_proto::rr::{Name, RecordType};
use liqo_api::names::ClusterId;
use tokio::time::Instant;

use super::Heard;
use crate::advert::{self, Advert, Host, MAX_ADDRESSES, Origin, Refusal, Refused, Sender, Text};
use crate::lan::LinkId;
use crate::lan::message::Question;

/// Clusters that one machine may speak for: one, or several where a router repeats what it heard on another network.
pub(crate) const MAX_PER_SENDER: usize = 16;

/// Host names of one machine.
const MAX_HOSTS: usize = MAX_PER_SENDER;

/// How long to wait for the rest of a record before asking for it, at first; then twice as long, and so on.
const MISSING_FIRST: Duration = Duration::from_millis(50);

/// How often what is missing is asked for.
const MISSING_TRIES: u32 = 4;

/// Without a TXT record after this many questions, there is none.
const TEXT_TRIES: u32 = 2;

/// At which part of its lifetime a record is asked for again (RFC 6762, 5.2), in hundredths.
const REFRESH_AT: [u32; 4] = [80, 85, 90, 95];

/// The service of one instance.
pub(super) struct Service {
    pub(super) port: u16,
    pub(super) target: Name,
    pub(super) ttl: u32,
    pub(super) heard: Instant,
    refreshes: usize,
}

impl Service {
    pub(super) fn new(port: u16, target: &Name, ttl: u32, now: Instant) -> Self {
        Self { port, target: target.to_lowercase(), ttl, heard: now, refreshes: 0 }
    }

    pub(super) fn expires(&self) -> Instant {
        self.heard + seconds(self.ttl)
    }

    pub(super) fn refresh_at(&self) -> Option<Instant> {
        let part = REFRESH_AT.get(self.refreshes)?;
        Some(self.heard + seconds(self.ttl) * *part / 100)
    }

    /// Whether it is to be asked for again now.
    pub(super) fn refresh(&mut self, now: Instant) -> bool {
        let before = self.refreshes;
        while self.refresh_at().is_some_and(|at| at <= now) {
            self.refreshes += 1;
        }
        self.refreshes > before
    }
}

/// What one sender said about one cluster.
pub(super) struct Instance {
    pub(super) id: ClusterId,
    pub(super) service: Option<Service>,
    pub(super) text: Option<Text>,
    since: Instant,
    /// Questions asked for what is missing, and when to ask again.
    asked: u32,
    ask: Instant,
    /// What has no service is forgotten then.
    until: Instant,
}

/// A part of an instance that a record tells.
pub(super) enum Part {
    Service(Service),
    Text(Text),
    Name,
}

impl Part {
    /// Reads a TXT record, which must not speak of another cluster.
    pub(super) fn text(texts: &[Vec<u8>], id: &ClusterId) -> Result<Self, Refused> {
        let text = Text::parse(texts)?;
        match &text.id {
            Some(other) if other != id => {
                let detail = format!("the record of {id} has the TXT record of {other}");
                Err(Refused::new(Refusal::Contradiction, detail))
            }
            _ => Ok(Self::Text(text)),
        }
    }
}

/// One machine.
pub(super) struct Neighbour {
    pub(super) link: LinkId,
    pub(super) since: Instant,
    pub(super) instances: BTreeMap<Arc<str>, Instance>,
    hosts: BTreeMap<Name, Vec<(IpAddr, Instant)>>,
}

impl Neighbour {
    pub(super) fn new(link: LinkId, now: Instant) -> Self {
        Self { link, since: now, instances: BTreeMap::new(), hosts: BTreeMap::new() }
    }

    pub(super) fn len(&self) -> usize {
        self.instances.len() + self.hosts.len()
    }

    /// Keeps a part of an instance. When there are too many, the oldest goes that was never verified.
    pub(super) fn keep(
        &mut self,
        sender: &Sender,
        id: ClusterId,
        part: Part,
        ttl: u32,
        is_verified: &impl Fn(&Origin) -> bool,
        now: Instant,
    ) -> Result<Arc<str>, Refused> {
        let name: Arc<str> = id.as_str().into();
        if !self.instances.contains_key(&name) && self.instances.len() >= MAX_PER_SENDER {
            let unverified = |(record, _): &(&Arc<str>, &Instance)| {
                !is_verified(&Origin { sender: sender.clone(), record: Arc::clone(record) })
            };
            let oldest = self.instances.iter().filter(unverified).min_by_key(|(_, one)| one.since);
            let oldest = oldest.map(|(record, _)| Arc::clone(record)).ok_or_else(|| {
                let detail = format!("{sender} advertises more than {MAX_PER_SENDER} clusters");
                Refused::new(Refusal::TooMany, detail)
            })?;
            self.instances.remove(&oldest);
        }
        let new = || Instance {
            id,
            service: None,
            text: None,
            since: now,
            asked: 0,
            ask: now + MISSING_FIRST,
            until: now,
        };
        let instance = self.instances.entry(Arc::clone(&name)).or_insert_with(new);
        instance.until = instance.until.max(now + seconds(ttl));
        match part {
            Part::Service(service) => instance.service = Some(service),
            Part::Text(text) => instance.text = Some(text),
            Part::Name => {}
        }
        Ok(name)
    }

    /// Keeps an address of a host that one of the instances is on; returns those instances.
    pub(super) fn keep_address(
        &mut self,
        host: &Name,
        address: IpAddr,
        ttl: u32,
        now: Instant,
    ) -> Vec<Arc<str>> {
        let host = host.to_lowercase();
        let is_there =
            |instance: &Instance| instance.service.as_ref().is_some_and(|service| service.target == host);
        let there: Vec<_> = self
            .instances
            .iter()
            .filter(|(_, instance)| is_there(instance))
            .map(|(name, _)| Arc::clone(name))
            .collect();
        let Ok(ttl) = advert::ttl(ttl) else { return Vec::new() };
        if there.is_empty() || (!self.hosts.contains_key(&host) && self.hosts.len() >= MAX_HOSTS) {
            return Vec::new();
        }
        let addresses = self.hosts.entry(host).or_default();
        addresses.retain(|(known, _)| *known != address);
        if ttl > 0 && addresses.len() < MAX_ADDRESSES {
            addresses.push((address, now + seconds(ttl)));
        }
        there
    }

    /// What is known of an instance, once that is enough to look at it.
    pub(super) fn report(&self, sender: &Sender, name: &Arc<str>) -> Option<Heard> {
        let instance = self.instances.get(name)?;
        let (service, text) = (instance.service.as_ref()?, instance.text.as_ref()?);
        let found = self.hosts.get(&service.target)?.iter().map(|(address, _)| *address);
        let mut addresses = match advert::addresses(found) {
            Ok(addresses) => addresses,
            Err(refused) => return Some(Heard::Refused(refused)),
        };
        // In the order of their values: another order would be taken for a change.
        addresses.sort();
        let origin = Origin { sender: sender.clone(), record: Arc::clone(name) };
        let advert = Advert {
            id: Some(instance.id.clone()),
            name: text.name.clone(),
            fingerprint: text.fingerprint,
            host: Host::Address,
            port: service.port,
            addresses,
            ttl: service.ttl,
        };
        Some(Heard::Seen(origin, advert))
    }

    /// Questions for what is missing; and which instances are complete now, as what they lack does not exist.
    pub(super) fn ask(
        &mut self,
        service: &Name,
        room: usize,
        now: Instant,
    ) -> (Vec<Question>, Vec<Arc<str>>) {
        let (mut questions, mut completed) = (Vec::new(), Vec::new());
        for (name, instance) in &mut self.instances {
            if questions.len() >= room || !instance.is_asking(&self.hosts) || instance.ask > now {
                continue;
            }
            questions.extend(instance.missing(service, &self.hosts));
            instance.asked += 1;
            instance.ask = now + MISSING_FIRST * 2u32.pow(instance.asked.min(MISSING_TRIES));
            if instance.text.is_none() && instance.asked > TEXT_TRIES {
                instance.text = Some(Text::default());
                completed.push(Arc::clone(name));
            }
        }
        (questions, completed)
    }

    /// When something is to be done; what is missing is not asked for before `missing`.
    pub(super) fn next(&self, missing: Instant) -> Option<Instant> {
        let times = self.instances.values().flat_map(|instance| {
            let ask = instance.is_asking(&self.hosts).then(|| instance.ask.max(missing));
            match &instance.service {
                Some(service) => [service.refresh_at(), Some(service.expires()), ask],
                None => [Some(instance.until), None, ask],
            }
        });
        times.flatten().min()
    }

    /// Forgets what has run out.
    pub(super) fn sweep(&mut self, now: Instant) {
        for instance in self.instances.values_mut() {
            instance.service.take_if(|service| service.expires() <= now);
        }
        self.instances.retain(|_, instance| instance.service.is_some() || instance.until > now);
        for addresses in self.hosts.values_mut() {
            addresses.retain(|(_, until)| *until > now);
        }
        let targets: BTreeSet<_> =
            self.instances.values().filter_map(|one| Some(&one.service.as_ref()?.target)).collect();
        self.hosts.retain(|host, addresses| !addresses.is_empty() && targets.contains(host));
    }
}

impl Instance {
    fn lacks_address<T>(&self, hosts: &BTreeMap<Name, T>) -> Option<&Name> {
        let target = &self.service.as_ref()?.target;
        (!hosts.contains_key(target)).then_some(target)
    }

    fn is_asking<T>(&self, hosts: &BTreeMap<Name, T>) -> bool {
        let lacks = self.service.is_none() || self.text.is_none() || self.lacks_address(hosts).is_some();
        lacks && self.asked < MISSING_TRIES
    }

    fn missing<T>(&self, service: &Name, hosts: &BTreeMap<Name, T>) -> Vec<Question> {
        let ask = |name: &Name, kind| Question { name: name.clone(), kind, unicast: false };
        let mut questions = Vec::new();
        if let Ok(instance) = service.prepend_label(self.id.as_str()) {
            questions.extend(self.service.is_none().then(|| ask(&instance, RecordType::SRV)));
            questions.extend(self.text.is_none().then(|| ask(&instance, RecordType::TXT)));
        }
        if let Some(target) = self.lacks_address(hosts) {
            questions.extend([ask(target, RecordType::A), ask(target, RecordType::AAAA)]);
        }
        questions
    }
}

fn seconds(count: u32) -> Duration {
    Duration::from_secs(count.into())
}
