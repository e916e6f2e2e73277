use super::*;

#[test]
fn a_report_names_the_failing_check_and_why_and_all_checks_when_asked() {
    let checks = Checks::default();
    assert_eq!(checks.run().text(false), "ok\n");
    checks.add("disk", || Ok(()));
    checks.add("webhook", || Err("no certificate yet".into()));
    let report = checks.run();
    assert!(!report.is_ok());
    assert_eq!(report.text(false), "[-] webhook: no certificate yet\nfailed\n");
    assert_eq!(report.text(true), "[+] disk: ok\n[-] webhook: no certificate yet\nfailed\n");
    checks.remove("webhook");
    assert!(checks.run().is_ok());
}
