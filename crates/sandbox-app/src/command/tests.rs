use std::time::Duration;

use super::{Command, Listen, Url, identity};

fn parse(line: &str) -> Result<Command, String> {
    Command::parse(line.split_whitespace().map(str::to_owned), |_| None)
}

#[test]
fn every_command_of_the_help_is_understood() {
    let get = |timeout, retries| Command::Get {
        url: Url::parse("http://web/").unwrap(),
        timeout: Duration::from_secs(timeout),
        retries,
    };
    let cases = [
        ("", Command::Serve { listen: Listen::Port(8080) }),
        ("serve", Command::Serve { listen: Listen::Port(8080) }),
        ("--listen :80", Command::Serve { listen: Listen::Port(80) }),
        (
            "serve --listen=127.0.0.1:0",
            Command::Serve { listen: Listen::Address(([127, 0, 0, 1], 0).into()) },
        ),
        ("get http://web/", get(5, 0)),
        ("get http://web/ --timeout 2s --retry 10", get(2, 10)),
        ("get --retry=10 --timeout=2s http://web/", get(2, 10)),
        ("sleep 3", Command::Sleep(Duration::from_secs(3))),
        ("sleep 1h", Command::Sleep(Duration::from_secs(3600))),
        ("exit 255", Command::Exit(255)),
        ("note /data/log once", Command::Note { file: "/data/log".into(), text: "once".into() }),
        ("--help", Command::Help),
        ("--version", Command::Version),
    ];
    for (line, expected) in cases {
        assert_eq!(parse(line), Ok(expected), "for {line:?}");
    }
}

#[test]
fn wrong_arguments_are_named_in_the_message() {
    let cases = [
        ("serv", "\"serv\""),
        ("serve --port 80", "--port"),
        ("serve extra", "\"extra\""),
        ("serve --listen", "--listen needs a value"),
        ("--listen 8080", "\"8080\""),
        ("--listen :99999", "\":99999\""),
        ("--listen localhost:80", "\"localhost:80\""),
        ("get", "a URL is missing"),
        ("get https://web/", "http://"),
        ("get http://web/ --timeout soon", "\"soon\""),
        ("get http://web/ --retry -1", "\"-1\""),
        ("get http://web/ --retry 1001", "1000"),
        ("sleep", "a duration is missing"),
        ("exit 256", "\"256\""),
        ("exit 1 2", "\"2\""),
    ];
    for (line, expected) in cases {
        let error = parse(line).expect_err(line);
        assert!(error.contains(expected), "{line:?} says {error:?}, which lacks {expected:?}");
    }
}

#[test]
fn the_port_comes_from_the_environment_unless_an_option_says_otherwise() {
    let port = |name: &str| (name == "PORT").then(|| "9000".to_owned());
    let args = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(Command::parse(args(""), port), Ok(Command::Serve { listen: Listen::Port(9000) }));
    assert_eq!(Command::parse(args("--listen :1"), port), Ok(Command::Serve { listen: Listen::Port(1) }));
    let error = Command::parse(args(""), |_| Some("http".into())).unwrap_err();
    assert!(error.contains("\":http\""), "{error}");
}

#[test]
fn without_a_pod_name_the_host_name_stands_in() {
    assert_eq!(identity(|name| Some(format!("<{name}>"))).pod.as_deref(), Some("<POD_NAME>"));
    let anonymous = identity(|_| None);
    assert!(anonymous.pod.is_some_and(|name| !name.is_empty()));
    assert_eq!(anonymous.node, None);
}
