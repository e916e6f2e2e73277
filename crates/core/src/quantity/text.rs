//! Quantities in JSON and YAML: written as a string, read from a string or a number.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, Visitor};
use serde::ser::{Serialize, Serializer};

use super::error::{ParseQuantityError, Reason};
use super::{Format, Quantity};

/// A number of this many decimal digits or fewer survives the way through an `f64` digit by digit.
const EXACT_FLOAT_DIGITS: usize = 15;

impl Serialize for Quantity {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Quantity {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(QuantityVisitor)
    }
}

struct QuantityVisitor;

impl Visitor<'_> for QuantityVisitor {
    type Value = Quantity;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a quantity such as \"500m\", \"1.5Gi\" or 2")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Quantity, E> {
        // Kubernetes forgives blanks around a quantity in a document, though not elsewhere.
        text.trim().parse().map_err(E::custom)
    }

    fn visit_i64<E: Error>(self, units: i64) -> Result<Quantity, E> {
        Ok(Quantity::from_units(units, Format::DecimalSi))
    }

    fn visit_u64<E: Error>(self, units: u64) -> Result<Quantity, E> {
        self.visit_str(&units.to_string())
    }

    fn visit_i128<E: Error>(self, units: i128) -> Result<Quantity, E> {
        self.visit_str(&units.to_string())
    }

    fn visit_u128<E: Error>(self, units: u128) -> Result<Quantity, E> {
        self.visit_str(&units.to_string())
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<Quantity, E> {
        // The shortest text that means this float is the text in the document, if that had few enough digits.
        let text = format!("{number:e}");
        let digits = text.bytes().take_while(|byte| *byte != b'e').filter(u8::is_ascii_digit).count();
        if digits > EXACT_FLOAT_DIGITS {
            return Err(E::custom(ParseQuantityError::new(&number.to_string(), Reason::Inexact)));
        }
        let quantity: Quantity = text.parse().map_err(E::custom)?;
        Ok(quantity.with_format(Format::DecimalSi))
    }

    fn visit_unit<E: Error>(self) -> Result<Quantity, E> {
        // As Kubernetes reads `null`.
        Ok(Quantity::ZERO)
    }
}
