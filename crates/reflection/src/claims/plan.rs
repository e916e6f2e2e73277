//! What should happen about one claim of the virtual class.

use liqo_kit::Key;

use super::facts::{Claim, Real, Volume};
use super::index::Claims;
use crate::mirror::index::Mirror;
use crate::mirror::kinds::Kind;
use crate::mirror::{Here, There};
use crate::pods::facts::VirtualNode;
use crate::pods::index::Pods;
use crate::pods::plan::Standing;
use crate::reports::Report;

#[cfg(test)]
mod tests;

/// Why a claim gets no volume where its consumer was placed; Kubernetes' own word.
const FAILED: &str = "ProvisioningFailed";
/// Why a claim waits.
const WAITS: &str = "ProvisioningWaits";
/// What was behind a volume is gone.
const LOST: &str = "VolumeLost";

/// All that is known.
pub(crate) struct View<'a> {
    /// The ID of this cluster.
    pub(crate) home: &'a str,
    pub(crate) claims: &'a Claims,
    pub(crate) mirror: &'a Mirror,
    pub(crate) pods: &'a Pods,
    /// What is known of a provider; nothing of one that we have no access to.
    pub(crate) standing: &'a dyn Fn(&str) -> Option<Standing>,
}

/// One thing to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Ask for a volume of a real class on this node.
    Ask { node: Box<str> },
    /// Make the volume that stands for the one at a provider.
    Stand { provider: Box<str>, pool: Option<Box<str>>, remote: String },
    /// Make the volume that is the twin of this real one, which this claim has.
    Twin { volume: Box<str>, real: Box<str> },
    /// Ask the scheduler for another node.
    Unselect { version: Box<str> },
    /// Take away the claim of a real class.
    DropReal { key: Key, uid: Box<str> },
    /// Take away a volume.
    DropVolume { name: Box<str>, uid: Box<str> },
}

/// What should happen about the claims of one name.
#[derive(Clone, Debug, Default)]
pub(crate) struct Planned {
    /// What there should be at a provider.
    pub(crate) sent: Option<Here>,
    pub(crate) steps: Vec<Step>,
    /// What to tell about the claim.
    pub(crate) report: Option<Report>,
}

/// What should happen about the claims of this name: the one that is there, and what is left of earlier ones.
pub(crate) fn plan(view: &View<'_>, key: &Key) -> Planned {
    let about = About { view, key };
    let mut planned = Planned::default();
    let claim = view.claims.claim(key);
    for volume in view.claims.volumes(key) {
        about.volume(volume, claim, &mut planned);
    }
    for real in view.claims.reals(key) {
        about.real(real, claim, &mut planned);
    }
    let has_volume = |claim: &Claim| view.claims.volumes(key).any(|it| it.claim_uid == claim.uid);
    match claim.filter(|claim| !has_volume(claim)) {
        Some(claim) if claim.bound => about.hold(claim, &mut planned),
        Some(claim) if !claim.deleting => about.place(claim, &mut planned),
        _ => {}
    }
    planned
}

/// The claims of one name.
struct About<'a> {
    view: &'a View<'a>,
    key: &'a Key,
}

