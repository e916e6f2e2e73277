use super::*;

#[test]
fn the_name_tells_when_it_was_made() {
    assert_eq!(default_name(Timestamp::UNIX_EPOCH), "liqo-bundle-19700101T000000Z.tar.gz");
}

#[test]
fn a_format_is_no_file_unless_it_is_written_as_one() {
    assert_eq!(format(Path::new("json")), Some(Format::Json));
    assert_eq!(format(Path::new("yaml")), Some(Format::Yaml));
    for file in ["./json", "bug.tar.gz", "-"] {
        assert_eq!(format(Path::new(file)), None, "{file}");
    }
}
