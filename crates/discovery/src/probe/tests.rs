use tokio::net::TcpListener;

use super::*;

/// Says the same to everybody.
struct Says(Result<(&'static str, &'static str), IdentifyError>);

impl Identify for Says {
    fn identify(&self, _: Endpoint) -> BoxFuture<'static, Result<Ids, IdentifyError>> {
        let fingerprint = Fingerprint::of_certificate(b"certificate");
        let ids = self.0.clone().map(|(id, name)| Ids {
            cluster_id: id.to_owned(),
            cluster_name: name.to_owned(),
            fingerprint,
        });
        Box::pin(async { ids })
    }
}

async fn listen() -> (TcpListener, u16) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    (listener, port)
}

fn advert(port: u16) -> Advert {
    Advert {
        id: None,
        name: None,
        fingerprint: None,
        host: Host::Address,
        port,
        addresses: vec![[127, 0, 0, 1].into()],
        ttl: 90,
    }
}

async fn asked(
    advert: &Advert,
    says: Result<(&'static str, &'static str), IdentifyError>,
) -> Result<String, Refusal> {
    let identify: Arc<dyn Identify> = Arc::new(Says(says));
    let answer = ask(advert, &identify).await;
    answer.map(|answer| format!("{} {}", answer.identity.id, answer.url)).map_err(|refused| refused.why)
}

#[tokio::test]
async fn who_answers_is_asked_who_it_is() {
    let (_listener, port) = listen().await;
    let answer = asked(&advert(port), Ok(("edge-7", "edge"))).await;
    assert_eq!(answer, Ok(format!("edge-7 https://127.0.0.1:{port}")));
    let named = Advert { host: Host::Name("auth.example.com".into()), ..advert(port) };
    let answer = asked(&named, Ok(("edge-7", "edge"))).await;
    assert_eq!(answer, Ok(format!("edge-7 https://auth.example.com:{port}")));
}

#[tokio::test]
async fn who_says_something_else_than_advertised_is_refused() {
    let (_listener, port) = listen().await;
    let says = || Ok(("edge-7", "edge"));
    let id = Advert { id: Some("edge-8".parse().unwrap()), ..advert(port) };
    assert_eq!(asked(&id, says()).await, Err(Refusal::Impostor));
    let name = Advert { name: Some("other".parse().unwrap()), ..advert(port) };
    assert_eq!(asked(&name, says()).await, Err(Refusal::Impostor));
    let fingerprint = Advert { fingerprint: Some(Fingerprint::of_certificate(b"other")), ..advert(port) };
    assert_eq!(asked(&fingerprint, says()).await, Err(Refusal::WrongCertificate));
}

#[tokio::test]
async fn what_answers_is_hostile_too() {
    let (_listener, port) = listen().await;
    for ids in [("", "edge"), ("edge-7", "Edge\u{1b}"), ("../etc", "edge")] {
        assert_eq!(asked(&advert(port), Ok(ids)).await, Err(Refusal::InvalidName), "{ids:?}");
    }
    let failed = IdentifyError::Failed(format!("\u{1b}{}", "x".repeat(10_000)));
    assert_eq!(asked(&advert(port), Err(failed)).await, Err(Refusal::NotIdentified));
    let certificate = IdentifyError::Certificate("sha256:00".to_owned());
    assert_eq!(asked(&advert(port), Err(certificate)).await, Err(Refusal::WrongCertificate));
}

#[tokio::test]
async fn the_first_address_that_answers_is_taken_and_dead_ones_do_not_delay_it() {
    let (_listener, port) = listen().await;
    // Nothing is at the first; nobody answers for the second, which is for documents only.
    let addresses = ["127.0.0.2", "203.0.113.7", "127.0.0.1"].map(|text| text.parse::<IpAddr>().unwrap());
    let started = tokio::time::Instant::now();
    assert_eq!(connect(&addresses, port).await, Some(([127, 0, 0, 1], port).into()));
    assert!(started.elapsed() < CONNECT, "{:?}", started.elapsed());
}

#[tokio::test]
async fn nobody_there_is_noticed_in_time() {
    let (listener, port) = listen().await;
    drop(listener);
    let started = tokio::time::Instant::now();
    let nobody = Advert { addresses: vec![[203, 0, 113, 7].into(), [127, 0, 0, 1].into()], ..advert(port) };
    assert_eq!(asked(&nobody, Ok(("edge-7", "edge"))).await, Err(Refusal::Unreachable));
    assert!(started.elapsed() < Duration::from_secs(5), "{:?}", started.elapsed());
}

#[tokio::test(start_paused = true)]
async fn who_takes_a_connection_and_says_nothing_is_given_up() {
    struct Never;
    impl Identify for Never {
        fn identify(&self, _: Endpoint) -> BoxFuture<'static, Result<Ids, IdentifyError>> {
            Box::pin(std::future::pending())
        }
    }
    let identify: Arc<dyn Identify> = Arc::new(Never);
    let endpoint = Endpoint {
        url: "https://127.0.0.1:1".to_owned(),
        host: "127.0.0.1".to_owned(),
        address: ([127, 0, 0, 1], 1).into(),
        fingerprint: None,
    };
    let started = tokio::time::Instant::now();
    assert_eq!(ask_endpoint(endpoint, &identify).await.unwrap_err().why, Refusal::NotIdentified);
    assert_eq!(started.elapsed(), IDENTIFY);
}