impl About<'_> {
    fn namespace(&self) -> &str {
        self.key.namespace().unwrap_or_default()
    }

    /// The claim at this provider.
    fn there(&self, provider: &str) -> Option<&There> {
        self.view.mirror.there(Kind::Claim, self.key, provider)
    }

    /// Whether what is at a provider can be told.
    fn is_known(&self, provider: &str) -> bool {
        self.view.mirror.is_known(Kind::Claim, self.namespace(), provider)
    }

    /// A volume stays with its claim, or as long as its policy says.
    fn volume(&self, volume: &Volume, claim: Option<&Claim>, planned: &mut Planned) {
        let claim = claim.filter(|claim| claim.uid == volume.claim_uid);
        if claim.is_some() || !(volume.released && volume.delete) {
            return self.keep(volume, claim, planned);
        }
        let mut reals = self.view.claims.reals(self.key).filter(|real| real.claim_uid == volume.claim_uid);
        let behind = match &volume.provider {
            Some(provider) => self.is_behind(provider, &volume.claim_uid),
            None => reals.next().is_some(),
        };
        // What is behind it goes first: it would be forgotten without the volume.
        if !behind && !volume.deleting {
            planned.steps.push(Step::DropVolume { name: volume.name.clone(), uid: volume.uid.clone() });
        }
    }

    /// Whether a provider still has, or may have, the claim that was made for the one with this uid.
    fn is_behind(&self, provider: &str, uid: &str) -> bool {
        if !self.view.pods.is_mapped(self.namespace(), provider) {
            // It went with the namespace.
            return false;
        }
        !self.is_known(provider) || self.there(provider).is_some_and(|there| self.is_made_for(there, uid))
    }

    fn is_made_for(&self, there: &There, uid: &str) -> bool {
        there.origin.as_deref() == Some(self.view.home) && there.made_for.as_deref() == Some(uid)
    }

    /// What is behind a volume at a provider stays, and is never made anew: it would be empty.
    fn keep(&self, volume: &Volume, claim: Option<&Claim>, planned: &mut Planned) {
        let Some(provider) = &volume.provider else { return };
        let of_pod = claim.is_some_and(|claim| claim.of_pod);
        let lost = !of_pod && self.is_known(provider) && self.there(provider).is_none();
        if claim.is_some() && lost {
            let message =
                format!("its volume at the provider {provider} is gone, and with it what was in it");
            planned.report = Some(Report::warning(LOST, &message));
        }
        if !of_pod {
            planned.sent = Some(Here::kept(&volume.claim_uid, provider));
        }
    }

    /// One watch may tell that a claim has its volume before another tells of the volume: what is behind it stays meanwhile, as
    /// nothing else says that it is wanted.
    fn hold(&self, claim: &Claim, planned: &mut Planned) {
        let node = claim.node.as_ref().and_then(|node| self.view.pods.node(node));
        if let Some(node) = node.filter(|_| !claim.of_pod && planned.sent.is_none()) {
            planned.sent = Some(Here::kept(&claim.uid, &node.provider));
        }
    }

    /// A claim of a real class stays with the claim that it was made for, or with its volume.
    fn real(&self, real: &Real, claim: Option<&Claim>, planned: &mut Planned) {
        let mut volumes = self.view.claims.volumes(self.key).filter(|it| it.claim_uid == real.claim_uid);
        let wanted = match (claim.filter(|claim| claim.uid == real.claim_uid), volumes.next()) {
            // Its consumer may have been placed elsewhere meanwhile.
            (Some(claim), None) => claim.bound || real.node.is_none() || claim.node == real.node,
            (Some(_), Some(_)) => true,
            (None, Some(volume)) => !(volume.released && volume.delete),
            (None, None) => false,
        };
        if !wanted && !real.deleting {
            planned.steps.push(Step::DropReal { key: real.key.clone(), uid: real.uid.clone() });
        }
    }

    /// Gives a claim its volume where its first consumer was placed.
    fn place(&self, claim: &Claim, planned: &mut Planned) {
        let Some(node) = &claim.node else { return };
        match self.view.pods.node(node) {
            Some(virtual_node) => self.at_provider(claim, virtual_node, planned),
            None => self.at_home(claim, node, planned),
        }
    }

    fn at_provider(&self, claim: &Claim, node: &VirtualNode, planned: &mut Planned) {
        let provider = &*node.provider;
        if claim.of_pod {
            return self.stand(node, planned);
        }
        if planned.sent.is_some() {
            let message = "a volume of an earlier claim of this name is kept at a provider: delete that volume \
                           (`kubectl get persistentvolumes`), or take another name";
            planned.report = Some(Report::warning(WAITS, message));
            return;
        }
        let Some(original) = &claim.original else {
            let message = format!(
                "it is kept at home by an annotation or a policy, and cannot be at the provider {provider}"
            );
            return refuse(claim, &message, planned);
        };
        if let Some(why) = self.cannot(provider) {
            return refuse(claim, &why, planned);
        }
        planned.sent = Some(original.clone().only(provider));
        match self.there(provider) {
            Some(there) if there.deleting || !self.is_made_for(there, &claim.uid) => {}
            Some(_) => self.stand(node, planned),
            None => {}
        }
    }

    /// Why a provider cannot have a volume of ours now.
    fn cannot(&self, provider: &str) -> Option<String> {
        let namespace = self.namespace();
        let Some(standing) = (self.view.standing)(provider) else {
            return Some(format!("we have no access to the provider {provider}"));
        };
        if let Some(why) = standing.gone {
            return Some(format!("the provider {provider} does not answer: {why}"));
        }
        if !self.view.pods.is_mapped(namespace, provider) {
            return Some(format!("the namespace {namespace} is not offloaded to the provider {provider}"));
        }
        let offers = standing.storage_class.is_some();
        (!offers).then(|| format!("the provider {provider} offers no storage class"))
    }

    fn stand(&self, node: &VirtualNode, planned: &mut Planned) {
        let mut places = self.view.mirror.places(self.namespace());
        let place = places.find(|(id, _)| ***id == *node.provider);
        if let Some((_, (remote, _))) = place {
            let remote = format!("{remote}/{}", self.key.name());
            let (provider, pool) = (node.provider.clone(), node.pool.clone());
            planned.steps.push(Step::Stand { provider, pool, remote });
        }
    }

    fn at_home(&self, claim: &Claim, node: &str, planned: &mut Planned) {
        let mut reals = self.view.claims.reals(self.key).filter(|real| real.claim_uid == claim.uid);
        match reals.next() {
            None => planned.steps.push(Step::Ask { node: node.into() }),
            Some(real) if real.deleting => {}
            Some(Real { volume: Some(volume), uid, .. }) => {
                planned.steps.push(Step::Twin { volume: volume.clone(), real: uid.clone() });
            }
            Some(real) if real.node.is_none() => {
                planned.steps.push(Step::DropReal { key: real.key.clone(), uid: real.uid.clone() });
                let message =
                    format!("no volume can be made on the node {node}: see the events of {}", real.key);
                refuse(claim, &message, planned);
            }
            // Whoever provides the real class says at the real claim what it waits for.
            Some(_) => {}
        }
    }
}

/// The claim cannot be where its consumer was placed: the scheduler chooses again.
fn refuse(claim: &Claim, message: &str, planned: &mut Planned) {
    planned.report = Some(Report::warning(FAILED, message));
    planned.steps.push(Step::Unselect { version: claim.version.clone() });
}
