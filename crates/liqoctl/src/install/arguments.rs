//! What `liqoctl install` takes, and what it stands for.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, value_parser};
use liqo_api::names::MAX_LABEL;
use liqo_chart::Chart;
use liqo_install::Request;
use liqo_install::detect::{Distribution, Found};
use liqo_install::values::{Given, Set};

use crate::duration::parse_span;
use crate::output::DataFormat;

/// Arguments of `install`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// What kind of cluster it is [default: found out]
    #[arg(value_name = "DISTRIBUTION", value_parser = distribution())]
    distribution: Option<Distribution>,

    /// What peers call the cluster [default: the name it has, else as the sandbox or the context is called]
    #[arg(long, alias = "name", value_name = "NAME")]
    cluster_name: Option<String>,
    /// Make up a name for the cluster
    #[arg(long, conflicts_with = "cluster_name")]
    generate_name: bool,
    /// What identifies the cluster for good [default: a new UUID]. With gke and one of its flags: the GKE cluster's name
    #[arg(long, value_name = "ID")]
    cluster_id: Option<String>,
    /// Labels that peers see on this cluster
    #[arg(long, value_name = "KEY=VALUE,…", value_delimiter = ',', value_parser = key_value)]
    cluster_labels: Vec<(String, String)>,
    /// Where peers reach the API server [default: found out]
    #[arg(long, alias = "api-server", value_name = "URL")]
    api_server_url: Option<String>,
    /// Do not try whether the API server answers at the address for peers
    #[arg(long)]
    disable_endpoint_check: bool,
    /// The pods' network [default: found out]
    #[arg(long, value_name = "CIDR")]
    pod_cidr: Option<String>,
    /// The services' network [default: found out]
    #[arg(long, value_name = "CIDR")]
    service_cidr: Option<String>,
    /// Networks that are never used for peers
    #[arg(long, value_name = "CIDR,…", value_delimiter = ',')]
    reserved_subnets: Option<Vec<String>>,
    /// How much of the cluster's free resources is offered to peers, in per cent [default: 90]
    #[arg(long, value_name = "PERCENT", value_parser = percent)]
    resource_sharing_percentage: Option<u8>,
    /// Two replicas of the manager, on different nodes where there are some
    #[arg(long, num_args = 0..=1, default_missing_value = "true", require_equals = true, value_name = "BOOL")]
    enable_ha: Option<bool>,
    /// Find other clusters on the local network, and be found
    #[arg(long, num_args = 0..=1, default_missing_value = "true", require_equals = true, value_name = "BOOL")]
    enable_lan_discovery: Option<bool>,
    /// Be a broker: offer what peers offer (no effect in this version)
    #[arg(long, num_args = 0..=1, default_missing_value = "true", require_equals = true, value_name = "BOOL")]
    broker: Option<bool>,
    /// Largest packet in the tunnels, in bytes (no effect in this version) [default: 1440]
    #[arg(long, value_name = "BYTES")]
    mtu: Option<u32>,
    /// UDP port of the tunnels (no effect in this version) [default: 5871]
    #[arg(long, value_name = "PORT", value_parser = value_parser!(u16).range(1..))]
    vpn_listening_port: Option<u16>,

    /// A file with values of the chart, `-` for standard input; several are laid on top of each other
    #[arg(short = 'f', long = "values", value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Values of the chart, as Helm takes them
    #[arg(long, value_name = "KEY=VALUE,…")]
    set: Vec<String>,
    /// The same, but every value is text
    #[arg(long, value_name = "KEY=VALUE,…")]
    set_string: Vec<String>,
    /// Forget the values that were given before
    #[arg(long)]
    reset_values: bool,
    /// A chart to use in place of the one that this program carries: a directory or an archive
    #[arg(long, value_name = "PATH")]
    chart_path: Option<PathBuf>,
    /// Refuse to install any other version than this
    #[arg(long = "version", id = "wanted-version", value_name = "VERSION")]
    version: Option<String>,
    /// The image for the nodes of a sandbox [default: liqo-VERSION.tar beside this program, as `make image` makes it]
    #[arg(long, value_name = "FILE", env = "LIQO_IMAGE_ARCHIVE")]
    pub(super) image_archive: Option<PathBuf>,

    /// Only tell what would be changed
    #[arg(long)]
    pub(super) dry_run: bool,
    /// Only print the values that would be used
    #[arg(long)]
    only_output_values: bool,
    /// Only write the values that would be used to this file
    #[arg(long, value_name = "FILE")]
    pub(super) dump_values_path: Option<PathBuf>,
    /// Output format of --dry-run, of --only-output-values, and of what was installed
    #[arg(short, long, value_enum)]
    pub(super) output: Option<DataFormat>,
    /// How long it may take to become ready: seconds, or like 10m
    #[arg(short, long, value_name = "DURATION", default_value = "10m", value_parser = seconds_or_span)]
    pub(super) timeout: Duration,
    /// Go back to an older version, take over what is not ours, remove dead webhooks of others
    #[arg(long)]
    pub(super) force: bool,

    #[command(flatten)]
    provider: Provider,
}

