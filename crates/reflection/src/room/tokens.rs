//! Asks for the tokens that pods at providers read, and for others before they expire.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::authentication::v1::{TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::ServiceAccount;
use kube::Api;
use kube::api::PostParams;
use liqo_kit::Key;

use super::Room;
use super::lead::WRITE_TIMEOUT;
use crate::mirror::kinds::Kind;
use crate::pods::plan::until;
use crate::route::TOKEN_PREFIX;
use crate::tokens::{Held, LIFETIME, Token, missing, secret};

/// How long pods that come together are collected.
const PAUSE: Duration = Duration::from_millis(250);
/// How soon what failed is tried again, and how often it is looked whether a token is due.
const AGAIN: Duration = Duration::from_secs(10);

impl Room {
    /// Keeps the tokens, until it is dropped.
    pub(super) async fn keep_tokens(&self) {
        let mut held = Held::new();
        let mut changes = self.0.pods.subscribe();
        let mut users = None;
        let mut due = self.0.settings.clock.now();
        loop {
            changes.borrow_and_update();
            let now = self.0.settings.clock.now();
            let current = self.0.pods.read().token_users;
            if users != Some(current) || due <= now {
                users = Some(current);
                due = self.renew_tokens(&mut held).await;
            }
            tokio::time::sleep(PAUSE).await;
            tokio::select! {
                _ = changes.changed() => {}
                () = tokio::time::sleep(until(due, self.0.settings.clock.now()).min(AGAIN)) => {}
            }
        }
    }

    /// Asks for what is missing, and says when to look again.
    async fn renew_tokens(&self, held: &mut Held) -> Timestamp {
        let needs = self.0.pods.read().tokens();
        held.retain(|account, _| needs.contains_key(account));
        let mut failed = false;
        for (account, audience) in missing(&needs, held, self.0.settings.clock.now()) {
            match self.ask_token(&account, audience.as_deref()).await {
                Ok(token) => drop(held.entry(account).or_default().insert(audience, token)),
                Err(why) => {
                    failed = true;
                    tracing::warn!(%account, why, "cannot get a token for pods at providers; it is tried again");
                }
            }
        }
        let mut mirror = self.0.mirror.write();
        let mut there: std::collections::BTreeSet<Key> =
            mirror.secrets_named(TOKEN_PREFIX).into_iter().collect();
        for (account, need) in &needs {
            let made = held.get(account).and_then(|tokens| secret(account, need, tokens));
            if let Some((key, here)) = made {
                there.remove(&key);
                mirror.put_here(Kind::Secret, key, here);
            }
        }
        there.into_iter().for_each(|key| mirror.drop_here(Kind::Secret, key));
        mirror.tokens_known = !failed;
        drop(mirror);
        self.0.mirror.notify();
        let now = self.0.settings.clock.now();
        let soon = now.checked_add(AGAIN).unwrap_or(now);
        let renewals = held.values().flat_map(|tokens| tokens.values()).map(|token| token.renew);
        if failed { soon } else { renewals.min().unwrap_or(Timestamp::MAX) }
    }

    async fn ask_token(&self, account: &Key, audience: Option<&str>) -> Result<Token, String> {
        let api: Api<ServiceAccount> =
            Api::namespaced(self.0.client.clone(), account.namespace().unwrap_or_default());
        let request = TokenRequest {
            spec: TokenRequestSpec {
                audiences: audience.map(str::to_owned).into_iter().collect(),
                expiration_seconds: Some(LIFETIME.as_secs()),
                ..TokenRequestSpec::default()
            },
            ..TokenRequest::default()
        };
        let params = PostParams::default();
        let asking = api.create_token_request(account.name(), &params, &request);
        let answer = tokio::time::timeout(WRITE_TIMEOUT, asking).await.map_err(|_| "no answer".to_owned())?;
        let status = answer.map_err(|error| error.to_string())?.status.ok_or("an empty answer")?;
        Ok(Token::new(status.token, self.0.settings.clock.now(), status.expiration_timestamp.0))
    }
}
