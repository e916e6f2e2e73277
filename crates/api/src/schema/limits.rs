//! How much of each thing an object may hold.

/// Longest DNS label, label value and namespace name.
pub(crate) const MAX_LABEL: u32 = 63;
/// Longest DNS name and object name.
pub(crate) const MAX_SUBDOMAIN: u32 = 253;
/// Longest label key or resource name: a DNS name, a slash and 63 characters.
pub(crate) const MAX_QUALIFIED_NAME: u32 = 317;
/// Longest URL; room for any host and a path, far below what could hurt.
pub(crate) const MAX_URL: u32 = 1024;
/// Longest IP address or network in text form, IPv6 with an embedded IPv4 part and a prefix length.
pub(crate) const MAX_ADDRESS: u32 = 64;
/// Longest timestamp; RFC 3339 with nanoseconds and offset needs 35.
pub(crate) const MAX_TIME: u32 = 64;
/// Longest quantity; the digits of 2^63 with nine decimals, sign and suffix need fewer.
pub(crate) const MAX_QUANTITY: u32 = 40;
/// Longest name of a container image: a host, a path and a digest.
pub(crate) const MAX_IMAGE_NAME: u32 = 1024;
/// Names per image; the kubelet reports at most five.
pub(crate) const MAX_IMAGE_NAMES: u32 = 8;
/// Images in an offer; the kubelet reports at most 50 per node.
pub(crate) const MAX_IMAGES: u32 = 256;
/// Different resources in a list; nodes have a dozen.
pub(crate) const MAX_RESOURCES: u32 = 64;
/// Labels that an offer puts on the virtual node.
pub(crate) const MAX_LABELS: u32 = 64;
/// Storage classes in an offer.
pub(crate) const MAX_STORAGE_CLASSES: u32 = 64;
/// Terms of a selector; with the next two it bounds what checking a selector costs.
pub(crate) const MAX_SELECTOR_TERMS: u32 = 8;
/// Requirements of a term.
pub(crate) const MAX_SELECTOR_REQUIREMENTS: u32 = 8;
/// Values of a requirement, which may be a list of cluster IDs.
pub(crate) const MAX_SELECTOR_VALUES: u32 = 256;
/// Namespaces mapped to one peer.
pub(crate) const MAX_NAMESPACES: u32 = 4096;
/// Peers of a cluster.
pub(crate) const MAX_PEERS: u32 = 4096;
/// Settings of a tunnel's backend.
pub(crate) const MAX_BACKEND_SETTINGS: u32 = 16;
/// Longest setting of a tunnel's backend; allowed networks are the longest.
pub(crate) const MAX_BACKEND_SETTING: u32 = 1024;
/// Longest network interface name; the kernel allows 15.
pub(crate) const MAX_INTERFACE_NAME: u32 = 15;
/// Conditions in a status.
pub(crate) const MAX_CONDITIONS: u32 = 32;
/// As in Kubernetes' own conditions.
pub(crate) const MAX_CONDITION_TYPE: u32 = 316;
/// As in Kubernetes' own conditions.
pub(crate) const MAX_CONDITION_REASON: u32 = 1024;
/// As in Kubernetes' own conditions.
pub(crate) const MAX_CONDITION_MESSAGE: u32 = 32_768;
/// Longest UID; Kubernetes uses UUIDs.
pub(crate) const MAX_UID: u32 = 128;
/// Containers of a pod.
pub(crate) const MAX_CONTAINERS: u32 = 256;
/// Largest DNS TTL, 2^31 - 1 (RFC 2181); a ttl of ours often comes from there.
pub(crate) const MAX_TTL_SECONDS: u32 = 2_147_483_647;
/// Longest version of a program; semantic versions with build metadata need a few dozen.
pub(crate) const MAX_VERSION: u32 = 128;
/// Things that a version of the program can do.
pub(crate) const MAX_CAPABILITIES: u32 = 64;
/// Longest public key in PEM; Ed25519 needs 113, RSA with 4096 bits 800.
pub(crate) const MAX_PUBLIC_KEY: u32 = 1024;
/// Longest authorities of one peer, in PEM: a dozen with keys of RSA. All that browsers trust are ten times as long, and belong
/// to the machine.
pub(crate) const MAX_CA_BUNDLE: u32 = 32_768;
/// Hex digits of a SHA-256.
pub(crate) const FINGERPRINT: u32 = 64;
/// The name of a hash function and a colon before its digits: `sha256:`.
pub(crate) const MAX_HASH_NAME: u32 = 7;
/// Clusters that the status of a search names one by one; how many there are is told in any case.
pub(crate) const MAX_FOUND: u32 = 256;
/// Longest length of time, such as `1w2d3h4m5s`, and longest name of a period.
pub(crate) const MAX_SPAN: u32 = 32;
/// Longest name of a currency.
pub(crate) const MAX_CURRENCY: u32 = 12;
/// Currencies that a consumer pays in.
pub(crate) const MAX_CURRENCIES: u32 = 16;
/// Patterns in a list of a policy.
pub(crate) const MAX_PATTERNS: u32 = 64;
/// Longest pattern: a namespace, a slash, a name.
pub(crate) const MAX_PATTERN: u32 = 512;
/// Requirements on labels in a policy.
pub(crate) const MAX_POLICY_REQUIREMENTS: u32 = 32;
/// Windows of time in a policy.
pub(crate) const MAX_WINDOWS: u32 = 64;
/// Longest name of a time zone; `America/Argentina/ComodRivadavia` is the longest there is.
pub(crate) const MAX_TIME_ZONE: u32 = 64;
/// Clusters that a policy's status names one by one.
pub(crate) const MAX_POLICY_PEERS: u32 = 64;
/// Promises in a service level.
pub(crate) const MAX_PROMISES: u32 = 32;
/// Longest promise.
pub(crate) const MAX_PROMISE: u32 = 1024;
/// Services that an offer exports.
pub(crate) const MAX_SERVICES: u32 = 256;
/// Longest terms of a contract, as many bytes as they may have in canonical form.
pub(crate) const MAX_TERMS: u32 = 131_072;
/// Hex digits of an Ed25519 signature.
pub(crate) const SIGNATURE: u32 = 128;
/// The name of a signature's algorithm and a colon: `ed25519:`.
pub(crate) const MAX_SIGNATURE_NAME: u32 = 8;
/// Amendments of a contract: the largest number that every JSON library keeps.
pub(crate) const MAX_SEQUENCE: u64 = (1 << 53) - 1;
/// Longest sentence about a contract's price, or about why it ended.
pub(crate) const MAX_SENTENCE: u32 = 4096;
/// Pools in a policy or an offer.
pub(crate) const MAX_POOLS: u32 = 16;
/// Labels of a pool.
pub(crate) const MAX_POOL_LABELS: u32 = 16;
/// Values of one requirement on the nodes that a policy shares.
pub(crate) const MAX_NODE_VALUES: u32 = 64;
