use super::*;

#[test]
fn columns_are_aligned_and_lines_have_no_spaces_at_their_end() {
    let mut table = Table::new(["NAME", "READY"]);
    table.row(["a-long-name".into(), "yes".into()]);
    table.row(["ü".into(), String::new()]);
    assert_eq!(table.to_string(), "NAME          READY\na-long-name   yes\nü\n");
}
