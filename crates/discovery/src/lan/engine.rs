//! Speaking multicast DNS: sockets, packets and time around the two pure sides.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use hickory_proto::rr::Name;
use jiff::Timestamp;
use liqo_kit::{Backoff, BackoffPolicy, Shared};
use parking_lot::Mutex;
use tokio::net::UdpSocket;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::advertise::{Advertisement, Advertiser};
use super::browse::{Browser, Heard};
use super::budget::Budget;
use super::interfaces::{self, Interface};
use super::{Lan, LinkId, Outgoing, SERVICE, message, socket};
use crate::advert::{Advert, Origin, Refusal, Sender, Source};
use crate::book::Seen;
use crate::metrics::DiscoveryMetrics;
use crate::peers::Active;
use crate::state::State;

/// How often the interfaces are looked at; the kernel tells at once, but this is enough for cables and addresses.
const LOOK_AT_INTERFACES: Duration = Duration::from_secs(5);

/// Packets that wait to be looked at; more are dropped, as the kernel does.
const WAITING_PACKETS: usize = 512;

/// Packets looked at in one go.
const AT_ONCE: usize = 64;

/// How long to listen before somebody counts as missing: everybody is asked three times by then.
const WARM_AFTER: Duration = Duration::from_secs(10);

/// Goodbyes are said twice, as they cannot be repeated later; this much apart.
const GOODBYE_PAUSE: Duration = Duration::from_millis(50);

/// How often it is said that another cluster has our ID.
const WARN_AGAIN: Duration = Duration::from_secs(600);

/// A packet that came.
struct Incoming {
    link: LinkId,
    from: SocketAddr,
    bytes: Vec<u8>,
}

struct Link {
    socket: Arc<UdpSocket>,
    interface: Interface,
    stop: CancellationToken,
}

/// Speaks multicast DNS until it is stopped.
pub(crate) struct Engine {
    settings: Lan,
    state: Shared<State>,
    metrics: DiscoveryMetrics,
    links: BTreeMap<LinkId, Link>,
    /// When it was last said that somebody has our ID.
    warned: Mutex<Option<Instant>>,
    /// Sockets that could not be opened, so that each is complained about once.
    failed: BTreeSet<LinkId>,
    advertiser: Advertiser,
    browser: Option<Browser>,
    budget: Budget,
    readers: JoinSet<()>,
    packets: mpsc::Sender<Incoming>,
    waiting: mpsc::Receiver<Incoming>,
}

impl Engine {
    pub(crate) fn new(settings: Lan, state: Shared<State>, metrics: DiscoveryMetrics) -> Self {
        let (packets, waiting) = mpsc::channel(WAITING_PACKETS);
        // The name is a constant that parses; without it there is nothing to look for.
        let service = Name::from_ascii(SERVICE).ok().filter(|_| settings.browse);
        Self {
            settings,
            state,
            metrics,
            links: BTreeMap::new(),
            warned: Mutex::new(None),
            failed: BTreeSet::new(),
            advertiser: Advertiser::default(),
            browser: service.map(|service| Browser::new(service, Instant::now())),
            budget: Budget::default(),
            readers: JoinSet::new(),
            packets,
            waiting,
        }
    }

    /// Runs until `stop` is cancelled, then says goodbye.
    pub(crate) async fn run(mut self, stop: CancellationToken) {
        let mut said = self.settings.advertise.take();
        let warm = Instant::now() + WARM_AFTER;
        let mut look = Instant::now();
        let mut batch = Vec::with_capacity(AT_ONCE);
        self.advertise(said.as_mut()).await;
        loop {
            let now = Instant::now();
            if look <= now {
                self.look_at_interfaces();
                look = now + LOOK_AT_INTERFACES;
            }
            self.warm_up(warm, now);
            self.send_due(now).await;
            let next = self.next().map_or(look, |next| next.min(look));
            tokio::select! {
                () = stop.cancelled() => break,
                count = self.waiting.recv_many(&mut batch, AT_ONCE) => {
                    if count == 0 {
                        break;
                    }
                    self.hear(&mut batch).await;
                }
                () = tokio::time::sleep_until(next) => {}
                () = changed(&mut said) => self.advertise(said.as_mut()).await,
                Some(_) = self.readers.join_next(), if !self.readers.is_empty() => {}
            }
        }
        self.say_goodbye().await;
        self.readers.shutdown().await;
    }

    fn warm_up(&self, warm: Instant, now: Instant) {
        if now >= warm && self.browser.is_some() && self.state.read().lan == Active::Warming {
            self.state.write().lan = Active::Listening;
            self.state.notify();
        }
    }

    fn next(&self) -> Option<Instant> {
        let browser = self.browser.as_ref().and_then(Browser::next);
        [self.advertiser.next(), browser].into_iter().flatten().min()
    }

