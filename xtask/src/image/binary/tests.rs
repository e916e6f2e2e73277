use super::*;

#[test]
fn a_program_that_needs_a_loader_is_told_apart() {
    let this_test = fs::read(std::env::current_exe().unwrap()).unwrap();
    assert_eq!(needs_loader(&this_test), Some(!cfg!(target_feature = "crt-static")));
    assert_eq!(needs_loader(liqo_sandbox::image::pause_program()), Some(false));
}

#[test]
fn what_is_no_program_or_half_a_program_is_neither() {
    let pause = liqo_sandbox::image::pause_program();
    for bytes in [&b""[..], b"#!/bin/sh\n", &pause[..40], &pause[..64]] {
        assert_eq!(needs_loader(bytes), None);
    }
}

#[test]
fn a_binary_that_was_not_built_is_named_with_what_to_do() {
    let error = must_be_static(Path::new("/nonexistent/liqo")).unwrap_err().to_string();
    assert!(error.contains("/nonexistent/liqo") && error.contains("make build"), "{error}");
}
