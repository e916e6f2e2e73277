//! The process's own numbers, and the registry all components register with.

use std::fs;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::{Registry, Unit};

#[cfg(test)]
mod tests;

/// Ticks per second in `/proc`; fixed at 100 for user space on Linux.
const TICKS: f64 = 100.0;

/// A registry with the process's numbers in it. Give each component
/// `registry.sub_registry_with_prefix("name")`.
pub fn registry() -> Registry {
    let mut registry = Registry::default();
    registry.register_collector(Box::new(ProcessCollector));
    registry
}

/// What the kernel knows about this process.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ProcessUsage {
    /// Memory in RAM.
    pub resident_bytes: u64,
    /// The most memory in RAM there has been.
    pub peak_resident_bytes: u64,
    /// The part of it that is the process's own data, not its program or files.
    pub anonymous_bytes: u64,
    /// Address space.
    pub virtual_bytes: u64,
    /// Time on a CPU, in user and kernel mode.
    pub cpu_seconds: f64,
    /// Open file descriptors.
    pub open_files: u64,
    /// Threads.
    pub threads: u64,
    /// Start, in seconds since 1970.
    pub start_seconds: f64,
}

impl ProcessUsage {
    /// Reads `/proc/self`; what cannot be read is 0.
    pub fn now() -> Self {
        let read = |path| fs::read_to_string(path).unwrap_or_default();
        let open_files = fs::read_dir("/proc/self/fd").map_or(0, |files| files.count() as u64);
        Self {
            open_files,
            ..Self::parse(&read("/proc/self/stat"), &read("/proc/self/status"), &read("/proc/stat"))
        }
    }

    fn parse(stat: &str, status: &str, system: &str) -> Self {
        // The name in the second field may contain anything; count from behind it.
        let fields: Vec<f64> = stat
            .rsplit_once(')')
            .map(|(_, rest)| rest.split_whitespace().map(|field| field.parse().unwrap_or(0.0)).collect())
            .unwrap_or_default();
        let ticks = |index: usize| fields.get(index).copied().unwrap_or(0.0) / TICKS;
        let value = |name: &str| -> u64 {
            let line = status.lines().find_map(|line| line.strip_prefix(name));
            line.and_then(|rest| rest.split_whitespace().next()?.parse().ok()).unwrap_or(0)
        };
        let boot =
            system.lines().find_map(|line| line.strip_prefix("btime ")?.trim().parse().ok()).unwrap_or(0.0);
        Self {
            resident_bytes: value("VmRSS:") * 1024,
            peak_resident_bytes: value("VmHWM:") * 1024,
            anonymous_bytes: value("RssAnon:") * 1024,
            virtual_bytes: value("VmSize:") * 1024,
            cpu_seconds: ticks(11) + ticks(12),
            open_files: 0,
            threads: value("Threads:"),
            start_seconds: boot + ticks(19),
        }
    }
}

#[derive(Debug)]
struct ProcessCollector;

impl Collector for ProcessCollector {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), std::fmt::Error> {
        let usage = ProcessUsage::now();
        let gauges = [
            ("process_resident_memory", "Memory in RAM", Some(Unit::Bytes), usage.resident_bytes as f64),
            ("process_virtual_memory", "Address space", Some(Unit::Bytes), usage.virtual_bytes as f64),
            ("process_open_fds", "Open file descriptors", None, usage.open_files as f64),
            ("process_threads", "Threads", None, usage.threads as f64),
            ("process_start_time", "Start, since 1970", Some(Unit::Seconds), usage.start_seconds),
        ];
        for (name, help, unit, value) in gauges {
            let gauge = ConstGauge::new(value);
            gauge.encode(encoder.encode_descriptor(name, help, unit.as_ref(), gauge.metric_type())?)?;
        }
        let cpu = ConstCounter::new(usage.cpu_seconds);
        let unit = Some(&Unit::Seconds);
        cpu.encode(encoder.encode_descriptor("process_cpu", "Time on a CPU", unit, cpu.metric_type())?)
    }
}
