use clap::Parser;
use liqo_api::Fingerprint;
use liqo_api::names::Identity;

use super::*;

#[derive(Debug, Parser)]
struct Add {
    #[command(flatten)]
    arguments: crate::add::Arguments,
}

#[test]
fn what_is_printed_is_what_add_takes() {
    let own = Own {
        identity: Identity { id: "5d0f".parse().unwrap(), name: "milan".parse().unwrap() },
        auth_url: "https://[2001:db8::7]:31520".to_owned(),
        fingerprint: Fingerprint::of_certificate(b"x"),
        key: crate::peering::key::Shown::NotAsked,
    };
    let text = command(&own, "0a1b2c3d.ffff");
    assert!(text.starts_with("liqoctl add --auth-url https://"), "{text}");
    let safe = |c: char| c.is_ascii_alphanumeric() || " -.:/[]".contains(c);
    assert!(text.chars().all(safe), "{text}");
    Add::try_parse_from(text.split(' ').skip(1)).unwrap();
}
