//! Searching a domain: PTR records name the clusters, and of each an SRV record tells host and port, A and AAAA records
//! the addresses, and a TXT record, if there is one, who it is.
//!
//! Every record stands for itself: one that is broken is told with its name and the reason, and spoils no other.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use hickory_resolver::TokioResolver;
use hickory_resolver::config::{NameServerConfig, ResolveHosts, ResolverConfig};
use hickory_resolver::net::runtime::TokioRuntimeProvider;
use hickory_resolver::net::{DnsError, NetError};
use hickory_resolver::proto::rr::rdata::SRV;
use hickory_resolver::proto::rr::{Name, RData, Record, RecordType};
use tokio::time::timeout;

use crate::advert::{self, Advert, Host, Refusal, Refused, Text};
use crate::book::MAX_OF_DOMAIN;

#[cfg(test)]
mod tests;

/// How long one question to a name server may take, and how often it is asked.
const QUESTION: Duration = Duration::from_secs(2);
const ATTEMPTS: usize = 2;

/// How long all questions about one cluster may take.
const CLUSTER: Duration = Duration::from_secs(10);

/// Clusters asked about at once, in one domain.
const AT_ONCE: usize = 8;

/// SRV records of one cluster that are looked at.
const MAX_SERVICES: usize = 8;

/// Where RFC 6763 has the PTR records; Liqo has them at the domain itself.
const SERVICE: &str = "_liqo_auth._tcp";

/// What a domain says.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Findings {
    /// What each PTR record points to, and what came of it.
    pub(crate) records: Vec<(Arc<str>, Result<Advert, Refused>)>,
    /// The shortest lifetime of all records, in seconds.
    pub(crate) ttl: u32,
}

/// Why a domain cannot be searched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Trouble {
    /// It names no cluster, and the server says for how many seconds that will be so.
    NoRecords(String, Option<u32>),
    /// It cannot be asked.
    Failed(String),
}

/// Makes a resolver: of these name servers, or of those that the system uses.
pub(crate) fn resolver(name_servers: &[SocketAddr]) -> Result<TokioResolver, Trouble> {
    let unusable = |error: NetError| Trouble::Failed(format!("no name server is known: {error}"));
    let mut builder = if name_servers.is_empty() {
        TokioResolver::builder_tokio().map_err(unusable)?
    } else {
        let servers = name_servers.iter().map(|address| {
            let mut server = NameServerConfig::udp_and_tcp(address.ip());
            server.connections.iter_mut().for_each(|connection| connection.port = address.port());
            server
        });
        let config = ResolverConfig::from_parts(None, Vec::new(), servers.collect());
        TokioResolver::builder_with_config(config, TokioRuntimeProvider::default())
    };
    let options = builder.options_mut();
    (options.timeout, options.attempts) = (QUESTION, ATTEMPTS);
    // When to ask again is decided here, by the lifetimes that the server tells.
    options.cache_size = 0;
    options.use_hosts_file = ResolveHosts::Never;
    options.edns0 = true;
    options.try_tcp_on_error = true;
    builder.build().map_err(unusable)
}

/// Searches a domain.
pub(crate) async fn search(resolver: &TokioResolver, domain: &str) -> Result<Findings, Trouble> {
    let mut pointers = lookup(resolver, domain, RecordType::PTR).await;
    if matches!(pointers, Err(Miss::Nothing(_))) {
        pointers = lookup(resolver, &format!("{SERVICE}.{domain}"), RecordType::PTR).await;
    }
    let pointers = pointers.map_err(|miss| match miss {
        Miss::Nothing(ttl) => {
            Trouble::NoRecords(format!("{domain} has no PTR records, which would name clusters"), ttl)
        }
        Miss::Failed(reason) => Trouble::Failed(format!("{domain} cannot be asked for: {reason}")),
    })?;
    let mut ttl = shortest(&pointers);
    let mut targets: Vec<Name> = Vec::new();
    for record in pointers {
        if let RData::PTR(target) = record.data
            && !targets.contains(&target.0)
        {
            targets.push(target.0);
        }
    }
    let surplus: Vec<_> = targets.drain(targets.len().min(MAX_OF_DOMAIN)..).collect();
    let asked = futures::stream::iter(targets).map(|target| async move {
        let found = timeout(CLUSTER, resolve(resolver, &target)).await;
        let late = || Refused::new(Refusal::NotResolved, "the name server does not answer in time");
        (target, found.unwrap_or_else(|_| Err(late())))
    });
    let mut records: Vec<_> = asked
        .buffer_unordered(AT_ONCE)
        .map(|(target, found)| {
            ttl = found.as_ref().map_or(ttl, |(_, shortest)| ttl.min(*shortest));
            (display(&target), found.map(|(advert, _)| advert))
        })
        .collect()
        .await;
    records.extend(surplus.first().map(|target| {
        let detail =
            format!("the domain names more than {MAX_OF_DOMAIN} clusters; this and later ones are left out");
        (display(target), Err(Refused::new(Refusal::TooMany, detail)))
    }));
    // Servers change the order from answer to answer.
    records.sort_by(|(one, _), (other, _)| one.cmp(other));
    Ok(Findings { records, ttl })
}