/// What Liqo 0.4 and later ask for and what is found out here, or not needed.
#[derive(Debug, Args)]
#[command(next_help_heading = "Accepted for commands written for Liqo")]
struct Provider {
    /// eks, gke: where the cluster is
    #[arg(long, alias = "eks-cluster-region", value_name = "REGION")]
    region: Option<String>,
    /// gke: where the cluster is
    #[arg(long, value_name = "ZONE")]
    zone: Option<String>,
    /// eks: what the cluster is called there
    #[arg(long, value_name = "NAME")]
    eks_cluster_name: Option<String>,
    /// aks: what the cluster is called there
    #[arg(long, value_name = "NAME")]
    resource_name: Option<String>,
    /// Enable the ServiceMonitor, as --set metrics.serviceMonitor.enabled=true
    #[arg(long)]
    enable_metrics: bool,
    /// The chart is part of this program
    #[arg(long, value_name = "URL")]
    repo_url: Option<String>,
    /// The chart is part of this program
    #[arg(long)]
    devel: bool,
    /// aks: not needed
    #[arg(long, value_name = "ID")]
    subscription_id: Option<String>,
    /// aks: not needed
    #[arg(long, value_name = "NAME")]
    subscription_name: Option<String>,
    /// aks: not needed
    #[arg(long, value_name = "NAME")]
    resource_group_name: Option<String>,
    /// aks: not needed
    #[arg(long, value_name = "NAME")]
    vnet_resource_group_name: Option<String>,
    /// eks: not needed
    #[arg(long, value_name = "NAME")]
    user_name: Option<String>,
    /// eks: not needed
    #[arg(long, value_name = "NAME")]
    policy_name: Option<String>,
    /// eks: not needed
    #[arg(long, value_name = "ID")]
    access_key_id: Option<String>,
    /// eks: not needed
    #[arg(long, value_name = "KEY")]
    secret_access_key: Option<String>,
    /// gke: not needed
    #[arg(long, value_name = "FILE")]
    credentials_path: Option<String>,
    /// gke: not needed
    #[arg(long, value_name = "ID")]
    project_id: Option<String>,
    /// Nothing is told to anybody
    #[arg(long, hide = true)]
    disable_telemetry: bool,
    /// Not needed
    #[arg(long, hide = true)]
    disable_kernel_version_check: bool,
    /// Not needed
    #[arg(long, hide = true)]
    skip_validation: bool,
}

pub(crate) const EXAMPLES: &str = "Examples:
  liqoctl install --dry-run                                # what would happen
  liqoctl install --cluster-name turin --set image.name=registry.example.com/liqo
  sudo liqoctl install sandbox --context provider-a        # brings the image along
  liqoctl install k3s --pod-cidr 10.42.0.0/16 --service-cidr 10.43.0.0/16
  liqoctl install --values my-values.yaml                  # again: changes what differs, and nothing else
  liqoctl install --only-output-values > values.yaml       # for Helm, or for your repository

Values: the chart's defaults, then what is found in the cluster, then what was given at the last installation, then
--values, then flags, then --set; the later wins. Ends with 0 when the manager is ready, with 1 and the reason when it is
not; running it again goes on.";

