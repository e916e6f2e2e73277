use clap::Parser;

use super::*;
use crate::peering::testing::authority;

#[derive(Debug, Parser)]
struct Add {
    #[command(flatten)]
    arguments: Arguments,
}

fn parse(words: &str) -> Result<Arguments, String> {
    let all = ["add"].into_iter().chain(words.split_whitespace());
    Add::try_parse_from(all).map(|add| add.arguments).map_err(|error| error.to_string())
}

const FLAGS: &str = "--auth-url https://203.0.113.7:31520 --id 5d0f --token t";

#[test]
fn both_spellings_are_taken() {
    let plain = parse(FLAGS).unwrap();
    assert_eq!((plain.name, plain.id.as_str()), (None, "5d0f"));
    let named = parse(&format!("cluster milan {FLAGS}")).unwrap();
    assert_eq!(named.name.as_deref(), Some("milan"));
    let behind = parse(&format!("{FLAGS} cluster milan")).unwrap();
    assert_eq!(behind.name.as_deref(), Some("milan"));
    assert!(parse(&format!("cluster {FLAGS}")).unwrap().name.is_none());
}

#[test]
fn what_makes_no_sense_is_refused_with_a_reason() {
    for (words, reason) in [
        (format!("milan {FLAGS}"), "invalid value 'milan'"),
        ("--auth-url https://h --token t".to_owned(), "--id <ID>"),
        ("--id x --token t".to_owned(), "--auth-url <URL>"),
        ("--auth-url http://h --id x".to_owned(), "https://"),
        ("--auth-url https://h --id UPPER".to_owned(), "is not a cluster ID"),
        (format!("{FLAGS} --fingerprint 3f0c"), "expected sha256:"),
        (format!("{FLAGS} --token-file x"), "cannot be used with"),
        (format!("{FLAGS} --ca-file x --insecure-skip-tls-verify"), "cannot be used with"),
        (format!("cluster milan {FLAGS} --ca-file x --insecure-skip-tls-verify"), "cannot be used with"),
        (format!("{FLAGS} --ca-file x --fingerprint sha256:{}", "0".repeat(64)), "cannot be used with"),
    ] {
        let error = parse(&words).unwrap_err();
        assert!(error.contains(reason), "{words}: {error}");
    }
}

#[test]
fn a_token_is_neither_empty_nor_shown() {
    assert!(parse_token("  ").unwrap_err().contains("generate-add-command"));
    let arguments = parse(&FLAGS.replace("--token t", "--token very-secret")).unwrap();
    assert!(!format!("{arguments:?}").contains("very-secret"));
    assert_eq!(arguments.token().unwrap().unwrap().reveal(), "very-secret");
    let file = std::env::temp_dir().join(format!("token-{}", std::process::id()));
    std::fs::write(&file, "from-a-file\n").unwrap();
    let words = FLAGS.replace("--token t", &format!("--token-file {}", file.display()));
    assert_eq!(parse(&words).unwrap().token().unwrap().unwrap().reveal(), "from-a-file");
    std::fs::remove_file(&file).unwrap();
    assert!(parse(&words).unwrap().token().unwrap_err().to_string().contains("cannot read the token"));
    assert!(parse("--auth-url https://h --id x").unwrap().token().unwrap().is_none());
}

#[test]
fn a_cluster_is_recognised_by_the_authority_in_a_file() {
    let file = std::env::temp_dir().join(format!("add-authority-{}", std::process::id()));
    let ours = authority("ours");
    std::fs::write(&file, &ours).unwrap();
    for spelling in ["", "cluster milan"] {
        let arguments = parse(&format!("{spelling} {FLAGS} --ca-file {}", file.display())).unwrap();
        let recognition = arguments.recognition().unwrap();
        assert_eq!(recognition.authorities.unwrap().to_pem(), ours);
        assert!(recognition.fingerprint.is_none() && !recognition.insecure);
    }
    std::fs::remove_file(&file).unwrap();
}
