//! What is in the image, as CycloneDX writes it down (<https://cyclonedx.org/docs/1.6/json/>).
//!
//! ```text
//! the image ── the program ── its crates ── their crates …
//!                        └─── Rust's standard library
//! ```
//!
//! Only what is linked into the program is listed: no crate that merely helped to build or test it. The document depends
//! on nothing but its input: even its serial number is a digest.

mod linked;

use jiff::Timestamp;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::binary::hex;
use super::layout::NAME;
pub(super) use linked::Linked;
use linked::Package;

/// The image and the program in it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Product<'a> {
    /// The image's name as given, without the tag.
    pub(super) name: &'a str,
    /// The tag.
    pub(super) version: &'a str,
    /// `sha256:…` of the image's manifest.
    pub(super) image_digest: &'a str,
    /// The program's digest.
    pub(super) binary_sha256: &'a str,
    /// The commit's time.
    pub(super) time: Timestamp,
}

/// The whole document.
pub(super) fn document(product: &Product<'_>, linked: &Linked) -> Value {
    let standard_library = standard_library(&linked.rust_version);
    let crates = linked.packages.iter().map(|package| component(product, package));
    let mut document = json!({
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"timestamp": product.time.to_string(), "component": image(product)},
        "components": crates.chain([standard_library.clone()]).collect::<Vec<_>>(),
        "dependencies": dependencies(product, linked, &standard_library["bom-ref"]),
    });
    document["serialNumber"] = json!(serial_number(document.to_string().as_bytes()));
    document
}

fn image(product: &Product<'_>) -> Value {
    json!({
        "type": "container",
        "bom-ref": image_ref(product),
        "name": product.name,
        "version": product.version,
        "purl": image_purl(product),
    })
}

fn image_ref(product: &Product<'_>) -> String {
    format!("{}:{}", product.name, product.version)
}

/// Where a registry has it; an image under its short name is in none.
fn image_purl(product: &Product<'_>) -> String {
    let last = product.name.rsplit('/').next().unwrap_or_default();
    let digest = product.image_digest.replace(':', "%3A");
    let repository = match product.name == last {
        true => String::new(),
        false => format!("repository_url={}&", product.name),
    };
    format!("pkg:oci/{last}@{digest}?{repository}tag={}", product.version)
}

fn component(product: &Product<'_>, package: &Package) -> Value {
    let is_program = package.name == NAME && package.is_ours();
    let mut component = json!({
        "type": if is_program { "application" } else { "library" },
        "bom-ref": package.reference(),
        "name": package.name,
        "version": package.version,
    });
    if let Some(text) = &package.description {
        // Crates write it over several lines.
        component["description"] = json!(text.split_whitespace().collect::<Vec<_>>().join(" "));
    }
    if let Some(expression) = &package.licence {
        component["licenses"] = json!([{"expression": expression}]);
    }
    if let Some(purl) = package.purl() {
        component["purl"] = json!(purl);
    }
    let digest = if is_program { Some(product.binary_sha256) } else { package.checksum.as_deref() };
    if let Some(digest) = digest {
        component["hashes"] = json!([{"alg": "SHA-256", "content": digest}]);
    }
    if let Some(url) = &package.repository {
        component["externalReferences"] = json!([{"type": "vcs", "url": url}]);
    }
    component
}

/// No crate of the list, yet part of every program.
fn standard_library(version: &str) -> Value {
    json!({
        "type": "library",
        "bom-ref": format!("rust-std@{version}"),
        "name": "rust-std",
        "version": version,
        "description": "Rust's standard library with the musl C library",
        "licenses": [{"expression": "MIT OR Apache-2.0"}],
    })
}

fn dependencies(product: &Product<'_>, linked: &Linked, standard_library: &Value) -> Vec<Value> {
    let of_image = json!({"ref": image_ref(product), "dependsOn": [linked.root().reference()]});
    let of_crates = linked.packages.iter().map(|package| {
        let mut on: Vec<Value> =
            linked.dependencies_of(package).map(|other| json!(other.reference())).collect();
        if package == linked.root() {
            on.push(standard_library.clone());
        }
        json!({"ref": package.reference(), "dependsOn": on})
    });
    let of_standard_library = json!({"ref": standard_library, "dependsOn": []});
    [of_image].into_iter().chain(of_crates).chain([of_standard_library]).collect()
}

/// A UUID (of version 8, which leaves its making to us) from the digest of the rest.
fn serial_number(content: &[u8]) -> String {
    let digest = Sha256::digest(content);
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&digest[..16]);
    bytes[6] = bytes[6] & 0x0f | 0x80;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    let text = hex(&bytes);
    let groups = [&text[..8], &text[8..12], &text[12..16], &text[16..20], &text[20..]];
    format!("urn:uuid:{}", groups.join("-"))
}

#[cfg(test)]
mod tests;
