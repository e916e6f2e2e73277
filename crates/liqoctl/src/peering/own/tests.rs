use super::*;

#[test]
fn what_is_missing_says_what_to_do() {
    let lacks = [
        (Lack::Installation { namespace: "liqo".to_owned() }, "liqoctl install"),
        (Lack::Identity, "liqoctl logs"),
        (Lack::Address("no node has an address".to_owned()), "no node has an address"),
        (Lack::Certificate, "liqoctl status"),
        (Lack::Endpoints, "no pod of it is ready"),
    ];
    for (lack, words) in lacks {
        assert!(lack.to_string().contains(words), "{lack}");
    }
}
