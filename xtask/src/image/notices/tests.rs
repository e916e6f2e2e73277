use super::*;

fn notice(of: &str, texts: &[&str]) -> Notice {
    Notice { of: of.into(), texts: texts.iter().map(|text| (*text).to_owned()).collect() }
}

#[test]
fn equal_texts_stand_once_and_every_crate_is_named() {
    let all = text(&[
        notice("a 1 (MIT OR Apache-2.0)", &["Apache\n", "MIT by a"]),
        notice("b 2 (Apache-2.0)", &["Apache"]),
        notice("c 3 (Zlib)", &[]),
    ]);
    assert_eq!(all.matches("Apache\n").count(), 1, "{all}");
    assert!(all.contains("a 1 (MIT OR Apache-2.0)\nb 2 (Apache-2.0)\n"), "{all}");
    assert!(all.contains("  c 3 (Zlib)\n") && all.contains("MIT by a"), "{all}");
}

#[test]
fn licence_files_are_found_under_their_many_names() {
    let directory = std::env::temp_dir().join(format!("liqo-notices-{}", std::process::id()));
    fs::create_dir_all(directory.join("licenses")).unwrap();
    for name in ["LICENSE-MIT", "License.txt", "COPYING", "NOTICE.md", "README.md", "lib.rs"] {
        fs::write(directory.join(name), format!("{name}\r\n")).unwrap();
    }
    let texts = texts_in(&directory).unwrap();
    fs::remove_dir_all(&directory).unwrap();
    assert_eq!(texts, ["COPYING\n", "LICENSE-MIT\n", "License.txt\n", "NOTICE.md\n"]);
    assert!(texts_in(&directory).is_err());
}
