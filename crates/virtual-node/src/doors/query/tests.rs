use super::*;

#[test]
fn terminals_are_asked_for_in_the_words_of_an_api_server() {
    let asked = "command=sh&command=-c&command=echo+a%26b&error=1&input=1&output=1&tty=0";
    let query = of_streams(asked, Some("main")).unwrap();
    assert_eq!(
        query,
        "container=main&command=sh&command=-c&command=echo+a%26b&stderr=true&stdin=true&stdout=true&tty=false"
    );
    assert_eq!(of_streams("port=80&port=81", None).unwrap(), "port=80&port=81");
    assert_eq!(of_streams("", None).unwrap(), "");
}

#[test]
fn logs_are_asked_for_with_all_that_kubectl_can_say_and_nothing_else() {
    let asked = "follow=true&limitBytes=9&pretty=1&previous=true&sinceSeconds=5&sinceTime=2026-01-01T00%3A00%3A00Z\
                 &tailLines=3&timestamps=true&insecureSkipTLSVerifyBackend=true&container=other";
    let query = of_logs(asked, "main").unwrap();
    assert_eq!(
        query,
        "container=main&follow=true&limitBytes=9&previous=true&sinceSeconds=5&sinceTime=2026-01-01T00%3A00%3A00Z\
         &tailLines=3&timestamps=true"
    );
}

#[test]
fn names_lead_nowhere_else() {
    for name in ["", "..", "../secrets", "a/b", "a?b", "a%2fb", "A", "a b", "-a", ".a", &"a".repeat(254)] {
        assert!(check_name(name).is_err(), "{name}");
        assert!(of_logs("", name).is_err() && of_streams("", Some(name)).is_err(), "{name}");
    }
    for name in ["a", "web-0", "a.b-c", &"a".repeat(253)] {
        assert!(check_name(name).is_ok(), "{name}");
    }
    assert_eq!(
        path("there", "web-0", "log", "container=c"),
        "/api/v1/namespaces/there/pods/web-0/log?container=c"
    );
}
