use super::*;

/// What somebody does who wants certificates to be renewed without being asked.
fn vouch(model: &mut Model) {
    let authorities = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----";
    model.change(NAME, &json!({ "spec": { "authFingerprint": null, "authCaBundle": authorities } }));
}

#[test]
fn a_cluster_that_an_authority_vouches_for_is_not_pinned_to_a_certificate_again() {
    let mut model = Model::new().seeing([claim("a", URL, "one")]);
    model.run();
    vouch(&mut model);
    assert!(model.run().is_empty());
    // Its certificate is renewed, while a peering is there.
    model.engage(NAME);
    model.see([claim("a", URL, "two")]);
    assert!(model.run().is_empty() && model.reasons().is_empty(), "{:?}", model.reasons());
    model.now += 45;
    model.see([claim("a", URL, "two")]);
    assert_eq!(model.run(), [format!("refresh {NAME}")]);
    assert_eq!(model.field(NAME, "/spec/authFingerprint"), "null");
}
