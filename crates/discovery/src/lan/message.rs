//! Multicast DNS messages: what of them concerns us, and how ours are written.
//!
//! Read record by record: one that is broken inside is skipped and counted, and the rest of the packet still counts.
//! Some implementations write TXT records of length zero, which strict parsers refuse together with all the others.

use std::net::IpAddr;

use hickory_proto::op::{Message, MessageType, OpCode, Query};
use hickory_proto::rr::rdata::{A, AAAA, PTR, SRV, TXT};
use hickory_proto::rr::{Name, RData, Record as Resource, RecordType};
use hickory_proto::serialize::binary::{BinDecodable, BinDecoder, Restrict};

#[cfg(test)]
mod tests;

/// The largest packet of multicast DNS (RFC 6762, 17), headers of lower layers taken off.
pub(crate) const MAX_PACKET: usize = 9000;

/// Records of one packet that are looked at; a cluster's own are six.
const MAX_RECORDS: usize = 256;

/// Questions of one packet that are looked at.
const MAX_QUESTIONS: usize = 64;

/// The bit of the class that asks for a unicast answer, or tells to forget older records.
const TOP_BIT: u16 = 0x8000;

const CLASS_IN: u16 = 1;
const CLASS_ANY: u16 = 255;

/// A packet that concerns us.
#[derive(Debug, Default)]
pub(crate) struct Packet {
    pub(crate) id: u16,
    pub(crate) is_response: bool,
    pub(crate) questions: Vec<Question>,
    /// Of a response all records, of a query those that the asker knows already.
    pub(crate) records: Vec<Record>,
    /// Records that could not be read.
    pub(crate) broken: usize,
}

/// What is asked.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Question {
    pub(crate) name: Name,
    pub(crate) kind: RecordType,
    pub(crate) unicast: bool,
}

/// One record of the kinds that DNS-SD needs.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Record {
    pub(crate) name: Name,
    pub(crate) ttl: u32,
    pub(crate) data: Data,
}

/// What a record says.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Data {
    Pointer(Name),
    Service { port: u16, target: Name },
    Text(Vec<Vec<u8>>),
    Address(IpAddr),
}

/// The packet is no message of DNS.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Malformed;

/// Reads a packet.
pub(crate) fn decode(bytes: &[u8]) -> Result<Packet, Malformed> {
    const RESPONSE: u16 = 1 << 15;
    const OPCODE: u16 = 0b1111 << 11;
    if bytes.len() > MAX_PACKET {
        return Err(Malformed);
    }
    let mut reader = BinDecoder::new(bytes);
    let mut header = [0u16; 6];
    for field in &mut header {
        *field = number(&mut reader)?;
    }
    let [id, flags, questions, answers, authorities, additionals] = header;
    // Other operations (updates, status) are not for us, nor are they errors.
    if flags & OPCODE != 0 {
        return Ok(Packet::default());
    }
    let mut packet = Packet { id, is_response: flags & RESPONSE != 0, ..Packet::default() };
    for _ in 0..questions {
        let question = read_question(&mut reader)?;
        if packet.questions.len() < MAX_QUESTIONS {
            packet.questions.extend(question);
        }
    }
    // What a query has besides answers is for those who want the same name.
    let count = match packet.is_response {
        true => usize::from(answers) + usize::from(authorities) + usize::from(additionals),
        false => usize::from(answers),
    };
    for _ in 0..count.min(MAX_RECORDS) {
        match read_record(&mut reader, bytes) {
            Ok(Some(record)) => packet.records.push(record),
            Ok(None) => {}
            Err(Problem::Inside) => packet.broken += 1,
            // Where the next record begins cannot be told; what was read before stands.
            Err(Problem::Outside) => {
                packet.broken += 1;
                break;
            }
        }
    }
    Ok(packet)
}

fn number(reader: &mut BinDecoder<'_>) -> Result<u16, Malformed> {
    // Any number is legal where this is used.
    reader.read_u16().map(Restrict::unverified).map_err(|_| Malformed)
}

fn read_question(reader: &mut BinDecoder<'_>) -> Result<Option<Question>, Malformed> {
    let name = Name::read(reader).map_err(|_| Malformed)?;
    let (kind, class) = (number(reader)?, number(reader)?);
    let ours = matches!(class & !TOP_BIT, CLASS_IN | CLASS_ANY);
    Ok(ours.then(|| Question { name, kind: RecordType::from(kind), unicast: class & TOP_BIT != 0 }))
}

/// Why a record cannot be read.
enum Problem {
    /// Its content is broken; the next one can be found.
    Inside,
    /// Its frame is broken.
    Outside,
}

impl From<Malformed> for Problem {
    fn from(_: Malformed) -> Self {
        Self::Outside
    }
}

