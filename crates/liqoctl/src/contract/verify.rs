//! `liqoctl contract verify`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, Result, bail};
use clap::Args;
use kube::ResourceExt;
use liqo_api::Contract;
use liqo_peering::paper::{self, Check, Keys};
use serde::Serialize;
use serde_json::Value;

use super::log::{self, LogView};
use super::{get, keys};
use crate::access::{Access, Connection};
use crate::output::{self, DataFormat};
use crate::peering::paper::PoolView;
use crate::style::{Mark, Style};

/// A contract has some KiB, a page of the log some hundred; more is a mistake.
const LONGEST_FILE: u64 = 64 << 20;

/// Arguments of `contract verify`.
#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// The file that contract show -o yaml wrote, - for standard input; or the name of a contract of this cluster
    #[arg(value_name = "FILE|NAME", required_unless_present = "log")]
    contract: Option<String>,
    /// The provider's public key: a PEM file, or ed25519:HEX [default: as this cluster knows it]
    #[arg(long, value_name = "FILE|KEY", requires = "consumer_key", requires = "contract")]
    provider_key: Option<String>,
    /// The consumer's public key: a PEM file, or ed25519:HEX [default: as this cluster knows it]
    #[arg(long, value_name = "FILE|KEY", requires = "provider_key", requires = "contract")]
    consumer_key: Option<String>,
    /// Check the contract log, too, and that the contract is in it: this cluster's, or the ConfigMaps in a file
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true)]
    log: Option<Option<PathBuf>>,
    /// Output format
    #[arg(short, long, value_enum)]
    output: Option<DataFormat>,
}

pub(super) const EXAMPLES: &str = "Examples:
  # Without any cluster: the file and the public keys are enough
  liqoctl contract verify contract.yaml --provider-key provider.pem --consumer-key consumer.pem

  # A contract of this cluster, with the keys as it knows them, and its log
  liqoctl contract verify c-0123456789abcdef0123 --log

  # The log alone; or one that somebody handed over
  liqoctl contract verify --log
  kubectl get configmaps -n liqo -l sharing.liqo.io/contract-log=true -o yaml > log.yaml
  liqoctl contract verify --log=log.yaml

A cluster's public key: kubectl get clusterconfig liqo -o jsonpath='{.status.publicKey}'. Ends with 0 if everything holds, else
with 1.";

/// What came out.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Outcome {
    pub(super) valid: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) contract: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) digest: Option<String>,
    /// What is lent by it of each pool of the provider's nodes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) pools: Vec<PoolView>,
    pub(super) checks: Vec<Check>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) log: Option<LogView>,
}