    /// Says what is to be said now about ourselves.
    async fn advertise(&mut self, said: Option<&mut watch::Receiver<Option<Advertisement>>>) {
        let Some(said) = said else { return };
        let advertisement = said.borrow_and_update().clone();
        let goodbyes = self.advertiser.advertise(advertisement, Instant::now());
        self.send(goodbyes).await;
    }

    /// Opens sockets on interfaces that came, and closes those on interfaces that went or changed.
    fn look_at_interfaces(&mut self) {
        let chosen = match interfaces::read() {
            Ok(all) => interfaces::choose(all, &self.settings.interfaces),
            Err(error) => {
                tracing::warn!(%error, "cannot read the network interfaces");
                return;
            }
        };
        let mut addresses: BTreeMap<LinkId, Vec<IpAddr>> = BTreeMap::new();
        for (interface, allowed) in &chosen {
            for is_ipv6 in self.families() {
                let id = LinkId { interface: interface.index, is_ipv6 };
                if self.links.get(&id).is_none_or(|link| link.interface != *interface) {
                    self.close(id);
                    self.open(id, interface);
                }
                if self.links.contains_key(&id) {
                    addresses.insert(id, allowed.clone());
                }
            }
        }
        let gone: Vec<_> = self.links.keys().filter(|id| !addresses.contains_key(id)).copied().collect();
        gone.into_iter().for_each(|id| self.close(id));
        let spoken: BTreeSet<_> = self.links.keys().map(|id| id.interface).collect();
        self.metrics.speaks_on(spoken.len());
        let now = Instant::now();
        if let Some(browser) = &mut self.browser {
            browser.set_links(&self.links.keys().copied().collect(), random_delay(), now);
        }
        self.advertiser.set_links(addresses, now);
    }

    fn families(&self) -> impl Iterator<Item = bool> + use<> {
        let (ipv4, ipv6) = (self.settings.ipv4, self.settings.ipv6);
        [(false, ipv4), (true, ipv6)].into_iter().filter(|(_, wanted)| *wanted).map(|(is_ipv6, _)| is_ipv6)
    }

    fn close(&mut self, id: LinkId) {
        if let Some(link) = self.links.remove(&id) {
            link.stop.cancel();
        }
    }

    fn open(&mut self, id: LinkId, interface: &Interface) {
        let socket = match socket::open(interface, id.is_ipv6) {
            Ok(socket) => Arc::new(socket),
            Err(error) => {
                if self.failed.insert(id) {
                    let version = if id.is_ipv6 { 6 } else { 4 };
                    tracing::info!(%error, interface = interface.name, version, "no multicast DNS here");
                }
                return;
            }
        };
        tracing::info!(interface = interface.name, is_ipv6 = id.is_ipv6, "speaking multicast DNS");
        self.failed.remove(&id);
        let stop = CancellationToken::new();
        let reader = read(id, Arc::clone(&socket), self.packets.clone(), self.metrics.clone(), stop.clone());
        self.readers.spawn(reader);
        self.links.insert(id, Link { socket, interface: interface.clone(), stop });
    }

    /// Looks at packets that came.
    async fn hear(&mut self, batch: &mut Vec<Incoming>) {
        let now = Instant::now();
        let (mut answers, mut heard) = (Vec::new(), Vec::new());
        for packet in batch.drain(..) {
            if !self.budget.spend(packet.from.ip(), now) {
                self.metrics.ignored();
                continue;
            }
            let is_near =
                self.links.get(&packet.link).is_some_and(|link| link.interface.is_near(packet.from.ip()));
            let decoded = message::decode(&packet.bytes).ok();
            let (Some(decoded), true) = (decoded, is_near) else {
                let why = if is_near { Refusal::Malformed } else { Refusal::OffLink };
                self.metrics.refuse(&Source::Lan, why);
                continue;
            };
            answers.extend(self.advertiser.hear(packet.link, packet.from, &decoded, random_delay(), now));
            if let Some(browser) = &mut self.browser {
                let state = self.state.read();
                let is_verified = |origin: &_| state.book.is_verified(origin);
                heard.extend(browser.hear(packet.link, packet.from, &decoded, is_verified, now));
            }
        }
        self.send(answers).await;
        self.note(heard, now);
    }

    async fn send_due(&mut self, now: Instant) {
        let mut packets = self.advertiser.due(now);
        if let Some(browser) = &mut self.browser
            && browser.next().is_some_and(|next| next <= now)
        {
            let state = self.state.read();
            let (questions, heard) = browser.due(|origin| state.book.is_verified(origin), now);
            drop(state);
            packets.extend(questions);
            self.note(heard, now);
        }
        self.send(packets).await;
    }