fn read_record(reader: &mut BinDecoder<'_>, bytes: &[u8]) -> Result<Option<Record>, Problem> {
    let name = Name::read(reader).map_err(|_| Problem::Outside)?;
    let (kind, class) = (number(reader)?, number(reader)?);
    let ttl = reader.read_u32().map_err(|_| Problem::Outside)?.unverified();
    let length = usize::from(number(reader)?);
    let start = reader.index();
    let content = reader.read_slice(length).map_err(|_| Problem::Outside)?.unverified();
    if class & !TOP_BIT != CLASS_IN {
        return Ok(None);
    }
    // Names inside may point back into the packet, so they are read from the whole, which must end where the record does.
    let end = start + length;
    let inside = Inside { bytes: bytes.get(..end).unwrap_or_default() };
    let data = match RecordType::from(kind) {
        RecordType::PTR => inside.name_at(start).map(Data::Pointer),
        RecordType::SRV => inside.service_at(start, content),
        RecordType::TXT => texts(content).map(Data::Text),
        RecordType::A => <[u8; 4]>::try_from(content).ok().map(|octets| Data::Address(octets.into())),
        RecordType::AAAA => <[u8; 16]>::try_from(content).ok().map(|octets| Data::Address(octets.into())),
        _ => return Ok(None),
    };
    data.map(|data| Some(Record { name, ttl, data })).ok_or(Problem::Inside)
}

struct Inside<'a> {
    bytes: &'a [u8],
}

impl Inside<'_> {
    fn name_at(&self, index: usize) -> Option<Name> {
        let index = u16::try_from(index).ok()?;
        let mut reader = BinDecoder::new(self.bytes).clone(index);
        let name = Name::read(&mut reader).ok()?;
        reader.is_empty().then_some(name)
    }

    fn service_at(&self, index: usize, content: &[u8]) -> Option<Data> {
        // Priority, weight and port come before the target.
        const PORT: usize = 4;
        const TARGET: usize = 6;
        let port = content.get(PORT..TARGET)?;
        let port = u16::from_be_bytes(port.try_into().ok()?);
        Some(Data::Service { port, target: self.name_at(index + TARGET)? })
    }
}

/// The strings of a TXT record: each has its length before it.
fn texts(mut content: &[u8]) -> Option<Vec<Vec<u8>>> {
    let mut texts = Vec::new();
    while let Some((length, rest)) = content.split_first() {
        let (text, rest) = rest.split_at_checked(usize::from(*length))?;
        if !text.is_empty() {
            texts.push(text.to_vec());
        }
        content = rest;
    }
    Some(texts)
}

/// A query for `questions` from somebody who knows `known` already.
pub(crate) fn query(questions: Vec<Question>, known: &[Record]) -> Option<Vec<u8>> {
    let mut message = Message::new(0, MessageType::Query, OpCode::Query);
    for question in questions {
        let mut query = Query::query(question.name, question.kind);
        query.set_mdns_unicast_response(question.unicast);
        message.add_query(query);
    }
    message.add_answers(known.iter().map(|record| resource(record, false)));
    encode(&message)
}

/// A response with `records`; those for which `is_unique` holds replace what others have under the name.
pub(crate) fn response(
    id: u16,
    questions: Vec<Question>,
    records: &[Record],
    is_unique: impl Fn(&Record) -> bool,
) -> Option<Vec<u8>> {
    let mut message = Message::new(id, MessageType::Response, OpCode::Query);
    message.metadata.authoritative = true;
    message.add_queries(questions.into_iter().map(|question| Query::query(question.name, question.kind)));
    message.add_answers(records.iter().map(|record| resource(record, is_unique(record))));
    encode(&message)
}

fn encode(message: &Message) -> Option<Vec<u8>> {
    // Only names that are too long could fail, and ours are checked.
    message
        .to_vec()
        .inspect_err(|error| tracing::error!(%error, "a message of multicast DNS cannot be written"))
        .ok()
}

fn resource(record: &Record, unique: bool) -> Resource {
    let data = match &record.data {
        Data::Pointer(name) => RData::PTR(PTR(name.clone())),
        Data::Service { port, target } => RData::SRV(SRV::new(0, 0, *port, target.clone())),
        Data::Text(texts) => RData::TXT(TXT::from_bytes(texts.iter().map(Vec::as_slice).collect())),
        Data::Address(IpAddr::V4(address)) => RData::A(A(*address)),
        Data::Address(IpAddr::V6(address)) => RData::AAAA(AAAA(*address)),
    };
    let mut resource = Resource::from_rdata(record.name.clone(), record.ttl, data);
    resource.mdns_cache_flush = unique;
    resource
}
