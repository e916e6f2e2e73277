use super::*;

fn read(texts: &[&str]) -> Option<Vec<String>> {
    let wanted: Vec<_> = texts.iter().map(|text| parse_kind(text).unwrap()).collect();
    kinds(&wanted).map(|all| all.iter().map(ToString::to_string).collect())
}

#[test]
fn kinds_are_read_once_each_and_an_empty_text_means_none() {
    assert_eq!(read(&[]), None);
    assert_eq!(read(&[""]), Some(vec![]));
    let said = ["example.com/Widget", " b.example.com/Gadget", "example.com/Widget"];
    assert_eq!(read(&said), Some(vec!["b.example.com/Gadget".to_owned(), "example.com/Widget".to_owned()]));
}

#[test]
fn what_is_no_kind_is_told_with_what_would_be_one() {
    for (text, says) in [
        ("widgets.example.com", "as example.com/Widget"),
        ("example.com/widgets", "column KIND"),
        ("example.com/", "column KIND"),
        ("apps/Deployment", "only custom resources"),
    ] {
        let error = parse_kind(text).unwrap_err();
        assert!(error.contains(says), "{text}: {error}");
    }
}
