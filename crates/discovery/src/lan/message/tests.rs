use proptest::prelude::*;

use super::*;

fn name(text: &str) -> Name {
    Name::from_ascii(text).unwrap()
}

fn record(owner: &str, data: Data) -> Record {
    Record { name: name(owner), ttl: 90, data }
}

fn all_kinds() -> Vec<Record> {
    vec![
        record("_liqo_auth._tcp.local.", Data::Pointer(name("id._liqo_auth._tcp.local."))),
        record("id._liqo_auth._tcp.local.", Data::Service { port: 31520, target: name("host.local.") }),
        record("id._liqo_auth._tcp.local.", Data::Text(vec![b"id=id".to_vec(), b"name=\xff".to_vec()])),
        record("host.local.", Data::Address("10.0.0.1".parse().unwrap())),
        record("host.local.", Data::Address("fd00::1".parse().unwrap())),
    ]
}

/// A response of one record, written by hand: its type and its content.
fn raw(kind: u16, content: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0, 0, 0x84, 0, 0, 0, 0, 1, 0, 0, 0, 0];
    bytes.extend(b"\x01a\x05local\x00");
    bytes.extend(kind.to_be_bytes());
    bytes.extend([0x80, 1, 0, 0, 0, 90]);
    bytes.extend(u16::try_from(content.len()).unwrap().to_be_bytes());
    bytes.extend(content);
    bytes
}

#[test]
fn a_response_reads_as_it_was_written() {
    let bytes = response(7, vec![], &all_kinds(), |record| !matches!(record.data, Data::Pointer(_))).unwrap();
    let packet = decode(&bytes).unwrap();
    assert!(packet.is_response);
    assert_eq!((packet.id, packet.broken, packet.records), (7, 0, all_kinds()));
}

#[test]
fn a_query_carries_what_is_known() {
    let question =
        |unicast| Question { name: name("_liqo_auth._tcp.local."), kind: RecordType::PTR, unicast };
    let bytes = query(vec![question(false), question(true)], &all_kinds()[..1]).unwrap();
    let packet = decode(&bytes).unwrap();
    assert!(!packet.is_response);
    assert_eq!(packet.questions, [question(false), question(true)]);
    assert_eq!(packet.records, all_kinds()[..1]);
}

#[test]
fn an_empty_text_record_is_read_in_both_spellings() {
    for content in [b"".as_slice(), b"\0"] {
        let packet = decode(&raw(16, content)).unwrap();
        assert_eq!((packet.broken, &packet.records[0].data), (0, &Data::Text(vec![])), "{content:?}");
    }
}

#[test]
fn a_broken_record_does_not_spoil_the_others() {
    // An A record of three bytes, then a whole one.
    let mut bytes = raw(1, &[10, 0, 0]);
    bytes.extend(&raw(1, &[10, 0, 0, 9])[12..]);
    bytes[7] = 2;
    let packet = decode(&bytes).unwrap();
    assert_eq!(packet.broken, 1);
    assert_eq!(packet.records, [record("a.local.", Data::Address("10.0.0.9".parse().unwrap()))]);
}

#[test]
fn what_is_broken_inside_is_counted() {
    let pointer_to_itself = [0xc0, 12 + 9 + 10];
    for (kind, content) in [
        (1, b"\x0a\x00\x00".as_slice()),
        (1, b"\x0a\x00\x00\x01\x02"),
        (28, b"\x0a\x00\x00\x01"),
        (33, b"\0\0\0\0\0"),
        (33, b"\0\0\0\0\0\x01"),
        (12, b""),
        (12, b"\x3fshort"),
        (12, &pointer_to_itself),
        (12, b"\x01b\x00trailing"),
        (16, b"\x05ab"),
    ] {
        let packet = decode(&raw(kind, content)).unwrap();
        assert_eq!((packet.broken, packet.records.len()), (1, 0), "type {kind}: {content:?}");
    }
}

#[test]
fn what_is_no_message_is_refused() {
    assert_eq!(decode(&[]).unwrap_err(), Malformed);
    assert_eq!(decode(&[0; 11]).unwrap_err(), Malformed);
    assert_eq!(decode(&vec![0; MAX_PACKET + 1]).unwrap_err(), Malformed);
    // A question is announced and missing.
    assert_eq!(decode(&[0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0]).unwrap_err(), Malformed);
}

#[test]
fn a_packet_that_announces_more_than_it_has_is_read_as_far_as_it_goes() {
    let mut bytes = raw(1, &[10, 0, 0, 9]);
    bytes[6..8].copy_from_slice(&u16::MAX.to_be_bytes());
    let packet = decode(&bytes).unwrap();
    assert_eq!((packet.broken, packet.records.len()), (1, 1));
}

proptest! {
    #[test]
    fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..600)) {
        let _ = decode(&bytes);
    }

    #[test]
    fn any_change_to_a_message_leaves_it_readable_or_refused(
        place in 0usize..200, value in any::<u8>(), length in 0usize..250,
    ) {
        let mut bytes = response(0, vec![], &all_kinds(), |_| true).unwrap();
        bytes.truncate(length);
        if let Some(byte) = bytes.get_mut(place) {
            *byte = value;
        }
        if let Ok(packet) = decode(&bytes) {
            prop_assert!(packet.records.len() + packet.broken <= MAX_RECORDS);
        }
    }
}
