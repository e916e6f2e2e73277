//! Everything before the first write: look, conclude, render, check.

mod reach;

use liqo_chart::{Chart, Release};
use serde_json::{Value, json};

use crate::changes::{Look, Planned, removals};
use crate::detect::{self, Detected, Distribution, Found};
use crate::error::InstallError;
use crate::existing::{self, Existing};
use crate::facts::{self, Facts};
use crate::finding::{Finding, Outcome};
use crate::kinds::Kinds;
use crate::names::{INSTALLATION, RELEASE, SERVICE};
use crate::notes::{Notes, State};
use crate::objects::{Id, Owner};
use crate::permissions;
use crate::preflight::{self, World};
use crate::progress::Progress;
use crate::target::Target;
use crate::values::{self, Given, Set, Settings, Sources, Values};

/// What the user asks for.
#[derive(Debug, Clone, Default)]
pub struct Request {
    /// The distribution that they named.
    pub distribution: Option<Distribution>,
    /// Flags that stand for values.
    pub given: Given,
    /// Values files: where they came from, and what they say.
    pub files: Vec<(String, Value)>,
    /// `--set` and `--set-string`.
    pub sets: Vec<Set>,
    /// Forget what was given before.
    pub reset_values: bool,
    /// Do what would be refused.
    pub force: bool,
    /// Do not try whether the API server's address for peers answers.
    pub skip_endpoint_check: bool,
    /// Ask the server about each object, also about those that are not there yet.
    pub thorough: bool,
}

/// What is known before anything is rendered.
pub struct Outlook {
    /// What was concluded about the cluster.
    pub detected: Detected,
    /// The distribution that is gone by: as named, else as found.
    pub distribution: Option<Found<Distribution>>,
    /// What the chart is rendered with.
    pub values: Values,
    /// The chart's defaults with all of that on top.
    pub all_values: Value,
    pub(crate) facts: Facts,
    pub(crate) existing: Existing,
}

/// An installation that is ready to be made.
pub struct Prepared {
    /// What is known of the cluster.
    pub outlook: Outlook,
    /// Everything that was checked.
    pub findings: Vec<Finding>,
    /// What would happen to each definition of a kind.
    pub definitions: Vec<Planned>,
    /// What would happen to each object.
    pub objects: Vec<Planned>,
    /// What is no longer needed.
    pub removals: Vec<Planned>,
    /// The version that would be installed.
    pub version: String,
    pub(crate) force: bool,
}

/// Looks at the cluster and concludes what the values are. Changes nothing.
pub async fn look(
    target: &Target,
    chart: &Chart,
    request: &Request,
    progress: &dyn Progress,
) -> Result<Outlook, InstallError> {
    progress.busy("looking at the cluster");
    let (facts, existing) = futures::join!(
        Box::pin(facts::read(target)),
        Box::pin(existing::read(&target.client, &target.namespace))
    );
    let detected = detect::detect(&facts, request.distribution);
    let distribution = match request.distribution {
        Some(told) => Some(Found { value: told, source: "what was said".into() }),
        None => detected.distribution.clone(),
    };
    let values = assemble(request, &detected, distribution.as_ref().map(|found| found.value), &existing)?;
    let all_values = all_values(chart, &values, &existing)?;
    Ok(Outlook { detected, distribution, values, all_values, facts, existing })
}

/// Looks, concludes, renders and checks. Changes nothing.
pub async fn prepare(
    target: &Target,
    chart: &Chart,
    request: &Request,
    progress: &dyn Progress,
) -> Result<Prepared, InstallError> {
    let outlook = Box::pin(look(target, chart, request, progress)).await?;
    progress.busy("comparing with what is there");
    let kinds = Kinds::read(&target.client).await;
    let kinds =
        kinds.map_err(|error| InstallError::request("cannot ask the API server for its kinds", &error))?;
    let plan = plan(target, chart, request, &outlook, &kinds).await?;
    progress.busy("checking");
    let findings = check(target, chart, request, &outlook, &plan).await;
    let Plan { definitions, objects, removals } = plan;
    let version = chart.app_version().to_owned();
    Ok(Prepared { outlook, findings, definitions, objects, removals, version, force: request.force })
}