fn distribution() -> impl TypedValueParser<Value = Distribution> {
    PossibleValuesParser::new(Distribution::ALL.map(Distribution::name)).try_map(|name| name.parse())
}

fn key_value(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if is_label_key(key) && is_label_part(value, true) => {
            Ok((key.to_owned(), value.to_owned()))
        }
        _ => Err(format!(
            "{text:?} is no label of Kubernetes; write it like region=europe or example.com/team=a"
        )),
    }
}

/// `name` or `example.com/name`.
fn is_label_key(key: &str) -> bool {
    const LONGEST_DOMAIN: usize = 253;
    match key.split_once('/') {
        Some((domain, name)) => {
            let part = |label: &str| !label.is_empty() && is_label_part(label, false) && !label.contains('_');
            domain.len() <= LONGEST_DOMAIN && domain.split('.').all(part) && is_label_part(name, false)
        }
        None => is_label_part(key, false),
    }
}

/// What Kubernetes takes as a label's name or value.
fn is_label_part(text: &str, may_be_empty: bool) -> bool {
    let edge = |c: char| c.is_ascii_alphanumeric();
    let inside = |c: char| edge(c) || matches!(c, '-' | '_' | '.');
    match (text.chars().next(), text.chars().next_back()) {
        (Some(first), Some(last)) => {
            text.len() <= MAX_LABEL && edge(first) && edge(last) && text.chars().all(inside)
        }
        _ => may_be_empty,
    }
}

fn percent(text: &str) -> Result<u8, String> {
    let number = text.trim_end_matches('%').parse::<u8>().ok().filter(|number| *number <= 100);
    number.ok_or_else(|| format!("{text:?} is no percentage; a number from 0 to 100 is expected"))
}

/// Liqo counts in seconds; everybody else writes units.
pub(crate) fn seconds_or_span(text: &str) -> Result<Duration, String> {
    match text.parse::<u64>() {
        Ok(seconds) if seconds > 0 => parse_span(&format!("{seconds}s")),
        _ => parse_span(text),
    }
}

impl Arguments {
    /// Only the values are wanted.
    pub(super) fn only_values(&self) -> bool {
        self.only_output_values || self.dump_values_path.is_some()
    }

    /// The chart: this program's own, or another.
    pub(super) fn chart(&self) -> Result<Chart> {
        let chart = match &self.chart_path {
            Some(path) => {
                Chart::open(path).with_context(|| format!("cannot use the chart {}", path.display()))?
            }
            None => Chart::embedded(),
        };
        let plain = |text: &str| text.trim_start_matches('v').to_owned();
        if let Some(wanted) = &self.version
            && ![chart.version(), chart.app_version()].map(plain).contains(&plain(wanted))
        {
            let what = if self.chart_path.is_some() { "the chart" } else { "this liqoctl" };
            bail!(
                "{what} installs version {}, not {wanted}. Use liqoctl {wanted}, or give its chart with --chart-path; another \
                 image alone is chosen with --set image.tag={wanted}",
                chart.app_version()
            );
        }
        Ok(chart)
    }

    /// What the flags ask for.
    pub(super) fn request(&self) -> Result<Request> {
        let (cluster_id, provider_name) = self.identity();
        let provider = &self.provider;
        let region = provider.region.as_ref().map(|region| found(region, "--region"));
        let given = Given {
            cluster_name: self.cluster_name.clone(),
            generate_name: self.generate_name,
            cluster_id,
            cluster_labels: self.cluster_labels.iter().cloned().collect::<BTreeMap<_, _>>(),
            api_server_url: self.api_server_url.clone(),
            pod_cidr: self.pod_cidr.clone(),
            service_cidr: self.service_cidr.clone(),
            reserved_subnets: self.reserved_subnets.clone(),
            sharing_percentage: self.resource_sharing_percentage,
            enable_ha: self.enable_ha,
            lan_discovery: self.enable_lan_discovery,
            broker: self.broker,
            mtu: self.mtu,
            listening_port: self.vpn_listening_port,
            provider_name,
            region: region.or_else(|| provider.zone.as_ref().map(|zone| found(region_of(zone), "--zone"))),
        };
        let metrics = provider.enable_metrics.then(|| "metrics.serviceMonitor.enabled=true".to_owned());
        let typed = metrics.into_iter().chain(self.set.iter().cloned()).map(Set::Typed);
        Ok(Request {
            distribution: self.distribution,
            given,
            files: self.files.iter().map(|path| read_values(path)).collect::<Result<_>>()?,
            sets: typed.chain(self.set_string.iter().cloned().map(Set::Text)).collect(),
            reset_values: self.reset_values,
            force: self.force,
            skip_endpoint_check: self.disable_endpoint_check,
            thorough: self.dry_run,
        })
    }