impl Arguments {
    pub(super) async fn run(self, access: &Access) -> Result<ExitCode> {
        let outcome = self.verify(access).await?;
        output::print(self.output.map(Into::into), &outcome, |_| text(&outcome, access.stdout()))?;
        Ok(if outcome.valid { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }

    async fn verify(&self, access: &Access) -> Result<Outcome> {
        let file = self.contract.as_ref().filter(|name| *name == "-" || Path::new(name).is_file());
        if let (Some(name), None, Some(_)) = (&self.contract, file, &self.provider_key) {
            bail!("there is no file {name}. Write one with liqoctl contract show NAME -o yaml > {name}");
        }
        let keys = self.given_keys()?;
        let contract_here = self.contract.is_some() && file.is_none();
        // Whoever has file and keys needs nobody.
        let needed = contract_here || (self.contract.is_some() && keys.is_none()) || self.log == Some(None);
        let connection = if needed { Some(access.connect().await?) } else { None };
        let contract = match (file, &self.contract) {
            (Some(path), _) => Some(read_contract(Path::new(path))?),
            (None, Some(name)) => Some(get(reached(connection.as_ref())?, name).await?),
            (None, None) => None,
        };
        let mut outcome = Outcome {
            valid: true,
            contract: None,
            digest: None,
            pools: Vec::new(),
            checks: Vec::new(),
            log: None,
        };
        let mut digest = None;
        if let Some(contract) = &contract {
            let keys = match keys {
                Some(keys) => keys,
                None => keys::known(reached(connection.as_ref())?, contract).await?,
            };
            let found = paper::verify(contract, &keys);
            outcome.valid = found.is_valid();
            outcome.contract = Some(contract.name_any());
            digest = found.terms.as_ref().map(liqo_core::contract::Terms::digest);
            outcome.pools = found.terms.as_ref().map(PoolView::all_of).unwrap_or_default();
            outcome.digest = digest.map(|digest| digest.to_string());
            outcome.checks = found.checks;
        }
        if let Some(file) = &self.log {
            let read = match file {
                Some(file) => log::Read::from_file(file)?,
                None => log::Read::from_cluster(reached(connection.as_ref())?).await?,
            };
            let (view, checks) = read.check(digest.as_ref());
            outcome.valid &= checks.iter().all(|check| check.problem.is_none());
            outcome.checks.extend(checks);
            outcome.log = Some(view);
        }
        Ok(outcome)
    }

    fn given_keys(&self) -> Result<Option<Keys>> {
        let (Some(provider), Some(consumer)) = (&self.provider_key, &self.consumer_key) else {
            return Ok(None);
        };
        let provider = keys::read(provider, "provider")?;
        Ok(Some(Keys { provider, consumer: keys::read(consumer, "consumer")? }))
    }
}

fn reached(connection: Option<&Connection>) -> Result<&Connection> {
    connection.context("a cluster is needed for this")
}

/// The contract in a file.
pub(super) fn read_contract(path: &Path) -> Result<Contract> {
    let objects = documents(path)?;
    let [object] = &objects[..] else {
        bail!(
            "{} has {} objects; write one contract with liqoctl contract show NAME -o yaml",
            path.display(),
            objects.len()
        );
    };
    if object["kind"] != "Contract" {
        bail!(
            "{} is no Contract but a {}",
            path.display(),
            object["kind"].as_str().unwrap_or("file of something else")
        );
    }
    serde_json::from_value(object.clone()).with_context(|| format!("{} is no Contract", path.display()))
}

/// The objects in a file of YAML or JSON; those of a List, and several in a row, one by one.
pub(crate) fn documents(path: &Path) -> Result<Vec<Value>> {
    let text = if path.as_os_str() == "-" {
        std::io::read_to_string(std::io::stdin()).context("cannot read standard input")?
    } else {
        let failed = || format!("cannot read {}", path.display());
        if std::fs::metadata(path).with_context(failed)?.len() > LONGEST_FILE {
            bail!("{} is too long to be what is expected", path.display());
        }
        std::fs::read_to_string(path).with_context(failed)?
    };
    let parsed: Vec<Value> = if text.trim_start().starts_with('{') {
        vec![serde_json::from_str(&text).with_context(|| format!("{} is no JSON", path.display()))?]
    } else {
        serde_saphyr::from_multiple(&text).with_context(|| format!("{} is no YAML", path.display()))?
    };
    let single = |object: Value| match object["items"].as_array() {
        Some(items) => items.clone(),
        None => vec![object],
    };
    Ok(parsed.into_iter().filter(|object| !object.is_null()).flat_map(single).collect())
}

fn text(outcome: &Outcome, style: Style) -> String {
    let mut text = String::new();
    for check in &outcome.checks {
        text += &match &check.problem {
            None => format!("{} {}\n", style.mark(Mark::Good), check.what),
            Some(problem) => format!("{} {}: {problem}\n", style.mark(Mark::Bad), check.what),
        };
    }
    for pool in &outcome.pools {
        text += &format!("pool {}: {}\n", pool.name, pool.sentence());
    }
    if let Some(log) = &outcome.log {
        let end = log.head.as_ref().map(|head| format!(", the last {head}")).unwrap_or_default();
        let entries = if log.length == 1 { "1 entry".to_owned() } else { format!("{} entries", log.length) };
        text += &format!("the log of {} has {entries}{end}\n", log.cluster_id);
    }
    let what =
        outcome.contract.as_ref().map_or_else(|| "the log".to_owned(), |name| format!("contract {name}"));
    let said = match (outcome.valid, outcome.contract.is_some()) {
        (true, true) => "is what both signed",
        (true, false) => "is what was written",
        (false, _) => "does not hold",
    };
    text + &style.bold(&format!("{what} {said}")) + "\n"
}
