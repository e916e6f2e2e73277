use kube::core::Status;

use super::{advice, is_passing, text};

fn answer(code: u16, message: &str) -> kube::Error {
    kube::Error::Api(Status::failure(message, "Reason").with_code(code).boxed())
}

#[test]
fn the_servers_own_words_are_kept() {
    assert_eq!(text(&answer(409, "already exists.")), "already exists");
    assert_eq!(text(&answer(500, "")), "the API server answered 500 Reason");
    assert!(text(&answer(401, "Unauthorized")).contains("credentials"));
}

#[test]
fn a_server_that_is_away_is_asked_again_and_a_refusal_is_not() {
    for code in [429, 500, 502, 503, 504] {
        assert!(is_passing(&answer(code, "busy")), "{code}");
    }
    for code in [400, 401, 403, 404, 409, 422] {
        assert!(!is_passing(&answer(code, "no")), "{code}");
    }
    assert!(!is_passing(&answer(500, "Internal error occurred: failed calling webhook \"a.b\": no service")));
}

#[test]
fn advice_names_what_stands_in_the_way() {
    let webhook = answer(500, "failed calling webhook \"pods.example.com\": service not found");
    assert!(advice(&webhook).unwrap().contains("pods.example.com"));
    assert!(advice(&answer(403, "exceeded quota: x")).unwrap().contains("quota"));
    assert!(
        advice(&answer(403, "user \"a\" is attempting to grant RBAC permissions not currently held"))
            .unwrap()
            .contains("escalate")
    );
    assert!(advice(&answer(403, "forbidden")).unwrap().contains("check --pre"));
    assert_eq!(advice(&answer(422, "invalid")), None);
}
