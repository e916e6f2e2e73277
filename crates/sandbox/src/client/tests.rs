use super::*;

#[test]
fn of_a_long_answer_only_the_failing_checks_are_told() {
    let answer = "[+]ping ok\n[-]etcd failed: reason withheld\n[+]log ok\n[-]poststarthook/rbac failed: not finished\n";
    assert_eq!(what_fails(answer), "not ready yet: etcd, poststarthook/rbac");
    assert_eq!(what_fails("ServiceError: refused\nmore"), "ServiceError: refused");
    assert_eq!(what_fails(""), "no answer");
}