    /// Writes down what was heard.
    fn note(&self, heard: Vec<Heard>, now: Instant) {
        if let Some(browser) = &self.browser {
            self.metrics.keeps(browser.len());
        }
        if heard.is_empty() {
            return;
        }
        let mut news = false;
        let mut state = self.state.write();
        for one in heard {
            match one {
                Heard::Seen(origin, advert) if advert.id == state.own => self.hear_own(&origin, &advert),
                Heard::Seen(origin, mut advert) => {
                    self.metrics.record(&Source::Lan);
                    advert.addresses.retain(|address| !self.settings.interfaces.is_inside(*address));
                    if advert.addresses.is_empty() {
                        self.metrics.refuse(&Source::Lan, Refusal::NoAddress);
                        continue;
                    }
                    let life = Duration::from_secs(advert.ttl.into());
                    match state.book.see(origin, advert, life, Timestamp::now(), now) {
                        Ok(seen) => news |= seen == Seen::News,
                        Err(refused) => self.metrics.refuse(&Source::Lan, refused.why),
                    }
                }
                Heard::Gone(origin) => {
                    state.book.withdraw(&origin, now);
                    news = true;
                }
                Heard::Refused(refused) => {
                    tracing::debug!(reason = refused.why.as_str(), "{refused}");
                    self.metrics.refuse(&Source::Lan, refused.why);
                }
            }
        }
        drop(state);
        if news {
            self.state.notify();
        }
    }

    /// We hear ourselves, and another pod of ours; whoever else has our ID is told about.
    fn hear_own(&self, origin: &Origin, advert: &Advert) {
        let is_here = |address: IpAddr| {
            let networks = self.links.values().flat_map(|link| &link.interface.networks);
            networks.into_iter().any(|network| network.addr() == address)
        };
        let is_ours = match &origin.sender {
            Sender::Neighbour { address, .. } => is_here(*address),
            Sender::Domain(_) => false,
        };
        if is_ours || (advert.fingerprint.is_some() && advert.fingerprint == self.advertiser.fingerprint()) {
            return;
        }
        self.metrics.refuse(&Source::Lan, Refusal::OwnId);
        let mut warned = self.warned.lock();
        if warned.is_none_or(|at: Instant| at.elapsed() >= WARN_AGAIN) {
            *warned = Some(Instant::now());
            let (from, id) = (&origin.sender, &origin.record);
            tracing::warn!(%from, id = %id, "another cluster advertises the ID of this one; one of them needs another ID");
        }
    }

    async fn send(&self, packets: Vec<Outgoing>) {
        for packet in packets {
            let Some(link) = self.links.get(&packet.link) else { continue };
            let to = packet.to.unwrap_or_else(|| socket::group(packet.link.is_ipv6));
            match link.socket.send_to(&packet.bytes, to).await {
                Ok(_) => self.metrics.sent(),
                // An interface that goes down, an address that is not ready: said again later.
                Err(error) => {
                    tracing::debug!(%error, interface = link.interface.name, "cannot send a packet");
                }
            }
        }
    }

    async fn say_goodbye(&self) {
        let goodbyes = self.advertiser.goodbyes();
        if goodbyes.is_empty() {
            return;
        }
        self.send(goodbyes).await;
        tokio::time::sleep(GOODBYE_PAUSE).await;
        self.send(self.advertiser.goodbyes()).await;
    }
}

/// Resolves when there is something else to say.
async fn changed(said: &mut Option<watch::Receiver<Option<Advertisement>>>) {
    let closed = match said {
        Some(said) => said.changed().await.is_err(),
        None => true,
    };
    if closed {
        // Nobody will say anything else.
        std::future::pending::<()>().await;
    }
}

/// Reads packets from a socket; when nobody has time for them, they are dropped.
async fn read(
    link: LinkId,
    socket: Arc<UdpSocket>,
    packets: mpsc::Sender<Incoming>,
    metrics: DiscoveryMetrics,
    stop: CancellationToken,
) {
    // One byte more than is legal, so that what is longer shows.
    let mut buffer = vec![0; message::MAX_PACKET + 1];
    loop {
        let received = tokio::select! {
            () = stop.cancelled() => return,
            received = socket.recv_from(&mut buffer) => received,
        };
        match received {
            Ok((length, from)) => {
                metrics.received();
                let bytes = buffer.get(..length).unwrap_or_default().to_vec();
                if packets.try_send(Incoming { link, from, bytes }).is_err() {
                    metrics.ignored();
                }
            }
            Err(error) => {
                tracing::debug!(%error, "cannot receive a packet");
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    }
}

/// Several machines that do the same do not do it in the same instant: 60 to 120 ms.
fn random_delay() -> Duration {
    const LONGEST: Duration = Duration::from_millis(120);
    Backoff::new(BackoffPolicy { min: LONGEST, max: LONGEST, factor: 1.0 }).next_delay()
}
