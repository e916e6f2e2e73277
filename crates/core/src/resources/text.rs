//! Resource lists in JSON and YAML: a map from name to quantity.
//!
//! Reading is strict, for files and messages of our own. What comes from outside goes through
//! [`Resources::parse`], where a bad entry does not take the good ones with it.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, Visitor};
use serde::ser::{Serialize, Serializer};

use super::{ResourceName, Resources};
use crate::quantity::Quantity;

impl Serialize for Resources {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter())
    }
}

impl Serialize for ResourceName {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for ResourceName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

impl<'de> Deserialize<'de> for Resources {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(ResourcesVisitor)
    }
}

struct ResourcesVisitor;

impl<'de> Visitor<'de> for ResourcesVisitor {
    type Value = Resources;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(
            "a map from resource names to quantities, such as {\"cpu\": \"2\", \"memory\": \"4Gi\"}",
        )
    }

    fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Resources, M::Error> {
        let mut resources = Resources::new();
        while let Some(name) = map.next_key::<ResourceName>()? {
            let amount: Quantity = map
                .next_value()
                .map_err(|error| M::Error::custom(format_args!("resource {name}: {error}")))?;
            resources.insert(name, amount);
        }
        Ok(resources)
    }
}