struct Plan {
    definitions: Vec<Planned>,
    objects: Vec<Planned>,
    removals: Vec<Planned>,
}

async fn plan(
    target: &Target,
    chart: &Chart,
    request: &Request,
    outlook: &Outlook,
    kinds: &Kinds,
) -> Result<Plan, InstallError> {
    let existing = &outlook.existing;
    let (definitions, objects) = render(chart, &release(target, kinds, existing), &outlook.values, existing)?;
    let unseen = existing.unread.iter().any(|one| one.what.starts_with("namespace "));
    let look = Look {
        kinds,
        namespace: &target.namespace,
        fresh: existing.namespace.is_none() && !unseen,
        thorough: request.thorough,
    };
    let definitions = look.at(definitions).await?;
    let objects = look.at(objects).await?;
    let noted = existing.notes.as_ref().map(|notes| notes.objects.clone()).unwrap_or_default();
    let keep = |id: &Id| is_kept(id, &target.namespace);
    let removals = removals(kinds, &objects, &noted, &target.namespace, keep).await?;
    Ok(Plan { definitions, objects, removals })
}

async fn check(
    target: &Target,
    chart: &Chart,
    request: &Request,
    outlook: &Outlook,
    plan: &Plan,
) -> Vec<Finding> {
    let planned: Vec<Planned> =
        plan.definitions.iter().chain(&plan.objects).chain(&plan.removals).cloned().collect();
    let settings = Settings::of(&outlook.all_values);
    let needed = permissions::needed(&planned, &target.namespace);
    let useful = permissions::useful(&target.namespace);
    let granted = permissions::granted(&planned);
    let (rights, unreachable) = futures::join!(
        permissions::ask(&target.client, needed, useful, &granted),
        reach::unreachable(target, &settings, request.skip_endpoint_check),
    );
    preflight::findings(&World {
        facts: &outlook.facts,
        detected: &outlook.detected,
        told: request.distribution,
        existing: &outlook.existing,
        settings: &settings,
        planned: &planned,
        rights: &rights,
        unreachable: unreachable.as_deref(),
        version: chart.app_version(),
        namespace: &target.namespace,
        flags: &target.flags(),
        force: request.force,
    })
}

fn assemble(
    request: &Request,
    detected: &Detected,
    distribution: Option<Distribution>,
    existing: &Existing,
) -> Result<Values, InstallError> {
    let stored = existing.notes.as_ref().map(|notes| &notes.values).filter(|_| !request.reset_values);
    values::assemble(&Sources {
        detected,
        distribution,
        identity_name: existing.identity.as_ref().and_then(|identity| identity.name.as_deref()),
        stored,
        files: &request.files,
        given: &request.given,
        sets: &request.sets,
    })
}

