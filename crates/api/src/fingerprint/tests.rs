use super::*;

#[test]
fn a_fingerprint_is_the_sha256_of_the_certificate_and_reads_back() {
    let fingerprint = Fingerprint::of_certificate(b"abc");
    let text = "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    assert_eq!(fingerprint.to_string(), text);
    assert_eq!(text.parse(), Ok(fingerprint));
}

#[test]
fn anything_else_is_refused() {
    let digits = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    let upper = format!("sha256:{}", digits.to_uppercase());
    let long = format!("sha256:{digits}00");
    let odd = format!("sha256:{}", &digits[1..]);
    let unicode = format!("sha256:{}", "é".repeat(32));
    for text in ["", "sha256:", digits, &upper, &long, &odd, &unicode, "sha1:ba7816bf", "sha256:\0"] {
        assert_eq!(text.parse::<Fingerprint>(), Err(InvalidFingerprint), "{text:?}");
    }
}
