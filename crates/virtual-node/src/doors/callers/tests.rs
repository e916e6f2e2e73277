use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair};

use super::*;

fn certificate(name: &str, groups: &[&str]) -> CertificateDer<'static> {
    let mut subject = DistinguishedName::new();
    if !name.is_empty() {
        subject.push(DnType::CommonName, name);
    }
    for group in groups {
        subject.push(DnType::OrganizationName, *group);
    }
    let mut parameters = CertificateParams::default();
    parameters.distinguished_name = subject;
    parameters.self_signed(&KeyPair::generate().unwrap()).unwrap().der().clone()
}

#[test]
fn a_certificate_names_its_user_and_groups() {
    let user = subject(&certificate("kube-apiserver-kubelet-client", &["system:masters"])).unwrap();
    assert_eq!(user.name, "kube-apiserver-kubelet-client");
    assert_eq!(user.groups, ["system:masters", "system:authenticated"]);
    assert_eq!(subject(&certificate("", &["system:masters"])), None);
    assert_eq!(subject(&CertificateDer::from(vec![1, 2, 3])), None);
}

#[test]
fn only_bearer_tokens_are_tokens() {
    assert_eq!(bearer("Bearer abc"), Some("abc"));
    assert_eq!(bearer("bearer  abc"), Some("abc"));
    for header in ["", "Bearer", "Bearer ", "Basic abc", "abc"] {
        assert_eq!(bearer(header), None, "{header}");
    }
}

#[tokio::test(start_paused = true)]
async fn answers_are_believed_for_a_while_and_never_more_than_fit() {
    let answers = Answers::default();
    answers.put(1, true);
    assert_eq!(answers.get(&1), Some(true));
    tokio::time::advance(BELIEVED).await;
    assert_eq!(answers.get(&1), None);
    for question in 0..ANSWERS + 10 {
        answers.put(question, true);
    }
    assert_eq!(answers.0.lock().len(), ANSWERS);
    tokio::time::advance(BELIEVED).await;
    answers.put(ANSWERS + 20, false);
    assert_eq!(answers.0.lock().len(), 1);
}
