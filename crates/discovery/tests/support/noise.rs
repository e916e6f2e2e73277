//! A machine that says anything, very often.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use hickory_proto::op::{Message, MessageType, OpCode};
use hickory_proto::rr::rdata::{A, PTR, SRV, TXT};
use hickory_proto::rr::{Name, RData, Record};
use socket2::{Domain, Protocol, Socket, Type};
use tokio::net::UdpSocket;

/// Everybody's address.
const GROUP: ([u8; 4], u16) = ([224, 0, 0, 251], 5353);

/// Noise on the network of `near`.
pub(crate) struct Noise {
    near: Ipv4Addr,
}

impl Noise {
    pub(crate) fn new(near: Ipv4Addr) -> Self {
        Self { near }
    }

    /// Sends so many packets, spread over this time; returns how many were sent.
    pub(crate) async fn send(&self, count: u32, over: Duration) -> u32 {
        let socket = self.socket();
        let started = tokio::time::Instant::now();
        let mut sent = 0;
        for number in 0..count {
            let bytes = packet(number, self.near);
            sent += u32::from(socket.send_to(&bytes, SocketAddr::from(GROUP)).await.is_ok());
            tokio::time::sleep_until(started + over * number / count).await;
        }
        sent
    }

    fn socket(&self) -> UdpSocket {
        let own = getifaddrs::getifaddrs().unwrap().find_map(|interface| match interface.address.ip_addr() {
            Some(IpAddr::V4(address)) if address.octets()[..2] == self.near.octets()[..2] => Some(address),
            _ => None,
        });
        let own = own.expect("this machine is on the sandbox's network");
        let socket = Socket::new(Domain::IPV4, Type::DGRAM, Some(Protocol::UDP)).unwrap();
        socket.set_reuse_address(true).unwrap();
        socket.set_reuse_port(true).unwrap();
        socket.set_nonblocking(true).unwrap();
        socket.bind(&SocketAddr::from((Ipv4Addr::UNSPECIFIED, 5353)).into()).unwrap();
        socket.set_multicast_if_v4(&own).unwrap();
        socket.set_multicast_ttl_v4(255).unwrap();
        UdpSocket::from_std(socket.into()).unwrap()
    }
}

/// A packet that is hostile in one of many ways, or only useless.
fn packet(number: u32, near: Ipv4Addr) -> Vec<u8> {
    let service = Name::from_ascii("_liqo_auth._tcp.local.").unwrap();
    let label = match number % 10 {
        0 => "größe-\u{1f608}".as_bytes().to_vec(),
        1 => b"nul\0nul".to_vec(),
        2 => b"../../etc/passwd".to_vec(),
        3 => vec![b'x'; 63],
        4 => b"\xff\xfe\xfd".to_vec(),
        _ => format!("bogus-{number}").into_bytes(),
    };
    let instance = service.prepend_label(label.as_slice()).unwrap();
    let host = Name::from_ascii(format!("host-{number}.local.")).unwrap();
    let ttl = if number.is_multiple_of(7) { u32::MAX } else { 4500 };
    let texts: Vec<Vec<u8>> = match number % 5 {
        0 => vec![vec![b'a'; 255]; 8],
        1 => vec![b"id=somebody-else".to_vec()],
        2 => vec![b"fp=-1".to_vec(), b"name=1e300".to_vec()],
        _ => vec![],
    };
    let text = TXT::from_bytes(texts.iter().map(Vec::as_slice).collect());
    // An address of the network where nobody is, so that asking takes as long as it may.
    let [one, two, ..] = near.octets();
    let address = Ipv4Addr::new(one, two, 200, (number % 200) as u8 + 1);
    let port = if number.is_multiple_of(11) { 0 } else { 443 };
    let mut message = Message::new(0, MessageType::Response, OpCode::Query);
    message.metadata.authoritative = true;
    message.add_answer(Record::from_rdata(service, ttl, RData::PTR(PTR(instance.clone()))));
    message.add_answer(Record::from_rdata(
        instance.clone(),
        ttl,
        RData::SRV(SRV::new(0, 0, port, host.clone())),
    ));
    message.add_answer(Record::from_rdata(instance, ttl, RData::TXT(text)));
    message.add_answer(Record::from_rdata(host, ttl, RData::A(A(address))));
    let mut bytes = message.to_vec().unwrap();
    if number.is_multiple_of(13) {
        bytes.truncate(bytes.len() / 2);
    }
    bytes
}
