use liqo_kit::serve::Certificates;

use super::*;
use crate::testing::now;

fn after_years(years: i64) -> Timestamp {
    now() + SignedDuration::from_hours(years * 365 * 24)
}

#[test]
fn a_certificate_can_be_shown_and_is_replaced_a_year_before_it_ends() {
    let secret = make("liqo", now()).unwrap();
    let serving = Serving::read(&secret).unwrap();
    assert!(Certificates::from_pem(&serving.chain, &serving.key).is_ok());
    let der = CertificateDer::from_pem_slice(&serving.chain).unwrap();
    assert_eq!(serving.fingerprint, Fingerprint::of_certificate(&der));
    assert!(!serving.is_due(now()));
    assert!(!serving.is_due(after_years(8)));
    assert!(serving.is_due(after_years(9) + SignedDuration::from_hours(1)));
    assert!(serving.is_due(after_years(20)));
}

#[test]
fn a_certificate_of_somebody_else_is_never_replaced() {
    let mut secret = make("liqo", now()).unwrap();
    secret.metadata.annotations = None;
    assert!(!Serving::read(&secret).unwrap().is_due(after_years(20)));
}

/// `kubectl apply` and cert-manager leave annotations alone that they do not know.
#[test]
fn a_certificate_that_was_put_where_ours_was_is_not_taken_for_ours() {
    let (ours, theirs) = (make("liqo", now()).unwrap(), make("liqo", now()).unwrap());
    let put = Secret { data: theirs.data, ..ours };
    assert!(!Serving::read(&put).unwrap().is_due(after_years(20)));
}

#[test]
fn another_chain_or_key_of_the_same_certificate_is_something_else_to_show() {
    let secret = make("liqo", now()).unwrap();
    let shown = Serving::read(&secret).unwrap();
    let with = |key: &str, more: &[u8]| {
        let mut secret = secret.clone();
        secret.metadata.resource_version = Some("2".to_owned());
        secret.data.as_mut().unwrap().get_mut(key).unwrap().0.extend_from_slice(more);
        Serving::read(&secret).unwrap()
    };
    assert!(with("tls.crt", b"").shows_the_same(&shown));
    assert!(!with("tls.crt", &shown.chain).shows_the_same(&shown));
    assert!(!with("tls.key", b"\n").shows_the_same(&shown));
}

#[test]
fn what_is_no_certificate_is_none_and_keys_are_not_printed() {
    let secret = make("liqo", now()).unwrap();
    let serving = Serving::read(&secret).unwrap();
    assert!(!format!("{serving:?}").contains("PRIVATE"));
    let mut broken = secret.clone();
    broken.data.as_mut().unwrap().insert("tls.crt".to_owned(), ByteString(b"hello".to_vec()));
    assert!(Serving::read(&broken).is_none());
    let mut keyless = secret;
    keyless.data.as_mut().unwrap().remove("tls.key");
    assert!(Serving::read(&keyless).is_none());
}