/// All values with their defaults, checked: first what is easily mistyped, in words, then everything by the schema.
fn all_values(chart: &Chart, values: &Values, existing: &Existing) -> Result<Value, InstallError> {
    let unchecked = liqo_chart::values::coalesce(chart.default_values(), &values.overrides);
    let wrong = preflight::mistyped(&Settings::of(&unchecked), existing);
    if !wrong.is_empty() {
        return Err(InstallError::Refused(wrong));
    }
    let failed = |source: liqo_chart::ChartError| {
        let looks_like_a_number = source.to_string().contains(r#"is not of type "string""#);
        let more =
            if looks_like_a_number { " (a text that looks like a number needs --set-string)" } else { "" };
        InstallError::Chart { what: format!("{UNUSABLE}{more}"), source: source.into() }
    };
    chart.values(&values.overrides).map_err(failed)
}

const UNUSABLE: &str = "these values cannot be used";

fn release(target: &Target, kinds: &Kinds, existing: &Existing) -> Release {
    let revision = existing.notes.as_ref().map_or(0, |notes| notes.revision);
    Release {
        name: RELEASE.to_owned(),
        namespace: target.namespace.clone(),
        service: SERVICE.to_owned(),
        is_upgrade: existing.notes.as_ref().is_some_and(|notes| notes.state == State::Installed),
        revision: revision.saturating_add(1),
        kubernetes_version: target.version.clone(),
        api_versions: kinds.api_versions(),
    }
}

/// The definitions, and the objects.
fn render(
    chart: &Chart,
    release: &Release,
    values: &Values,
    existing: &Existing,
) -> Result<(Vec<Value>, Vec<Value>), InstallError> {
    let failed = |what: &str| {
        let what = what.to_owned();
        move |source: liqo_chart::ChartError| InstallError::Chart { what, source: source.into() }
    };
    let mut overrides = values.overrides.clone();
    // A namespace that somebody else made stays theirs: it is neither changed now nor deleted at the end.
    let ours = existing.namespace.as_ref().is_none_or(|namespace| namespace.owner == Owner::Ours);
    overrides["createNamespace"] = json!(ours);
    let definitions = chart.crds().map_err(failed("cannot read the definitions of the kinds"))?;
    Ok((definitions, chart.render(release, &overrides).map_err(failed(UNUSABLE))?))
}

/// What an installation has besides the chart's objects, and keeps.
fn is_kept(id: &Id, namespace: &str) -> bool {
    let here = id.namespace.as_deref() == Some(namespace);
    (here
        && id.kind == "Secret"
        && (id.name == INSTALLATION || id.name == liqo_api::cluster_config::IDENTITY_SECRET))
        || (here && id.kind == "ConfigMap" && id.name == liqo_api::cluster_config::CLUSTER_ID_CONFIG_MAP)
        || id.kind == "Namespace"
}

impl Prepared {
    /// Everything that would happen, in the order in which it happens.
    pub fn changes(&self) -> impl Iterator<Item = &Planned> {
        self.definitions.iter().chain(&self.objects).chain(&self.removals)
    }

    /// The image that nodes must have.
    pub fn image(&self) -> Option<String> {
        let deployment = self
            .objects
            .iter()
            .find(|one| one.id.name == crate::names::MANAGER && one.id.kind == "Deployment");
        let containers = &deployment?.wanted.as_ref()?["spec"]["template"]["spec"]["containers"];
        containers[0]["image"].as_str().map(str::to_owned)
    }

    /// Whether an installation was there that had become ready once.
    pub fn is_upgrade(&self) -> bool {
        self.outlook.existing.notes.as_ref().is_some_and(|notes| notes.state == State::Installed)
    }

    /// What must be put right before anything is changed.
    pub fn refused(&self) -> Result<(), InstallError> {
        let failed: Vec<Finding> =
            self.findings.iter().filter(|finding| finding.result == Outcome::Failed).cloned().collect();
        if failed.is_empty() { Ok(()) } else { Err(InstallError::Refused(failed)) }
    }

    /// The notes as they should be in the end.
    pub(crate) fn notes(&self, state: State) -> Notes {
        let revision = self.outlook.existing.notes.as_ref().map_or(0, |notes| notes.revision);
        let objects = self.objects.iter().map(|one| one.id.clone()).collect();
        Notes {
            state,
            version: self.version.clone(),
            values: self.outlook.values.user.clone(),
            objects,
            revision: revision.saturating_add(1),
        }
    }

    /// Nothing is to be written.
    pub fn is_done(&self) -> bool {
        let noted = self.outlook.existing.notes.as_ref().is_some_and(|there| {
            let wanted = Notes { revision: there.revision, ..self.notes(State::Installed) };
            *there == wanted
        });
        noted && !self.changes().any(Planned::is_change)
    }
}