/// What is behind one PTR record, and the shortest lifetime of it.
async fn resolve(resolver: &TokioResolver, target: &Name) -> Result<(Advert, u32), Refused> {
    let name = target.to_ascii();
    let (services, texts) =
        tokio::join!(lookup(resolver, &name, RecordType::SRV), lookup(resolver, &name, RecordType::TXT),);
    let services = services.map_err(|miss| miss.refuse("SRV record"))?;
    let texts = match texts {
        Ok(texts) => texts,
        Err(Miss::Nothing(_)) => Vec::new(),
        Err(miss @ Miss::Failed(_)) => return Err(miss.refuse("TXT record")),
    };
    let service = choose(&services)?;
    let host = advert::host_name(service.target.to_ascii().as_bytes())?;
    let text =
        texts.iter().find_map(|record| if let RData::TXT(text) = &record.data { Some(text) } else { None });
    let text = text.map_or(Ok(Text::default()), |text| Text::parse(&text.txt_data))?;
    let (v4, v6) =
        tokio::join!(lookup(resolver, &host, RecordType::A), lookup(resolver, &host, RecordType::AAAA),);
    let found = match (v4, v6) {
        (Err(miss), Err(_)) => return Err(miss.refuse(&format!("address record for {host}"))),
        (v4, v6) => [v4.unwrap_or_default(), v6.unwrap_or_default()].concat(),
    };
    let addresses = found.iter().filter_map(|record| match &record.data {
        RData::A(address) => Some(IpAddr::V4(address.0)),
        RData::AAAA(address) => Some(IpAddr::V6(address.0)),
        _ => None,
    });
    let mut addresses = advert::addresses(addresses)?;
    addresses.sort();
    let ttl = shortest(&services).min(shortest(&found));
    let port = advert::port(service.port)?;
    let Text { id, name, fingerprint } = text;
    Ok((Advert { id, name, fingerprint, host: Host::Name(host), port, addresses, ttl }, ttl))
}

/// The service to use, as RFC 2782 has it: of the lowest priority, of those the heaviest.
fn choose(records: &[Record]) -> Result<&SRV, Refused> {
    let services = records.iter().filter_map(|record| match &record.data {
        RData::SRV(service) => Some(service),
        _ => None,
    });
    let key = |service: &&SRV| {
        (service.priority, u16::MAX - service.weight, service.target.to_lowercase().to_ascii(), service.port)
    };
    let service = services.take(MAX_SERVICES).min_by_key(key);
    let service = service.ok_or_else(|| Refused::new(Refusal::NotResolved, "it has no SRV record"))?;
    if service.target.is_root() {
        return Err(Refused::new(
            Refusal::InvalidHost,
            "its SRV record says that the service is not offered",
        ));
    }
    Ok(service)
}

/// Why there is no answer.
enum Miss {
    /// There is no such record, and will be none for so many seconds.
    Nothing(Option<u32>),
    Failed(String),
}

impl Miss {
    fn refuse(self, what: &str) -> Refused {
        let detail = match self {
            Self::Nothing(_) => format!("it has no {what}"),
            Self::Failed(reason) => format!("its {what} cannot be asked for: {reason}"),
        };
        Refused::new(Refusal::NotResolved, detail)
    }
}

async fn lookup(resolver: &TokioResolver, name: &str, kind: RecordType) -> Result<Vec<Record>, Miss> {
    let mut name = Name::from_ascii(name).map_err(|error| Miss::Failed(error.to_string()))?;
    // Whole as it is: the domains that resolv.conf adds to names are not meant.
    name.set_fqdn(true);
    match resolver.lookup(name, kind).await {
        Ok(lookup) => {
            let answers = lookup.answers().iter().filter(|record| record.record_type() == kind);
            let answers: Vec<_> = answers.cloned().collect();
            if answers.is_empty() { Err(Miss::Nothing(None)) } else { Ok(answers) }
        }
        Err(NetError::Dns(DnsError::NoRecordsFound(none))) => Err(Miss::Nothing(none.negative_ttl)),
        Err(error) => Err(Miss::Failed(error.to_string())),
    }
}

fn shortest(records: &[Record]) -> u32 {
    records.iter().map(|record| record.ttl).min().unwrap_or(0)
}

/// A name as people write it: without the final dot, and harmless.
fn display(name: &Name) -> Arc<str> {
    let text = name.to_ascii();
    let text = text.strip_suffix('.').unwrap_or(&text);
    text.chars().filter(|character| !character.is_control()).collect::<String>().into()
}
