use super::*;

#[test]
fn the_name_tells_when_it_was_made() {
    assert_eq!(default_name(Timestamp::UNIX_EPOCH), "liqo-bundle-19700101T000000Z.tar.gz");
}
