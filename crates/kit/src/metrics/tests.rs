use super::*;

#[test]
fn this_process_has_memory_time_and_files() {
    let usage = ProcessUsage::now();
    assert!(usage.resident_bytes > 100_000 && usage.peak_resident_bytes >= usage.resident_bytes, "{usage:?}");
    assert!(usage.open_files >= 3 && usage.threads >= 1, "{usage:?}");
    assert!(usage.start_seconds > 1_600_000_000.0, "{usage:?}");
}

#[test]
fn a_process_name_with_spaces_and_brackets_does_not_shift_the_fields() {
    let stat = "7 (a ) b) S 1 1 1 0 -1 0 0 0 0 0 250 50 0 0 20 0 4 0 1000 0 0";
    let usage = ProcessUsage::parse(stat, "VmRSS:\t  12 kB\nThreads:\t4\n", "btime 1000\n");
    assert_eq!((usage.cpu_seconds, usage.resident_bytes, usage.threads), (3.0, 12 * 1024, 4));
    assert_eq!(usage.start_seconds, 1010.0);
    assert_eq!(ProcessUsage::parse("", "", ""), ProcessUsage::default());
}
