use std::fmt::Debug;
use std::time::Duration;

use super::*;

fn refused<T: FromStr<Err = String> + Debug>(texts: &[&str], says: &str) {
    for text in texts {
        let error = text.parse::<T>().map(|value| format!("{text:?} became {value:?}")).unwrap_err();
        assert!(error.contains(says), "{text:?}: {error}");
    }
}

#[test]
fn durations_are_read_as_go_reads_them() {
    let cases = [
        ("0", Duration::ZERO),
        ("0s", Duration::ZERO),
        ("10s", Duration::from_secs(10)),
        ("10h", Duration::from_secs(36_000)),
        ("10h0m0s", Duration::from_secs(36_000)),
        ("1m30s", Duration::from_secs(90)),
        ("1.5s", Duration::from_millis(1500)),
        (".5s", Duration::from_millis(500)),
        ("300ms", Duration::from_millis(300)),
        ("5us", Duration::from_micros(5)),
        ("5µs", Duration::from_micros(5)),
        ("7ns", Duration::from_nanos(7)),
    ];
    for (text, expected) in cases {
        assert_eq!(text.parse::<Span>().unwrap().0, expected, "{text}");
    }
    refused::<Span>(
        &["", "10", "10 s", "s", "-1s", "1d", "1s1", "1.2.3s", "ten seconds"],
        "such as 30s, 1m30s or 10h",
    );
    refused::<Span>(&["10000h"], "at most a year");
}

#[test]
fn percentages_are_whole_numbers_up_to_a_hundred() {
    assert_eq!(["0", "5", "100"].map(|text| text.parse::<Percent>().unwrap().0), [0, 5, 100]);
    refused::<Percent>(&["", "-1", "101", "1000", "5%", "5.5", "half"], "from 0 to 100");
}

#[test]
fn booleans_are_those_of_go() {
    for text in ["true", "TRUE", "True", "t", "T", "1"] {
        assert_eq!(parse_bool(text), Ok(true), "{text}");
    }
    for text in ["false", "FALSE", "False", "f", "F", "0"] {
        assert_eq!(parse_bool(text), Ok(false), "{text}");
    }
    assert!(["", "yes", "on", "2", "tRUE"].into_iter().all(|text| parse_bool(text).is_err()));
}

#[test]
fn amounts_are_quantities_that_are_not_negative() {
    assert!(["0", "250m", "1000m", "100M", "1.5Gi"].into_iter().all(|text| text.parse::<Amount>().is_ok()));
    refused::<Amount>(&["", "much", "1 G", "10GB"], "is not a quantity");
    refused::<Amount>(&["-1", "-250m"], "not negative");
}

#[test]
fn listen_addresses_may_leave_out_the_host() {
    let all: Listen = ":8080".parse().unwrap();
    assert_eq!(all.candidates(), ["[::]:8080".parse().unwrap(), "0.0.0.0:8080".parse().unwrap()]);
    for text in ["0.0.0.0:80", "127.0.0.1:0", "[::1]:9000"] {
        assert_eq!(text.parse::<Listen>().unwrap().candidates(), [text.parse().unwrap()], "{text}");
    }
    assert_eq!("localhost:1".parse::<Listen>().unwrap().candidates(), ["127.0.0.1:1".parse().unwrap()]);
    refused::<Listen>(
        &["", ":", "8080", ":65536", ":+80", "host:80", "::1:80", "127.0.0.1"],
        "such as :8080",
    );
}

#[test]
fn endpoints_have_a_host_and_a_port() {
    for text in ["broker-svc.broker.svc.cluster.local:7000", "10.0.0.1:1", "[fd00::1]:65535", "Broker:80"] {
        assert!(text.parse::<Endpoint>().is_ok(), "{text}");
    }
    refused::<Endpoint>(
        &[
            "broker",
            "broker:",
            ":7000",
            "broker:0",
            "broker:70000",
            "http://broker:80",
            "fd00::1:80",
            "a b:1",
            "-a:1",
        ],
        "expected HOST:PORT",
    );
    refused::<Host>(&["", "1.2.3", "a_b", "a..b"], "host name or an IP address");
    refused::<Port>(&["", "0", "65536", "http"], "from 1 to 65535");
}

#[test]
fn labels_are_checked_and_annotations_may_hold_anything() {
    let labels: Labels = "region=eu-1, liqo.io/provider=x,empty=".parse().unwrap();
    let expected = [("region", "eu-1"), ("liqo.io/provider", "x"), ("empty", "")];
    assert_eq!(labels.0, expected.map(|(key, value)| (key.to_owned(), value.to_owned())).into());
    assert_eq!("".parse::<Labels>().unwrap(), Labels::default());
    refused::<Labels>(&["region", "a=b,c"], "has no value: expected key=value");
    refused::<Labels>(&["=x", "-a=x", "A_/b=x", "/a=x", "a/=x"], "is no key");
    refused::<Labels>(&["a=b c", "a=-b", "a=b/c"], "is no value for the label a");
    let annotations: Annotations = "note=a b/c=d".parse().unwrap();
    assert_eq!(annotations.0["note"], "a b/c=d");
}

#[test]
fn object_names_and_numbers_of_workers_have_bounds() {
    assert!(["liqo", "a.b", "x1"].into_iter().all(|text| text.parse::<ObjectName>().is_ok()));
    refused::<ObjectName>(&["", "Liqo", "a_b", "a..b", "-a"], "lower-case letters");
    assert_eq!("10".parse::<Workers>().unwrap().0, 10);
    refused::<Workers>(&["0", "-1", "1001", "many"], "from 1 to 1000");
}

#[test]
fn what_may_be_empty_is_nothing_when_it_is() {
    assert_eq!("".parse::<Maybe<Port>>(), Ok(Maybe(None)));
    assert_eq!("80".parse::<Maybe<Port>>(), Ok(Maybe(Some(Port(80)))));
    assert!("x".parse::<Maybe<Port>>().is_err());
}
