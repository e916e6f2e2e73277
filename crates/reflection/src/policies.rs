//! Which objects of a kind are reflected.

use std::collections::BTreeMap;
use std::str::FromStr;

use liqo_api::{annotations, labels};

#[cfg(test)]
mod tests;

/// What `kube-root-ca.crt` is for: without it, no token is of use.
const ALWAYS: &str = crate::route::ROOT_CA;
/// The kinds that there are policies for.
const KINDS: [&str; 7] =
    ["configmap", "secret", "service", "endpointslice", "ingress", "persistentvolumeclaim", EVENT];
/// What is said about pods; it has no annotations of its own.
pub(crate) const EVENT: &str = "event";

/// Which objects of a kind are reflected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Policy {
    /// All but those that an annotation keeps at home.
    #[default]
    DenyList,
    /// Those alone that an annotation lets go.
    AllowList,
    /// None.
    Never,
}

impl Policy {
    /// Whether an object of this name with these annotations is reflected.
    pub(crate) fn lets(self, name: Option<&str>, notes: Option<&BTreeMap<String, String>>) -> bool {
        let says = |key: &str| notes.and_then(|notes| notes.get(key)).is_some_and(|it| it == labels::TRUE);
        match self {
            Self::DenyList => !says(annotations::SKIP_REFLECTION),
            Self::AllowList => {
                let allowed = says(annotations::ALLOW_REFLECTION) || name == Some(ALWAYS);
                allowed && !says(annotations::SKIP_REFLECTION)
            }
            Self::Never => false,
        }
    }
}

/// The policies of all kinds; those that are not named are reflected unless an annotation says otherwise.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Policies(BTreeMap<&'static str, Policy>);

impl Policies {
    /// The policy of this kind, as Kubernetes spells it.
    pub(crate) fn of(&self, kind: &str) -> Policy {
        self.0.get(kind.to_ascii_lowercase().as_str()).copied().unwrap_or_default()
    }
}

/// The later ones win.
impl Extend<Self> for Policies {
    fn extend<I: IntoIterator<Item = Self>>(&mut self, others: I) {
        others.into_iter().for_each(|other| self.0.extend(other.0));
    }
}

/// As `kind=policy,kind=policy`.
impl FromStr for Policies {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut all = BTreeMap::new();
        for pair in text.split(',').map(str::trim).filter(|pair| !pair.is_empty()) {
            let (kind, policy) =
                pair.split_once('=').ok_or_else(|| format!("{pair:?} is not KIND=POLICY"))?;
            let known = KINDS.into_iter().find(|known| *known == kind);
            let kind = known.ok_or_else(|| format!("{kind:?} is none of {}", KINDS.join(", ")))?;
            let policy = match policy {
                "DenyList" => Policy::DenyList,
                "AllowList" if kind != EVENT => Policy::AllowList,
                "Never" => Policy::Never,
                "AllowList" => {
                    return Err("events have no annotations: expected DenyList or Never".to_owned());
                }
                other => return Err(format!("{other:?} is none of DenyList, AllowList, Never")),
            };
            all.insert(kind, policy);
        }
        Ok(Self(all))
    }
}
