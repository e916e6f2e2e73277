use std::time::Duration;

use clap::Parser;
use liqo_install::detect::Distribution;

use super::{Arguments, region_of, seconds_or_span};

#[derive(Parser)]
struct Program {
    #[command(flatten)]
    arguments: Arguments,
}

fn parse(line: &str) -> Result<Arguments, String> {
    let words = std::iter::once("install").chain(line.split_whitespace());
    Program::try_parse_from(words).map(|program| program.arguments).map_err(|error| error.to_string())
}

#[test]
fn a_command_written_for_liqo_is_taken() {
    let arguments = parse(
        "eks --region eu-west-1 --eks-cluster-name prod --user-name u --policy-name p --access-key-id a --secret-access-key b \
         --timeout 600 --repo-url https://x --devel --enable-lan-discovery --cluster-labels a=b,c=d --disable-endpoint-check \
         --reserved-subnets 10.0.0.0/24,10.1.0.0/24 --resource-sharing-percentage 80% --enable-ha --mtu 1300 \
         --vpn-listening-port 6000",
    )
    .unwrap();
    let request = arguments.request().unwrap();
    let given = &request.given;
    assert_eq!(request.distribution, Some(Distribution::Eks));
    assert_eq!(given.provider_name.as_ref().unwrap().value, "prod");
    assert_eq!(given.region.as_ref().unwrap().value, "eu-west-1");
    assert_eq!(given.cluster_labels.len(), 2);
    assert_eq!(given.reserved_subnets.as_deref().unwrap().len(), 2);
    assert_eq!((given.sharing_percentage, given.enable_ha, given.mtu), (Some(80), Some(true), Some(1300)));
    let notes = arguments.notes();
    for flag in
        ["--repo-url", "--devel", "--user-name", "--policy-name", "--access-key-id", "--secret-access-key"]
    {
        assert_eq!(
            notes.iter().filter(|note| note.starts_with(&format!("{flag} "))).count(),
            1,
            "{flag}: {notes:?}"
        );
    }
}

#[test]
fn the_cluster_id_of_gke_is_a_name_and_everywhere_else_an_id() {
    let of = |line: &str| {
        let given = parse(line).unwrap().request().unwrap().given;
        (given.cluster_id, given.provider_name.map(|found| found.value))
    };
    assert_eq!(of("gke --project-id p --zone europe-west1-b --cluster-id lend"), (None, Some("lend".into())));
    assert_eq!(of("gke --cluster-id 7"), (Some("7".into()), None));
    assert_eq!(of("kind --cluster-id 7"), (Some("7".into()), None));
    assert_eq!(of("aks --resource-name lend --subscription-id s"), (None, Some("lend".into())));
}

#[test]
fn zones_are_in_regions() {
    assert_eq!(region_of("europe-west1-b"), "europe-west1");
    assert_eq!(region_of("westeurope"), "westeurope");
}

#[test]
fn name_is_another_word_for_cluster_name() {
    assert_eq!(
        parse("--name turin").unwrap().request().unwrap().given.cluster_name.as_deref(),
        Some("turin")
    );
    assert!(parse("--cluster-name turin --generate-name").is_err());
}

#[test]
fn times_are_seconds_or_have_units() {
    assert_eq!(seconds_or_span("600"), Ok(Duration::from_secs(600)));
    assert_eq!(seconds_or_span("10m"), Ok(Duration::from_secs(600)));
    assert!(seconds_or_span("0").is_err());
    assert!(seconds_or_span("soon").is_err());
}

#[test]
fn nonsense_is_refused_where_it_stands() {
    for (line, word) in [
        ("minikube", "possible values"),
        ("--resource-sharing-percentage 101", "0 to 100"),
        ("--cluster-labels nonsense", "region=europe"),
        ("--cluster-labels a=b/c", "region=europe"),
        ("--cluster-labels=-a=b", "region=europe"),
        ("--cluster-labels example..com/a=b", "region=europe"),
        ("--vpn-listening-port 0", "1..=65535"),
        ("--vpn-listening-port 70000", "70000"),
        ("--mtu many", "many"),
        ("--timeout never", "10m"),
    ] {
        let error = parse(line).unwrap_err();
        assert!(error.contains(word), "{line}: {error}");
    }
}

#[test]
fn another_version_than_ours_is_refused_with_the_way_to_it() {
    assert!(parse("--version v0.1.0").unwrap().chart().is_ok());
    let error = parse("--version 9.9.9").unwrap().chart().unwrap_err().to_string();
    assert!(error.contains("--chart-path") && error.contains("9.9.9"), "{error}");
    assert!(parse("--chart-path /nowhere").unwrap().chart().is_err());
}

#[test]
fn a_values_file_that_is_not_there_is_named() {
    let error = format!("{:#}", parse("-f /nowhere.yaml").unwrap().request().unwrap_err());
    assert!(error.contains("/nowhere.yaml"), "{error}");
}