    /// `--cluster-id` names a cluster of GKE in commands written for Liqo 0.4, and our own ID in later ones.
    fn identity(&self) -> (Option<String>, Option<Found<String>>) {
        let provider = &self.provider;
        let of_gke = self.distribution == Some(Distribution::Gke)
            && (provider.project_id.is_some()
                || provider.zone.is_some()
                || provider.credentials_path.is_some());
        let name = |name: &Option<String>, flag: &str| name.as_ref().map(|name| found(name, flag));
        let elsewhere = name(&provider.eks_cluster_name, "--eks-cluster-name")
            .or_else(|| name(&provider.resource_name, "--resource-name"));
        if of_gke {
            return (None, elsewhere.or_else(|| name(&self.cluster_id, "--cluster-id")));
        }
        (self.cluster_id.clone(), elsewhere)
    }

    /// Flags that were given and change nothing.
    pub(super) fn notes(&self) -> Vec<String> {
        let provider = &self.provider;
        let chart = [("--repo-url", provider.repo_url.is_some()), ("--devel", provider.devel)];
        let cloud = [
            ("--subscription-id", provider.subscription_id.is_some()),
            ("--subscription-name", provider.subscription_name.is_some()),
            ("--resource-group-name", provider.resource_group_name.is_some()),
            ("--vnet-resource-group-name", provider.vnet_resource_group_name.is_some()),
            ("--user-name", provider.user_name.is_some()),
            ("--policy-name", provider.policy_name.is_some()),
            ("--access-key-id", provider.access_key_id.is_some()),
            ("--secret-access-key", provider.secret_access_key.is_some()),
            ("--credentials-path", provider.credentials_path.is_some()),
            ("--project-id", provider.project_id.is_some()),
        ];
        let rest = [
            ("--disable-telemetry", provider.disable_telemetry),
            ("--disable-kernel-version-check", provider.disable_kernel_version_check),
            ("--skip-validation", provider.skip_validation),
        ];
        let reasons: [(&[(&str, bool)], &str); 3] = [
            (&chart, "has no effect: the chart is part of this program"),
            (
                &cloud,
                "has no effect: nothing is asked of the cloud, everything is found in the cluster itself",
            ),
            (&rest, "has no effect: there is nothing of that kind to turn off"),
        ];
        let all = reasons
            .into_iter()
            .flat_map(|(flags, why)| flags.iter().map(move |(flag, given)| (flag, given, why)));
        all.filter(|(_, given, _)| **given).map(|(flag, _, why)| format!("{flag} {why}")).collect()
    }
}

fn found(value: &str, flag: &str) -> Found<String> {
    Found { value: value.to_owned(), source: flag.to_owned() }
}

/// `europe-west1-b` is in `europe-west1`.
fn region_of(zone: &str) -> &str {
    match zone.rsplit_once('-') {
        Some((region, letter)) if letter.len() == 1 => region,
        _ => zone,
    }
}

fn read_values(path: &Path) -> Result<(String, serde_json::Value)> {
    let (name, text) = if path == Path::new("-") {
        let mut text = String::new();
        std::io::stdin().read_to_string(&mut text).context("cannot read values from standard input")?;
        ("standard input".to_owned(), text)
    } else {
        let text = std::fs::read_to_string(path)
            .with_context(|| format!("cannot read the values file {}", path.display()))?;
        (path.display().to_string(), text)
    };
    let values = liqo_chart::values::load(&text).with_context(|| format!("{name} is not a values file"))?;
    Ok((name, values))
}

#[cfg(test)]
mod tests;
